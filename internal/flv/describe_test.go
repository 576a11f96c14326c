package flv

import (
	"bytes"
	"strings"
	"testing"

	"github.com/bluenviron/mediacommon/v2/pkg/codecs/av1"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h265"
	"pgregory.net/rapid"
)

// Decoder configurations as encoders made them: x264 and x265, ffmpeg's AAC, and
// libaom and rav1e by way of ffmpeg. The settings are the names.
const (
	avc1080High      = "01640028ffe1001b67640028acd940780227e5c044000003000400000300c83c60c65801000668ebe3cb22c0fdf8f800"
	avc480Baseline   = "0142c01effe1001d6742c01ed900d83de6fff050005011000003000100000300320f162e4801000568cb83cb20"
	avc576Interlaced = "014d4016ffe1001c674d4016f405a126ffc010000b44000003000800000300c87c50aa8001000468de0fc8"
	hevcMainVPS      = "20000100184001 0c01ffff016000000300900000030000030078959409"
	hevcMainSPS      = "210001002b 420101016000000300900000030000030078a003c0801107cb965654a4c2f0168080000003008000000c84"
	hevcMain         = "01016000000090000000000078f000fcfdf8f800000f02" + hevcMainVPS + hevcMainSPS
	hevcMain10       = "01022000000090000000000078f000fcfdfafa00000f01 2100010030 420101022000000300900000030000030078a002b080301cdb6595952930bffc20002005a02000000300200000030321"
	av1Libaom        = "81000c00 0a0b000000043cfeccdaf90040"
	av1Rav1e         = "811f0c00 0a0e000000fa1e7f66210a88101010a0"
	vp9Profile0      = "010000000015820202020000"
)

func describe(t testing.TB, kind Kind, payload string) (Description, bool) {
	t.Helper()
	return Describe(New(kind, 0, unhex(t, payload)))
}

func TestDescribe(t *testing.T) {
	f := func(name string, kind Kind, payload string, want Description) {
		t.Helper()
		if got, ok := describe(t, kind, payload); !ok || got != want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, ok, want)
		}
	}
	high := Description{Codec: H264, Profile: "High", Level: "4", Width: 1920, Height: 1080}
	f("AVC, cropped to 1080 lines", Video, "17 00 000000 "+avc1080High, high)
	f("AVC by FourCC", Video, "90 'avc1' "+avc1080High, high)
	f("AVC behind a prefix", Video, "97 00 00 00 'avc1' "+avc1080High, high)
	f("AVC, one track", Video, "96 00 'avc1' 00 "+avc1080High, high)
	f("AVC, first of many tracks", Video, "96 10 'avc1' 00 000031 "+avc1080High+" 01 000001 ff", high)
	f("AVC baseline", Video, "17 00 000000 "+avc480Baseline, Description{Codec: H264, Profile: "Constrained Baseline", Level: "3", Width: 854, Height: 480})
	f("AVC interlaced", Video, "17 00 000000 "+avc576Interlaced, Description{Codec: H264, Profile: "Main", Level: "2.2", Width: 720, Height: 576})

	main := Description{Codec: H265, Profile: "Main", Level: "4", Width: 1920, Height: 1080}
	f("HEVC", Video, "90 'hvc1' "+hevcMain, main)
	f("HEVC by number", Video, "1c 00 000000 "+hevcMain, main)
	f("HEVC 10 bits", Video, "90 'hvc1' "+hevcMain10, Description{Codec: H265, Profile: "Main 10", Level: "4", Width: 1366, Height: 768})

	f("AV1", Video, "90 'av01' "+av1Libaom, Description{Codec: AV1, Profile: "Main", Level: "2", Width: 320, Height: 180})
	f("AV1, level not bounded", Video, "90 'av01' "+av1Rav1e, Description{Codec: AV1, Profile: "Main", Width: 320, Height: 180})
	f("AV1 behind a temporal delimiter", Video, "90 'av01' 81000c00 1200 0a0b000000043cfeccdaf90040", Description{Codec: AV1, Profile: "Main", Level: "2", Width: 320, Height: 180})
	f("AV1 with timing", Video, "90 'av01' 81080c00 0804000000040000 00f300000e5577f873d0027d1010101040", Description{Codec: AV1, Profile: "Main", Level: "4", Width: 1920, Height: 1082})
	f("VP9", Video, "90 'vp09' "+vp9Profile0, Description{Codec: VP9, Profile: "0", Level: "2.1"})

	f("AAC", Audio, "af 00 121056e500", Description{Codec: AAC, Profile: "LC", SampleRate: 44100, Channels: 2})
	f("AAC mono", Audio, "af 00 138856e500", Description{Codec: AAC, Profile: "LC", SampleRate: 22050, Channels: 1})
	f("AAC 7.1", Audio, "af 00 11b8", Description{Codec: AAC, Profile: "LC", SampleRate: 48000, Channels: 8})
	f("AAC by FourCC", Audio, "90 'mp4a' 1190", Description{Codec: AAC, Profile: "LC", SampleRate: 48000, Channels: 2})
	f("HE-AAC", Audio, "af 00 2b920800", Description{Codec: AAC, Profile: "HE-AAC", SampleRate: 44100, Channels: 2})
	f("HE-AAC v2", Audio, "af 00 eb8a0800", Description{Codec: AAC, Profile: "HE-AAC v2", SampleRate: 44100, Channels: 2})
	f("Opus", Audio, "90 'Opus' 'OpusHead' 01 02 3801 80bb0000 0000 00", Description{Codec: Opus, SampleRate: 48000, Channels: 2})
}

