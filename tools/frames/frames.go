// Package frames makes synthetic streams whose frames can be checked one by one,
// and reads the stamp that each of them carries. flvgen and the floor program of
// bench/fanout make frames with it; flvpull checks them.
//
// A payload is what an encoder would send: a codec header, then for H.264 three
// NAL units: an SEI message "user data, unregistered" with the stamp, a second one
// with filler up to the frame's size, and a small slice that decodes to a grey
// picture. AAC frames carry stamp and filler in a data stream element before a
// silent channel pair. H.265 and AV1 have true configuration records, but frames
// that only look like frames.
//
//	h264, legacy     17|27 01 cts(3) | len(4) 06 05 44 | stamp      offset 12
//	h265, legacy     1c|2c 01 cts(3) | len(4) 4e 01 05 44 | stamp   offset 13
//	h265, enhanced   91|a1 hvc1 cts(3) | len(4) 4e 01 05 44 | stamp offset 16
//	av1, enhanced    91|a1 av01 | 2a size(2) 1f | stamp             offset 9
//	aac              af 01 | 81 count | stamp                       offset 4
//
// The offset depends on the first bytes of the payload alone; [Offset] knows it.
// The stamp is 68 bytes long. Numbers in it are big-endian with seven bits in a
// byte whose high bit is set, so that no start code can arise in a NAL unit:
//
//	at  0  16  the UUID "millrace-frame-1"
//	at 16   5  stream id
//	at 21   6  epoch: when the generator started, ms since 1970
//	at 27   6  sequence: position among all frames of the stream, from 0
//	at 33   6  number: position among the frames of its track, from 0
//	at 39   6  media time given to the server, ms
//	at 45   9  wall-clock time of sending, ns since 1970
//	at 54   4  size of the payload
//	at 58   5  CRC-32C of the payload behind the stamp
//	at 63   5  CRC-32C of the 63 bytes before
package frames

import (
	"errors"
	"hash/crc32"
	"math"
	"time"

	"millrace/internal/flv"
)

// StampSize is the length of a stamp in bytes.
const StampSize = 68

// PrefixSize is how much of a payload a reader must see to find the whole stamp.
const PrefixSize = 16 + StampSize

const magic = "millrace-frame-1"

// Positions in the stamp.
const (
	atStream = 16
	atEpoch  = 21
	atSeq    = 27
	atNumber = 33
	atMedia  = 39
	atSent   = 45
	atSize   = 54
	atBody   = 58
	atSum    = 63
)

// Errors of [Parse].
var (
	ErrNoStamp = errors.New("no stamp where one should be")
	ErrDamaged = errors.New("the stamp's checksum is wrong")
)

// Stamp is what a frame says about itself.
type Stamp struct {
	Stream uint32
	Epoch  int64  // ms since 1970; a generator that starts again has a later one
	Seq    int64  // among all frames of the stream
	Number int64  // among the frames of the track
	Media  int64  // ms, as given to the server: may pass 2^32
	Sent   int64  // ns since 1970
	Size   int    // of the payload
	Body   uint32 // CRC-32C of the payload behind the stamp
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum adds b to the checksum that [Stamp.Body] has of a payload's rest; it begins at 0.
func Sum(sum uint32, b []byte) uint32 { return crc32.Update(sum, castagnoli, b) }

// Put writes the stamp into the first StampSize bytes of dst.
func (s Stamp) Put(dst []byte) {
	copy(dst, magic)
	put7(dst[atStream:atEpoch], int64(s.Stream))
	put7(dst[atEpoch:atSeq], s.Epoch)
	put7(dst[atSeq:atNumber], s.Seq)
	put7(dst[atNumber:atMedia], s.Number)
	put7(dst[atMedia:atSent], s.Media)
	put7(dst[atSent:atSize], s.Sent)
	put7(dst[atSize:atBody], int64(s.Size))
	put7(dst[atBody:atSum], int64(s.Body))
	put7(dst[atSum:StampSize], int64(Sum(0, dst[:atSum])))
}

// Parse reads the stamp at the beginning of b.
func Parse(b []byte) (Stamp, error) {
	if len(b) < StampSize || string(b[:len(magic)]) != magic {
		return Stamp{}, ErrNoStamp
	}
	if get7(b[atSum:StampSize]) != int64(Sum(0, b[:atSum])) {
		return Stamp{}, ErrDamaged
	}
	return Stamp{
		Stream: uint32(get7(b[atStream:atEpoch])),
		Epoch:  get7(b[atEpoch:atSeq]),
		Seq:    get7(b[atSeq:atNumber]),
		Number: get7(b[atNumber:atMedia]),
		Media:  get7(b[atMedia:atSent]),
		Sent:   get7(b[atSent:atSize]),
		Size:   int(get7(b[atSize:atBody])),
		Body:   uint32(get7(b[atBody:atSum])),
	}, nil
}

func put7(dst []byte, v int64) {
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = byte(v) | 0x80
		v >>= 7
	}
}

