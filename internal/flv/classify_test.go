package flv

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
)

// unhex turns "17 01 'avc1' ff" into bytes.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	var out []byte
	for _, w := range strings.Fields(s) {
		if q, ok := strings.CutPrefix(w, "'"); ok {
			out = append(out, strings.TrimSuffix(q, "'")...)
			continue
		}
		b, err := hex.DecodeString(w)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b...)
	}
	return out
}

func TestClassifyVideo(t *testing.T) {
	f := func(name, payload string, codec Codec, flags Flags) {
		t.Helper()
		if c, g := Classify(Video, unhex(t, payload)); c != codec || g != flags {
			t.Errorf("%s (%s): %v %05b, want %v %05b", name, payload, c, g, codec, flags)
		}
	}
	const key = Frame | Keyframe
	f("empty", "", None, 0)

	f("AVC header", "17 00 000000 01640028", H264, Header)
	f("AVC key", "17 01 000000 00000001", H264, key)
	f("AVC key, negative composition time", "17 01 ffffd8 00000001", H264, key)
	f("AVC inter", "27 01 000050 00000001", H264, Frame)
	f("AVC disposable", "37 01 000000 00000001", H264, Frame)
	f("AVC end", "17 02 000000", H264, EndOfSequence)
	f("AVC key without a picture", "17 01 000000", H264, 0)
	f("AVC header without a configuration", "17 00 000000", H264, 0)
	f("AVC cut", "17", H264, 0)
	f("AVC packet type 3", "17 03 000000 00", H264, 0)
	f("command frame", "57 00", None, 0)
	f("HEVC by number", "1c 00 000000 01", H265, Header)
	f("HEVC by number, key", "1c 01 000000 01", H265, key)
	f("AV1 by number", "1d 01 000000 01", AV1, key)
	f("H.263", "12 00", H263, key)
	f("H.263 inter", "22", H263, Frame)
	f("VP6", "14 00", None, key)
	f("unknown number", "2f 00", None, Frame)

	// Read as a legacy header, 0x90 would be a key frame of codec 0 (CASES B2).
	f("HEVC", "90 'hvc1' 01", H265, Header)
	f("AV1", "90 'av01' 81", AV1, Header)
	f("VP9", "90 'vp09' 01", VP9, Header)
	f("VP8", "90 'vp08' 01", VP8, Header)
	f("AVC by FourCC", "90 'avc1' 01", H264, Header)
	f("HEVC key", "91 'hvc1' 000000 00", H265, key)
	f("HEVC inter", "a1 'hvc1' ffffff 00", H265, Frame)
	f("HEVC key without time", "93 'hvc1' 00", H265, key)
	f("AV1 key", "91 'av01' 00", AV1, key)
	f("AV1 inter", "a1 'av01' 00", AV1, Frame)
	f("VP9 key", "91 'vp09' 00", VP9, key)
	f("HEVC end", "92 'hvc1'", H265, EndOfSequence)
	f("HEVC picture missing", "91 'hvc1' 000000", H265, 0)
	f("AV1 picture missing", "91 'av01'", AV1, 0)
	f("HEVC configuration missing", "90 'hvc1'", H265, 0)
	f("metadata", "94 'hvc1' 02", H265, 0)
	f("AV1 in MPEG-2 TS form", "95 'av01' 80", AV1, Header)
	f("unknown FourCC", "91 'xxxx' 00", None, key)
	f("FourCC cut", "91 'hvc'", None, 0)
	f("command", "d0 'hvc1' 01", None, 0)
	f("command frame that is metadata", "d4 'hvc1' 01", H265, 0)
	f("one track", "96 01 'hvc1' 00 000000 00", H265, key)
	f("many tracks", "96 10 'av01' 00 000001 81", AV1, Header)
	f("one track without a picture", "96 01 'av01' 00", AV1, 0)
	f("tracks cut", "96", None, 0)
	f("prefix", "97 00 ff 01 'av01' 00", AV1, key)
	f("prefix of three bytes, nanoseconds", "97 02 000064 00 'hvc1' 01", H265, Header)
	f("two prefixes", "97 00 aa 07 00 bb 01 'av01' 00", AV1, key)
	f("long prefix", "97 ff 0100 "+strings.Repeat("00", 257)+" 01 'av01' 00", AV1, key)
	f("prefix cut", "97 05 00", None, 0)
	f("prefix alone", "97", None, 0)
	f("long prefix cut", "97 ff 01", None, 0)
}

