package frames

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/flv"
)

func TestStampRoundTrip(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		want := Stamp{
			Stream: rnd.Uint32(), Epoch: rnd.Int64N(1 << 42), Seq: rnd.Int64N(1 << 42), Number: rnd.Int64N(1 << 42),
			Media: rnd.Int64N(1 << 42), Sent: rnd.Int64N(1 << 62), Size: rnd.IntN(1 << 24), Body: rnd.Uint32(),
		}
		var b [StampSize]byte
		want.Put(b[:])
		got, err := Parse(b[:])
		if err != nil || got != want {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
		for i, c := range b[len(magic):] {
			if c < 0x80 {
				t.Fatalf("byte %d of the stamp is %#x: a start code could arise", i, c)
			}
		}
		b[len(magic)+rnd.IntN(StampSize-len(magic))] ^= 1 << rnd.IntN(7)
		if _, err := Parse(b[:]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("damaged stamp: %v", err)
		}
	}
	if _, err := Parse(make([]byte, StampSize)); !errors.Is(err, ErrNoStamp) {
		t.Errorf("zeros: %v", err)
	}
}

func TestEveryCodecHasItsStampWhereOffsetSays(t *testing.T) {
	for _, codec := range []Codec{H264, H265, H265Enhanced, AV1} {
		for _, kbps := range []int{1, 300, 2000, 20000} {
			cfg := DefaultConfig()
			cfg.Codec, cfg.VideoKbps, cfg.Stream, cfg.Start, cfg.Epoch = codec, kbps, 7, 1<<32-100, 99
			cfg.BFrames = true
			checkStream(t, cfg)
		}
	}
}