func TestDescribeRefuses(t *testing.T) {
	f := func(name string, kind Kind, payload string) {
		t.Helper()
		if got, ok := describe(t, kind, payload); ok || got != (Description{}) {
			t.Errorf("%s: %+v, %v, want nothing", name, got, ok)
		}
	}
	f("empty", Video, "")
	f("a frame", Video, "17 01 000000 "+avc1080High)
	f("no configuration", Video, "17 00 000000")
	f("metadata", Script, "02 000a 'onMetaData'")
	f("a codec without a form", Audio, "90 'fLaC' 00")
	f("AVC version 2", Video, "17 00 000000 02"+avc1080High[2:])
	f("AVC without an SPS", Video, "17 00 000000 01640028ffe0 0000")
	f("AVC with an empty SPS", Video, "17 00 000000 01640028ffe1 0000")
	f("AVC with a PPS for an SPS", Video, "17 00 000000 01640028ffe1 0004 68ebe3cb")
	f("HEVC without arrays", Video, "90 'hvc1' "+hevcMain[:44]+"00")
	f("HEVC with a VPS for an SPS", Video, "90 'hvc1' "+hevcMain[:44]+"01 210001 0006 40010c01ffff")
	f("AV1 with another marker", Video, "90 'av01' 01"+av1Libaom[2:])
	f("AV1 without units", Video, "90 'av01' 81000c00")
	f("AV1 unit over the end", Video, "90 'av01' 81000c00 0a7f0000")
	f("AV1 size over 64 bits", Video, "90 'av01' 81000c00 0affffffffffffffffffff7f")
	f("AAC object type 31", Audio, "af 00 f800")
	f("AAC sample rate 13", Audio, "af 00 1690")
	f("AAC sample rate 0", Audio, "af 00 178000 0010")
	f("Opus without channels", Audio, "90 'Opus' 'OpusHead' 01 00 3801 80bb0000 0000 00")
	f("many tracks, size over the end", Video, "96 10 'avc1' 00 0000ff "+avc1080High)
	f("too long", Video, "17 00 000000 "+avc1080High+strings.Repeat("00", maxConfig))

	// Every cut of a good one: some still have all that is asked for, none panics.
	for _, s := range []string{"17 00 000000 " + avc1080High, "90 'hvc1' " + hevcMain, "90 'av01' " + av1Libaom, "96 10 'avc1' 00 000031 " + avc1080High} {
		whole := unhex(t, s)
		for n := range whole {
			if d, ok := Describe(New(Video, 0, whole[:n])); !ok && d != (Description{}) {
				t.Errorf("%x: %+v", whole[:n], d)
			}
		}
	}
	if _, ok := Describe(Tag{Kind: Video, Flags: Header}); ok {
		t.Error("a tag without bytes is described")
	}
}

// An SPS of ours whose cropping would wrap round to a likely size.
func TestDescribeDoesNotWrap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &bitWriter{}
		b.u(8, 0x67)
		b.u(24, 0x42c01e)
		b.ue(0) // id
		b.ue(0) // log2_max_frame_num
		b.ue(2) // pic_order_cnt_type
		b.ue(1)
		b.u(1, 0)
		w, h := rapid.Uint32Range(0, 1<<31).Draw(t, "width"), rapid.Uint32Range(0, 1<<31).Draw(t, "height")
		crop := rapid.SliceOfN(rapid.Uint32Range(0, 1<<31), 4, 4).Draw(t, "crop")
		b.ue(w)
		b.ue(h)
		b.u(1, 1)
		b.u(1, 1)
		b.u(1, 1)
		for _, c := range crop {
			b.ue(c)
		}
		b.u(2, 1) // no VUI, stop bit
		sps := b.bytes()
		config := append([]byte{1, 0x42, 0xc0, 0x1e, 0xff, 0xe1, 0, byte(len(sps))}, sps...)
		d, ok := Describe(New(Video, 0, append([]byte{0x17, 0, 0, 0, 0}, config...)))
		wantW := (int64(w)+1)*16 - 2*(int64(crop[0])+int64(crop[1]))
		wantH := (int64(h)+1)*16 - 2*(int64(crop[2])+int64(crop[3]))
		if ok && (int64(d.Width) != wantW || int64(d.Height) != wantH) {
			t.Fatalf("%dx%d, want %dx%d or nothing", d.Width, d.Height, wantW, wantH)
		}
	})
}