func get7(b []byte) int64 {
	var v int64
	for _, c := range b {
		v = v<<7 | int64(c&0x7f)
	}
	return v
}

// Offset returns where in a payload the stamp is, judged by its first bytes, or -1
// if the payload is no frame that this package makes (a sequence header, say).
func Offset(kind flv.Kind, payload []byte) int {
	codec, flags := flv.Classify(kind, payload)
	if flags&flv.Frame == 0 {
		return -1
	}
	switch {
	case codec == flv.AAC:
		return 4
	case codec == flv.H264:
		return 12
	case codec == flv.H265 && payload[0]&0x80 == 0:
		return 13
	case codec == flv.H265:
		return 16
	case codec == flv.AV1 && payload[0]&0x80 != 0:
		return 9
	}
	return -1
}

// Codec is the video coding of a synthetic stream.
type Codec string

// The codings that can be made.
const (
	H264         Codec = "h264"
	H265         Codec = "h265"          // legacy codec id 12
	H265Enhanced Codec = "h265-enhanced" // FourCC hvc1
	AV1          Codec = "av1"           // FourCC av01
)

// Config describes a synthetic stream.
type Config struct {
	Stream    uint32
	Codec     Codec
	Width     int
	Height    int
	FPS       float64
	GOP       time.Duration
	VideoKbps int
	AudioKbps int
	NoVideo   bool
	NoAudio   bool
	BFrames   bool  // composition times as of B-frames, also negative ones
	Start     int64 // media time of the first frame, ms
	Epoch     int64 // ms since 1970
}

// DefaultConfig returns the stream of the fan-out figures: 2 Mbit/s video at 30
// frames a second, 64 kbit/s audio, a keyframe every two seconds.
func DefaultConfig() Config {
	return Config{
		Codec: H264, Width: 1280, Height: 720, FPS: 30, GOP: 2 * time.Second,
		VideoKbps: 2000, AudioKbps: 64,
	}
}

// Validate reports what cannot be made.
func (c Config) Validate() error {
	switch c.Codec {
	case H264, H265, H265Enhanced, AV1:
	default:
		return errors.New("codec must be h264, h265, h265-enhanced or av1")
	}
	switch {
	case c.NoVideo && c.NoAudio:
		return errors.New("a stream needs audio or video")
	case c.Width < 16 || c.Height < 16 || c.Width > 8192 || c.Height > 8192 || c.Width%2+c.Height%2 != 0:
		return errors.New("size must be even, 16x16 to 8192x8192")
	case !(c.FPS > 0 && c.FPS <= 1000):
		return errors.New("fps must be above 0 and at most 1000")
	case c.GOP.Seconds()*c.FPS < 1 || c.GOP > time.Hour:
		return errors.New("gop must be one frame to one hour")
	case c.VideoKbps < 1 || c.VideoKbps > 1_000_000:
		return errors.New("video kbit/s must be 1 to 1000000")
	case c.AudioKbps < 1 || c.AudioKbps > 1_000:
		return errors.New("audio kbit/s must be 1 to 1000")
	case c.Start < 0 || c.Start > math.MaxUint32:
		return errors.New("start must be 0 to 4294967295 ms")
	}
	return nil
}
