package frames

import (
	"encoding/binary"
	"math"
	"time"

	"millrace/internal/flv"
)

// keyWeight is how many times bigger than another frame a keyframe is.
const keyWeight = 8

// sampleRate and frameSamples are those of AAC-LC as encoders send it: 43 frames a second.
const (
	sampleRate   = 44100
	frameSamples = 1024
)

// Generator makes the tags of one stream, in order of media time. It does not
// pace: [Generator.Due] says when the next frame is to be sent, and [Generator.Play]
// sends them so.
type Generator struct {
	// Fixed at construction.
	cfg     Config
	gop     int64 // frames
	unit    int   // bytes of an average frame that is no keyframe
	pic     pictures
	headers []flv.Tag

	// Owned by the caller of Next.
	seq   int64
	video int64 // number of the next video frame
	audio int64
}

// NewGenerator returns a generator at the stream's beginning.
func NewGenerator(cfg Config) (*Generator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	g := &Generator{cfg: cfg, gop: int64(math.Round(cfg.GOP.Seconds() * cfg.FPS))}
	g.unit = int(float64(cfg.VideoKbps) * 125 / cfg.FPS * float64(g.gop) / float64(g.gop-1+keyWeight))
	g.pic = newPictures(cfg.Width, cfg.Height)
	g.headers = append(g.headers, flv.New(flv.Script, cfg.Start, metadata(cfg)))
	if !cfg.NoVideo {
		g.headers = append(g.headers, flv.New(flv.Video, cfg.Start, videoHeader(cfg, g.pic)))
	}
	if !cfg.NoAudio {
		g.headers = append(g.headers, flv.New(flv.Audio, cfg.Start, []byte{0xaf, 0, 0x12, 0x10}))
	}
	return g, nil
}

// Headers returns metadata and sequence headers, to be sent first. Their bytes are shared.
func (g *Generator) Headers() []flv.Tag { return g.headers }

// Due returns when, after the stream's beginning, the next frame is to be sent.
func (g *Generator) Due() time.Duration {
	due, _ := g.next()
	return due
}

func (g *Generator) next() (time.Duration, bool) {
	v := time.Duration(float64(g.video) / g.cfg.FPS * 1e9)
	a := time.Duration(g.audio) * frameSamples * time.Second / sampleRate
	if g.cfg.NoAudio || !g.cfg.NoVideo && v <= a {
		return v, true
	}
	return a, false
}

// Next returns the next frame, stamped as sent at the given time. Its bytes are
// the caller's, its DTS is the media time, not cut to 32 bits.
func (g *Generator) Next(sent time.Time) flv.Tag {
	due, isVideo := g.next()
	s := Stamp{
		Stream: g.cfg.Stream, Epoch: g.cfg.Epoch, Seq: g.seq, Sent: sent.UnixNano(),
		Media: g.cfg.Start + due.Milliseconds(),
	}
	var wire []byte
	if isVideo {
		s.Number = g.video
		wire = g.videoFrame(s)
		g.video++
	} else {
		s.Number = g.audio
		wire = g.audioFrame(s)
		g.audio++
	}
	g.seq++
	flv.SetTime(wire, s.Media)
	return flv.Make(wire, s.Media)
}

// Restamp tells a frame made by Next that it is another one: it changes sequence,
// media time and time of sending, and puts the checksum right. Used to loop canned frames.
func Restamp(t *flv.Tag, seq, media, sent int64) {
	payload := t.Payload()
	at := Offset(t.Kind, payload)
	if at < 0 {
		return
	}
	b := payload[at : at+StampSize]
	put7(b[atSeq:atNumber], seq)
	put7(b[atMedia:atSent], media)
	put7(b[atSent:atSize], sent)
	put7(b[atSum:], int64(Sum(0, b[:atSum])))
	t.DTS = media
	flv.SetTime(t.Wire, media)
}

// size varies by a quarter up and down, as a function of the frame's number.
func (g *Generator) size(number int64) int {
	if number%g.gop == 0 {
		return g.unit * keyWeight
	}
	x := uint64(number)*0x9e3779b97f4a7c15 + uint64(g.cfg.Stream)
	return g.unit*3/4 + int(x>>40%1024)*g.unit/2048
}

// composition returns the composition time in ms: 0, or in turn 2, -1 and 0 frame
// times, as of an encoder that sends I P b b with decoding times moved forward.
func (g *Generator) composition(number int64) int32 {
	if !g.cfg.BFrames {
		return 0
	}
	ms := 1000 / g.cfg.FPS
	return int32([3]float64{2 * ms, -ms, 0}[number%3])
}

