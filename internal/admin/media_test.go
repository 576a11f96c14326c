package admin

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

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
	f("multitrack", stream.Stats{Video: video([]byte{0x96, 0, 'a', 'v', 'c', '1', 0}, avcConfig), Meta: meta(640, 360)}, 1280, 720)
	f("a header that is cut off", stream.Stats{Video: video(legacyAVC, avcConfig[:12]), Meta: meta(640, 360)}, 640, 360)
	f("a picture is no header", stream.Stats{Video: video([]byte{0x17, 1, 0, 0, 0}, avcConfig)}, 0, 0)
}

// TestTracks is what /v1/streams says of the tracks beyond the codec.
func TestTracks(t *testing.T) {
	if v, a := videoOf(stream.Stats{}), audioOf(stream.Stats{}); v != nil || a != nil {
		t.Errorf("without tracks: %+v and %+v", v, a)
	}
	aac := []byte{0xaf, 0, 0x12, 0x10} // ISO/IEC 14496-3, 1.6.2.1: LC, 44100 Hz, stereo
	st := stream.Stats{
		HasVideo: true, VideoCodec: flv.H264, Video: video([]byte{0x17, 0, 0, 0, 0}, avcConfig), FPS: 25, GOP: 2 * time.Second,
		HasAudio: true, AudioCodec: flv.AAC, Audio: flv.New(flv.Audio, 0, aac),
	}
	if v, want := videoOf(st), (Video{"h264", "High", "3.1", 1280, 720, 25, 2000}); v == nil || *v != want {
		t.Errorf("video is %+v, want %+v", v, want)
	}
	if a, want := audioOf(st), (Audio{"aac", "LC", 44100, 2}); a == nil || *a != want {
		t.Errorf("audio is %+v, want %+v", a, want)
	}
	// Tracks whose headers are missing or say nothing are still tracks.
	st.Video, st.Audio = flv.Tag{}, flv.New(flv.Audio, 0, []byte{0xaf, 0, 0xff})
	if v, want := videoOf(st), (Video{Codec: "h264", FPS: 25, GOPms: 2000}); v == nil || *v != want {
		t.Errorf("video without its header is %+v, want %+v", v, want)
	}
	if a, want := audioOf(st), (Audio{Codec: "aac"}); a == nil || *a != want {
		t.Errorf("audio with a bad header is %+v, want %+v", a, want)
	}
}
