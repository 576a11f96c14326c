package flv

import (
	"bufio"
	"bytes"
	"io"
	"testing"

	goflv "github.com/yutopp/go-flv"
	"github.com/yutopp/go-flv/tag"
	"pgregory.net/rapid"
)

// unit is an AVC or AAC tag, which is what the other implementation understands.
type unit struct {
	video  bool
	time   uint32
	frame  uint8 // frame type
	packet uint8
	cts    int32
	body   []byte
}

func drawUnit(t *rapid.T) unit {
	u := unit{
		video:  rapid.Bool().Draw(t, "video"),
		time:   uint32(rapid.SampledFrom(awkward).Draw(t, "time")),
		packet: rapid.Uint8Range(0, 1).Draw(t, "packet"),
		body:   rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "body"),
	}
	if u.video {
		u.frame = rapid.Uint8Range(1, 4).Draw(t, "frame type")
		u.cts = rapid.Int32Range(-1<<23, 1<<23-1).Draw(t, "composition time")
	}
	return u
}

// ours makes the tag with this package.
func (u unit) ours() Tag {
	if !u.video {
		return New(Audio, int64(u.time), append([]byte{0xaf, u.packet}, u.body...))
	}
	head := []byte{u.frame<<4 | 7, u.packet, byte(u.cts >> 16), byte(u.cts >> 8), byte(u.cts)}
	return New(Video, int64(u.time), append(head, u.body...))
}

// theirs makes the tag with go-flv.
func (u unit) theirs() *tag.FlvTag {
	if !u.video {
		return &tag.FlvTag{TagType: tag.TagTypeAudio, Timestamp: u.time, Data: &tag.AudioData{
			SoundFormat: tag.SoundFormatAAC, SoundRate: tag.SoundRate44kHz, SoundSize: tag.SoundSize16Bit,
			SoundType: tag.SoundTypeStereo, AACPacketType: tag.AACPacketType(u.packet), Data: bytes.NewReader(u.body),
		}}
	}
	return &tag.FlvTag{TagType: tag.TagTypeVideo, Timestamp: u.time, Data: &tag.VideoData{
		FrameType: tag.FrameType(u.frame), CodecID: tag.CodecIDAVC, AVCPacketType: tag.AVCPacketType(u.packet),
		CompositionTime: u.cts, Data: bytes.NewReader(u.body),
	}}
}

// What go-flv writes, we read as what we would have written ourselves.
func TestWrittenByGoFLV(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.SliceOfN(rapid.Custom(drawUnit), 1, 10).Draw(t, "units")
		var b bytes.Buffer
		enc, err := goflv.NewEncoder(&b, goflv.FlagsAudio|goflv.FlagsVideo)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range units {
			if err := enc.Encode(u.theirs()); err != nil {
				t.Fatal(err)
			}
		}
		got, err := readAll(NewReader(&b, 1000))
		if err != io.EOF || len(got) != len(units) {
			t.Fatalf("%d tags, %v, want %d", len(got), err, len(units))
		}
		for i, u := range units {
			if want := u.ours(); !same(got[i], want) {
				t.Fatalf("tag %d: %x, want %x", i, got[i].Wire, want.Wire)
			}
		}
	})
}

// What we write, go-flv reads as what it was, and it agrees on key frames and headers.
func TestReadByGoFLV(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.SliceOfN(rapid.Custom(drawUnit), 1, 10).Draw(t, "units")
		b := AppendFileHeader(nil, true, true)
		b = b[:len(b)-4] // that reader takes the size before each tag
		size := make([]byte, 4)
		for _, u := range units {
			wire := u.ours().Wire
			b = append(append(b, size...), wire[:len(wire)-4]...)
			size = wire[len(wire)-4:]
		}
		dec, err := goflv.NewDecoder(bufio.NewReader(bytes.NewReader(append(b, size...))))
		if err != nil {
			t.Fatal(err)
		}
		if f := dec.Header().Flags; f != goflv.FlagsAudio|goflv.FlagsVideo {
			t.Fatalf("flags %b", f)
		}
		for i, u := range units {
			var got tag.FlvTag
			if err := dec.Decode(&got); err != nil {
				t.Fatalf("tag %d: %v", i, err)
			}
			var body io.Reader
			ours := u.ours()
			var header, key bool
			switch d := got.Data.(type) {
			case *tag.AudioData:
				body, header = d.Data, d.AACPacketType == tag.AACPacketTypeSequenceHeader
			case *tag.VideoData:
				body, header = d.Data, d.AVCPacketType == tag.AVCPacketTypeSequenceHeader
				key = d.FrameType == tag.FrameTypeKeyFrame && !header
				if d.CompositionTime != u.cts {
					t.Fatalf("tag %d: composition time %d, want %d", i, d.CompositionTime, u.cts)
				}
			}
			rest, err := io.ReadAll(body)
			if err != nil || !bytes.Equal(rest, u.body) || got.Timestamp != u.time || uint8(got.TagType) != uint8(ours.Kind) {
				t.Fatalf("tag %d: %+v %x, %v, want %+v", i, got, rest, err, u)
			}
			if ours.Is(Header) != header || ours.Is(Keyframe) != key {
				t.Fatalf("tag %d: flags %05b, header %v, key %v", i, ours.Flags, header, key)
			}
		}
	})
}
