package admin

import (
	"encoding/binary"
	"math"
	"testing"

	"millrace/internal/flv"
	"millrace/internal/stream"
)

// avcConfig is an AVCDecoderConfigurationRecord of a 1280x720 picture.
var avcConfig = func() []byte {
	sps := []byte{0x67, 0x64, 0x00, 0x1f, 0xac, 0xd9, 0x40, 0x50, 0x05, 0xbb, 0x01, 0x6c, 0x80, 0x00, 0x00, 0x03, 0x00, 0x80, 0x00, 0x00, 0x1e, 0x07, 0x8c, 0x18, 0xcb}
	b := append([]byte{1, 0x64, 0, 0x1f, 0xff, 0xe1, 0, byte(len(sps))}, sps...)
	return append(b, 1, 0, 4, 0x68, 0xeb, 0xe3, 0xcb)
}()

// hevcConfig is an HEVCDecoderConfigurationRecord of a 1920x1080 picture.
var hevcConfig = func() []byte {
	sps := []byte{
		0x42, 0x01, 0x01, 0x01, 0x60, 0x00, 0x00, 0x03, 0x00, 0x90, 0x00, 0x00, 0x03, 0x00, 0x00, 0x03,
		0x00, 0x78, 0xa0, 0x03, 0xc0, 0x80, 0x10, 0xe5, 0x96, 0x66, 0x69, 0x24, 0xca, 0xe0, 0x10, 0x00,
		0x00, 0x03, 0x00, 0x10, 0x00, 0x00, 0x03, 0x01, 0xe0, 0x80,
	}
	b := make([]byte, 22)
	b[0] = 1
	b = append(b, 2)                         // arrays
	b = append(b, 0xa0, 0, 1, 0, 2, 0x40, 1) // a VPS
	b = append(b, 0xa1, 0, 1, 0, byte(len(sps)))
	return append(b, sps...)
}()

// av1Config is an AV1CodecConfigurationRecord of a 1920x804 picture.
var av1Config = []byte{0x81, 0x08, 0x0c, 0x00, 0x0a, 0x0b, 0x00, 0x00, 0x00, 0x42, 0xa7, 0xbf, 0xe4, 0x60, 0x0d, 0x00, 0x40}

func video(head []byte, config []byte) flv.Tag {
	return flv.New(flv.Video, 0, append(append([]byte{}, head...), config...))
}

func meta(width, height float64) flv.Tag {
	p := []byte("\x02\x00\x0aonMetaData\x08\x00\x00\x00\x02")
	for key, v := range map[string]float64{"width": width, "height": height} {
		p = append(p, 0, byte(len(key)))
		p = append(append(p, key...), 0)
		p = binary.BigEndian.AppendUint64(p, math.Float64bits(v))
	}
	return flv.New(flv.Script, 0, append(p, 0, 0, 9))
}

func TestResolution(t *testing.T) {
	legacyAVC, legacyHEVC := []byte{0x17, 0, 0, 0, 0}, []byte{0x1c, 0, 0, 0, 0}
	ex := func(fourcc string) []byte { return append([]byte{0x90}, fourcc...) }
	f := func(name string, st stream.Stats, w, h int) {
		t.Helper()
		if gw, gh := Resolution(st); gw != w || gh != h {
			t.Errorf("%s: got %dx%d, want %dx%d", name, gw, gh, w, h)
		}
	}
	f("nothing", stream.Stats{}, 0, 0)
	f("H.264", stream.Stats{Video: video(legacyAVC, avcConfig)}, 1280, 720)
	f("H.264 enhanced", stream.Stats{Video: video(ex("avc1"), avcConfig)}, 1280, 720)
	f("H.265 as codec 12", stream.Stats{Video: video(legacyHEVC, hevcConfig)}, 1920, 1080)
	f("H.265 enhanced", stream.Stats{Video: video(ex("hvc1"), hevcConfig)}, 1920, 1080)
	f("AV1", stream.Stats{Video: video(ex("av01"), av1Config)}, 1920, 804)
	f("the header wins", stream.Stats{Video: video(legacyAVC, avcConfig), Meta: meta(1, 2)}, 1280, 720)
	f("metadata", stream.Stats{Meta: meta(640, 360)}, 640, 360)
	f("VP9 by metadata", stream.Stats{Video: video(ex("vp09"), []byte{1, 0, 0, 0}), Meta: meta(640, 360)}, 640, 360)
	f("absurd metadata", stream.Stats{Meta: meta(1e300, 360)}, 0, 0)
	f("negative metadata", stream.Stats{Meta: meta(-640, 360)}, 0, 0)
	f("not a number", stream.Stats{Meta: meta(math.NaN(), 360)}, 0, 0)
	f("multitrack by metadata", stream.Stats{Video: video([]byte{0x96, 0, 'a', 'v', 'c', '1'}, avcConfig), Meta: meta(640, 360)}, 640, 360)
}

// FuzzResolution feeds sequence headers and metadata of strangers.
func FuzzResolution(f *testing.F) {
	for _, head := range [][]byte{{0x17, 0, 0, 0, 0}, {0x1c, 0, 0, 0, 0}, []byte("\x90avc1"), []byte("\x90hvc1"), []byte("\x90av01")} {
		for _, config := range [][]byte{avcConfig, hevcConfig, av1Config} {
			f.Add(append(append([]byte{}, head...), config...))
		}
	}
	f.Add(meta(640, 360).Payload())
	f.Fuzz(func(t *testing.T, p []byte) {
		st := stream.Stats{Video: flv.New(flv.Video, 0, p), Meta: flv.New(flv.Script, 0, p)}
		if w, h := Resolution(st); w < 0 || h < 0 || w > 16384 || h > 16384 || (w == 0) != (h == 0) {
			t.Errorf("%dx%d", w, h)
		}
	})
}