func TestClassifyAudio(t *testing.T) {
	f := func(name, payload string, codec Codec, flags Flags) {
		t.Helper()
		if c, g := Classify(Audio, unhex(t, payload)); c != codec || g != flags {
			t.Errorf("%s (%s): %v %05b, want %v %05b", name, payload, c, g, codec, flags)
		}
	}
	f("empty", "", None, 0)
	f("AAC header", "af 00 1210", AAC, Header)
	f("AAC frame", "af 01 21", AAC, Frame)
	f("AAC of one byte", "af", AAC, 0)
	f("AAC without a frame", "af 01", AAC, 0)
	f("AAC without a configuration", "af 00", AAC, 0)
	f("MP3", "2f ff", MP3, Frame)
	f("MP3 at 8 kHz", "ee ff", MP3, Frame)
	f("A-law", "72 00", PCM, Frame)
	f("Speex", "b2 00", Speex, Frame)
	f("Nellymoser", "62 00", None, Frame)
	f("Opus by number", "df 00 00", Opus, Header)
	f("Opus by number, frame", "df 01 00", Opus, Frame)
	f("Opus", "90 'Opus' 00", Opus, Header)
	f("Opus frame", "91 'Opus' 00", Opus, Frame)
	f("AAC by FourCC", "90 'mp4a' 12", AAC, Header)
	f("MP3 by FourCC", "91 '.mp3' ff", MP3, Frame)
	f("AC-3", "91 'ac-3' 0b", AC3, Frame)
	f("E-AC-3", "91 'ec-3' 0b", EAC3, Frame)
	f("FLAC", "90 'fLaC' 00", FLAC, Header)
	f("FLAC end", "92 'fLaC'", FLAC, EndOfSequence)
	f("channel order", "94 'mp4a' 01 02 00000003", AAC, 0)
	f("without a frame", "91 'mp4a'", AAC, 0)
	f("one track", "95 01 'Opus' 00 00", Opus, Frame)
	f("tracks cut", "95", None, 0)
	f("prefix", "97 00 00 01 'Opus' 00", Opus, Frame)
	f("cut", "91 'Op", None, 0)
}

func TestClassifyScript(t *testing.T) {
	f := func(payload string, flags Flags) {
		t.Helper()
		if c, g := Classify(Script, unhex(t, payload)); c != None || g != flags {
			t.Errorf("%s: %v %05b, want %05b", payload, c, g, flags)
		}
	}
	f("02 000a 'onMetaData'", Metadata) // alone, as some encoders send it (CASES B9)
	f("02 000a 'onMetaData' 08 00000000 000009", Metadata)
	f("02 0009 'onCuePoint' 03 000009", 0)
	f("02 000a 'onMeta", 0)
	f("", 0)
	if _, g := Classify(Kind(20), []byte{0x17, 1}); g != 0 {
		t.Errorf("an unknown kind has flags %05b", g)
	}
}

func TestWords(t *testing.T) {
	seen := map[string]bool{}
	for c := range codecs {
		if w := c.String(); w == "" || seen[w] {
			t.Errorf("codec %d is %q, empty or twice", c, w)
		}
		seen[c.String()] = true
	}
	for _, k := range []Kind{0, Audio, Video, Script, 255} {
		if k.String() == "" {
			t.Errorf("kind %d has no word", k)
		}
	}
	if codecs.String() != "unknown" {
		t.Error("a codec that does not exist has a name")
	}
}

// Whatever comes: no panic, flags that fit together, and nothing that depends on
// bytes behind the payload.
func FuzzClassify(f *testing.F) {
	for _, s := range []string{
		"17 01 000000 00", "27 01 ffffff 00", "90 'hvc1' 01", "96 11 'av01' 00 000001 00", "97 02 000064 00 'hvc1' 01",
		"af 01 21", "95 01 'Opus' 00 00", "02 000a 'onMetaData' 08 00000000 000009",
	} {
		f.Add(unhex(f, s))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		for _, kind := range []Kind{Audio, Video, Script, 0} {
			codec, flags := Classify(kind, p)
			if codec >= codecs {
				t.Errorf("codec %d", codec)
			}
			if kind != Video && flags&Keyframe != 0 || flags&Keyframe != 0 && flags&Frame == 0 || flags&Frame != 0 && flags&(Header|EndOfSequence|Metadata) != 0 {
				t.Errorf("%v %x has flags %05b", kind, p, flags)
			}
			if len(p) == 0 && flags != 0 {
				t.Errorf("%v without a payload has flags %05b", kind, flags)
			}
			longer := append(bytes.Clone(p), 1, 2, 3)[:len(p)]
			if c, g := Classify(kind, longer); c != codec || g != flags {
				t.Errorf("%v %x: %v %b and %v %b", kind, p, codec, flags, c, g)
			}
		}
	})
}