func checkStream(t *testing.T, cfg Config) {
	t.Helper()
	g, err := NewGenerator(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range g.Headers() {
		if Offset(h.Kind, h.Payload()) >= 0 {
			t.Errorf("%s: a header seems to have a stamp", cfg.Codec)
		}
		if h.Kind != flv.Script && !h.Is(flv.Header) {
			t.Errorf("%s: %s header is not classified as one", cfg.Codec, h.Kind)
		}
	}
	numbers := map[flv.Kind]int64{}
	last := int64(0)
	for i := range int64(400) {
		sent := time.Unix(1_800_000_000, i)
		tag := g.Next(sent)
		p := tag.Payload()
		at := Offset(tag.Kind, p)
		if at < 0 || at+StampSize > PrefixSize {
			t.Fatalf("%s frame %d: stamp at %d", cfg.Codec, i, at)
		}
		s, err := Parse(p[at:])
		if err != nil {
			t.Fatalf("%s frame %d: %v", cfg.Codec, i, err)
		}
		if s.Seq != i || s.Number != numbers[tag.Kind] || s.Sent != sent.UnixNano() || s.Stream != 7 || s.Epoch != 99 {
			t.Fatalf("%s frame %d: %+v", cfg.Codec, i, s)
		}
		if s.Size != len(p) || s.Body != Sum(0, p[at+StampSize:]) || s.Media != tag.DTS || s.Media < last {
			t.Fatalf("%s frame %d of %d bytes, dts %d after %d: %+v", cfg.Codec, i, len(p), tag.DTS, last, s)
		}
		key := tag.Kind == flv.Video && s.Number%60 == 0
		if tag.Is(flv.Keyframe) != key {
			t.Fatalf("%s frame %d: keyframe is %v", cfg.Codec, i, !key)
		}
		if cfg.Codec == H264 && tag.Kind == flv.Video {
			checkUnits(t, p[5:])
		}
		last = s.Media
		numbers[tag.Kind]++
	}
}

// checkUnits wants NAL units with lengths, none of them with a start code inside.
func checkUnits(t *testing.T, p []byte) {
	t.Helper()
	for len(p) > 0 {
		if len(p) < 4 || int(binary.BigEndian.Uint32(p)) > len(p)-4 {
			t.Fatalf("%d bytes are no NAL unit", len(p))
		}
		n := int(binary.BigEndian.Uint32(p))
		unit := p[4 : 4+n]
		for i := 0; i+2 < n; i++ {
			if unit[i] == 0 && unit[i+1] == 0 && unit[i+2] < 3 {
				t.Fatalf("start code at %d of a unit of type %d", i, unit[0]&31)
			}
		}
		p = p[4+n:]
	}
}

func TestBitrateIsAsAsked(t *testing.T) {
	f := func(video, audio int, fps float64) {
		t.Helper()
		cfg := DefaultConfig()
		cfg.VideoKbps, cfg.AudioKbps, cfg.FPS = video, audio, fps
		g, err := NewGenerator(cfg)
		if err != nil {
			t.Fatal(err)
		}
		bytes := map[flv.Kind]int{}
		for g.Due() < 20*time.Second {
			tag := g.Next(time.Unix(0, 0))
			bytes[tag.Kind] += len(tag.Payload())
		}
		if got := bytes[flv.Video] / 20 / 125; got < video*98/100 || got > video*102/100 {
			t.Errorf("video has %d kbit/s, want %d", got, video)
		}
		if got := bytes[flv.Audio] / 20 / 125; got < audio*95/100 || got > audio*105/100 {
			t.Errorf("audio has %d kbit/s, want %d", got, audio)
		}
	}
	f(2000, 64, 30)
	f(500, 64, 25)
	f(8000, 48, 60)
}

func TestOneTrack(t *testing.T) {
	for _, kind := range []flv.Kind{flv.Audio, flv.Video} {
		cfg := DefaultConfig()
		cfg.NoAudio, cfg.NoVideo = kind == flv.Video, kind == flv.Audio
		g, err := NewGenerator(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(g.Headers()); n != 2 {
			t.Errorf("%d headers, want metadata and one more", n)
		}
		for range 100 {
			if tag := g.Next(time.Unix(0, 0)); tag.Kind != kind {
				t.Fatalf("only %s was asked for, got %s", kind, tag.Kind)
			}
		}
	}
}

func TestRestamp(t *testing.T) {
	g, err := NewGenerator(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	tag := g.Next(time.Unix(1, 0))
	Restamp(&tag, 500, 1<<33, 42)
	p := tag.Payload()
	s, err := Parse(p[Offset(tag.Kind, p):])
	if err != nil || s.Seq != 500 || s.Media != 1<<33 || s.Sent != 42 || tag.DTS != 1<<33 || s.Size != len(p) {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestValidate(t *testing.T) {
	f := func(name string, change func(*Config)) {
		t.Helper()
		cfg := DefaultConfig()
		change(&cfg)
		if _, err := NewGenerator(cfg); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	f("codec", func(c *Config) { c.Codec = "mpeg2" })
	f("no track", func(c *Config) { c.NoAudio, c.NoVideo = true, true })
	f("size", func(c *Config) { c.Width = 15 })
	f("fps", func(c *Config) { c.FPS = 0 })
	f("gop", func(c *Config) { c.GOP = time.Millisecond })
	f("video rate", func(c *Config) { c.VideoKbps = 0 })
	f("audio rate", func(c *Config) { c.AudioKbps = 2000 })
	f("start", func(c *Config) { c.Start = -1 })
}

func BenchmarkNext(b *testing.B) {
	g, err := NewGenerator(DefaultConfig())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	now := time.Unix(1, 0)
	for b.Loop() {
		b.SetBytes(int64(len(g.Next(now).Wire)))
	}
}

// TestPlay has frames come when they are due, and nothing after the end.
func TestPlay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := NewGenerator(DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		begin, n := time.Now(), 0
		err = g.Play(ctx, func(tag flv.Tag) error {
			if n++; n > len(g.Headers()) {
				if at := time.Since(begin); at.Milliseconds() != tag.DTS {
					t.Errorf("tag %d of %d ms comes after %v", n, tag.DTS, at)
				}
			}
			if n == 100 {
				cancel()
				return errors.New("cut")
			}
			return nil
		})
		if err != nil || n != 100 {
			t.Errorf("%d tags, then %v", n, err)
		}
	})
}