// Where the library reads a parameter set to its end, both agree on the size.
func TestDescribeAgreesWithTheLibrary(t *testing.T) {
	hevc, av := unhex(t, hevcMain), unhex(t, av1Libaom)
	const hevcAt, avAt = 23 + 29 + 5, 4 // where the SPS and the sequence header begin
	if err := new(h265.SPS).Unmarshal(hevc[hevcAt:]); err != nil {
		t.Fatal(err)
	}
	if err := new(av1.SequenceHeader).Unmarshal(av[avAt : avAt+13]); err != nil {
		t.Fatal(err)
	}
	edit := func(t *rapid.T, config []byte, from int) []byte {
		out := bytes.Clone(config)
		for range rapid.IntRange(0, 3).Draw(t, "edits") {
			out[rapid.IntRange(from, len(out)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		}
		return out
	}
	rapid.Check(t, func(t *rapid.T) {
		config := edit(t, hevc, hevcAt+2)
		var sps h265.SPS
		if sps.Unmarshal(config[hevcAt:]) == nil && sps.Width() > 0 && sps.Height() > 0 && sps.Width() <= maxSide && sps.Height() <= maxSide {
			if d, ok := Describe(New(Video, 0, append([]byte("\x90hvc1"), config...))); !ok || d.Width != sps.Width() || d.Height != sps.Height() {
				t.Fatalf("HEVC %x: %+v, %v, the library has %dx%d", config, d, ok, sps.Width(), sps.Height())
			}
		}
		config = edit(t, av, avAt+2)
		var seq av1.SequenceHeader
		if seq.Unmarshal(config[avAt:]) == nil && seq.Width() <= maxSide && seq.Height() <= maxSide {
			if d, ok := Describe(New(Video, 0, append([]byte("\x90av01"), config...))); !ok || d.Width != seq.Width() || d.Height != seq.Height() {
				t.Fatalf("AV1 %x: %+v, %v, the library has %dx%d", config, d, ok, seq.Width(), seq.Height())
			}
		}
	})
}

// bitWriter writes a parameter set, without emulation prevention where it is not
// needed: at most one zero byte is written in a row by these tests.
type bitWriter struct {
	b []byte
	n int
}

func (w *bitWriter) u(n int, v uint64) {
	for n--; n >= 0; n-- {
		if w.n%8 == 0 {
			w.b = append(w.b, 0)
		}
		w.b[w.n/8] |= byte(v>>n&1) << (7 - w.n%8)
		w.n++
	}
}

func (w *bitWriter) ue(v uint32) {
	n := 0
	for x := uint64(v) + 1; x > 1; x >>= 1 {
		n++
	}
	w.u(2*n+1, uint64(v)+1)
}

// bytes returns the NAL unit with emulation prevention (H.264, 7.4.1.1).
func (w *bitWriter) bytes() []byte {
	out := []byte{}
	for _, c := range w.b {
		if n := len(out); n >= 2 && out[n-1] == 0 && out[n-2] == 0 && c <= 3 {
			out = append(out, 3)
		}
		out = append(out, c)
	}
	return out
}

func FuzzDescribe(f *testing.F) {
	for _, s := range []string{avc1080High, avc480Baseline, avc576Interlaced} {
		f.Add(true, unhex(f, "17 00 000000 "+s))
	}
	for _, s := range []string{
		"90 'hvc1' " + hevcMain, "1c 00 000000 " + hevcMain10, "90 'av01' " + av1Libaom, "90 'av01' " + av1Rav1e,
		"90 'vp09' " + vp9Profile0, "96 10 'avc1' 00 000031 " + avc1080High, "97 00 00 00 'avc1' " + avc1080High,
	} {
		f.Add(true, unhex(f, s))
	}
	for _, s := range []string{"af 00 121056e500", "af 00 2b920800", "90 'Opus' 'OpusHead' 01 02 3801 80bb0000 0000 00"} {
		f.Add(false, unhex(f, s))
	}
	f.Fuzz(func(t *testing.T, video bool, payload []byte) {
		kind := Audio
		if video {
			kind = Video
		}
		tag := New(kind, 0, payload)
		d, ok := Describe(tag)
		if !ok && d != (Description{}) {
			t.Errorf("%+v with ok false", d)
		}
		if d.Width < 0 || d.Width > maxSide || d.Height < 0 || d.Height > maxSide || (d.Width == 0) != (d.Height == 0) ||
			d.SampleRate < 0 || d.SampleRate > maxSampleRate || d.Channels < 0 || d.Channels > maxChannels || len(d.Level) > 4 {
			t.Errorf("%+v", d)
		}
		if !bytes.Equal(tag.Payload(), payload) {
			t.Error("the payload was written")
		}
	})
}