func (g *Generator) videoFrame(s Stamp) []byte {
	key := s.Number%g.gop == 0
	var head [16]byte
	h := frameHeader(head[:0], g.cfg.Codec, key, g.composition(s.Number))
	if g.cfg.Codec == AV1 {
		return g.finish(flv.Video, h, s, g.size(s.Number), nil, func(dst []byte, rest int) {
			binary.BigEndian.PutUint16(dst[6:], leb2(1+StampSize+rest))
		})
	}
	var sei, pic []byte // header of the filler's NAL unit; the slice
	if g.cfg.Codec == H264 {
		sei, pic = []byte{6, 5}, g.pic.slice(s.Number%g.gop, s.Number/g.gop)
	} else {
		sei, pic = []byte{0x4e, 1, 5}, []byte{0x26, 1, 0xaf, 0x80}
		if !key {
			pic[0] = 2
		}
	}
	stampUnit := len(sei) + 1 + StampSize + 1 // with size byte and stop bit
	binary.BigEndian.PutUint32(h[len(h)-len(sei)-1-4:], uint32(stampUnit))

	tail := appendUnit([]byte{0x80}, pic)
	fill := g.size(s.Number) - len(h) - StampSize - len(tail)
	if fill > 64 {
		tail = append(fillerUnit([]byte{0x80}, sei, fill), tail[1:]...)
	}
	return g.finish(flv.Video, h, s, 0, tail, nil)
}

func (g *Generator) audioFrame(s Stamp) []byte {
	size := g.cfg.AudioKbps * 125 * frameSamples / sampleRate
	fill := max(0, min(size-4-StampSize-len(silence), 254-StampSize))
	tail := make([]byte, fill, fill+len(silence))
	pattern(tail, s.Number)
	tail = append(tail, silence...)
	return g.finish(flv.Audio, []byte{0xaf, 1, 0x81, byte(StampSize + fill)}, s, 0, tail, nil)
}

// silence is a channel pair element and the end of an AAC-LC frame: two silent channels.
var silence = []byte{0x21, 0x00, 0x49, 0x90, 0x02, 0x19, 0x00, 0x23, 0x80}

// finish allocates the tag, fills up to size with the pattern if there is no tail,
// lets patch see the payload, and writes the stamp.
func (g *Generator) finish(kind flv.Kind, head []byte, s Stamp, size int, tail []byte, patch func([]byte, int)) []byte {
	rest := len(tail)
	if tail == nil {
		rest = max(size-len(head)-StampSize, 0)
	}
	s.Size = len(head) + StampSize + rest
	wire := flv.Alloc(kind, s.Size)
	payload := wire[flv.HeaderSize : flv.HeaderSize+s.Size]
	copy(payload, head)
	body := payload[len(head)+StampSize:]
	if tail == nil {
		pattern(body, s.Number)
	} else {
		copy(body, tail)
	}
	if patch != nil {
		patch(payload, rest)
	}
	s.Body = Sum(0, body)
	s.Put(payload[len(head):])
	return wire
}

// frameHeader appends everything before the stamp, with NAL length and OBU size left zero.
func frameHeader(dst []byte, c Codec, key bool, cts int32) []byte {
	first := byte(2) << 4
	if key {
		first = 1 << 4
	}
	t := []byte{byte(cts >> 16), byte(cts >> 8), byte(cts)}
	switch c {
	case H264:
		dst = append(append(dst, first|7, 1), t...)
		return append(dst, 0, 0, 0, 0, 6, 5, StampSize)
	case H265:
		dst = append(append(dst, first|12, 1), t...)
		return append(dst, 0, 0, 0, 0, 0x4e, 1, 5, StampSize)
	case H265Enhanced:
		dst = append(append(dst, 0x80|first|1, 'h', 'v', 'c', '1'), t...)
		return append(dst, 0, 0, 0, 0, 0x4e, 1, 5, StampSize)
	}
	// A metadata OBU of a type for private use, its size in two bytes.
	return append(dst, 0x80|first|1, 'a', 'v', '0', '1', 0x2a, 0, 0, 0x1f)
}

// leb2 returns n, modulo 2^14, as a LEB128 number of two bytes. AV1 frames bigger
// than that have a metadata OBU that ends early; nothing here decodes them.
func leb2(n int) uint16 { return uint16(n&0x7f|0x80)<<8 | uint16(n>>7&0x7f) }

// appendUnit appends a NAL unit with its length.
func appendUnit(dst, unit []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(unit)))
	return append(dst, unit...)
}

// fillerUnit appends an SEI unit of user data so that it takes n bytes with its
// length, or one less where the size cannot be said.
func fillerUnit(dst, sei []byte, n int) []byte {
	room := n - 4 - len(sei) - 2 // for size and data, without the size's last byte and the stop bit
	ff := room / 256             // each 0xff of the size stands for 255 bytes
	data := min(room-ff, 255*ff+254)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(sei)+ff+1+data+1))
	dst = append(dst, sei...)
	for range ff {
		dst = append(dst, 0xff)
	}
	dst = append(dst, byte(data-255*ff))
	at := len(dst)
	dst = append(dst, make([]byte, data)...)
	pattern(dst[at:], int64(n))
	return append(dst, 0x80)
}

// pattern fills dst with bytes from 0x80 up that depend on seed.
func pattern(dst []byte, seed int64) {
	x := uint64(seed)*0x9e3779b97f4a7c15 + 0x1234567
	var w [8]byte
	for len(dst) > 0 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		binary.LittleEndian.PutUint64(w[:], x|0x8080808080808080)
		dst = dst[copy(dst, w[:]):]
	}
}
