package main

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/internal/rtmp"
	"millrace/internal/session"
	"millrace/internal/stream"
	"millrace/tools/frames"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs an RTMP server on loopback until the test ends.
func serve(t *testing.T) (addr string, hub *stream.Hub) {
	t.Helper()
	hub, err := stream.NewHub(stream.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	gate, err := auth.NewGate(auth.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := rtmp.New(rtmp.DefaultConfig(), ln, hub, gate, nil, session.NewTable(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String(), hub
}

func TestWhatIsPublishedArrives(t *testing.T) {
	addr, hub := serve(t)
	o, err := parse([]string{
		"--url", "rtmp://" + addr + "/live/s%d", "--streams", "3", "--duration", "300ms", "--quiet",
		"--fps", "100", "--gop", "100ms", "--start-ts", "4294967200",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	for _, name := range []stream.Name{"live/s0", "live/s1", "live/s2"} {
		s, ok := hub.Lookup(name)
		if !ok {
			t.Errorf("%s is not there", name)
			continue
		}
		if a, v := s.Tracks(); !a || !v {
			t.Errorf("%s: audio %v, video %v", name, a, v)
		}
		// 30 pictures, 13 frames of sound, headers.
		if n := s.Head(); n < 43 {
			t.Errorf("%s has %d tags", name, n)
		}
	}
}

func TestFramesComeOnceAndInOrder(t *testing.T) {
	addr, _ := serve(t)
	o, err := parse([]string{"--url", "rtmp://" + addr + "/live/a", "--quiet", "--fps", "100", "--gop", "100ms"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx, o) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	next := int64(-1)
	c := play(t, ctx, "rtmp://"+addr+"/live/a")
	defer c.Close()
	for range 100 {
		tag, err := c.Read()
		if err != nil {
			t.Fatal(err)
		}
		at := frames.Offset(tag.Kind, tag.Payload())
		if at < 0 {
			continue
		}
		s, err := frames.Parse(tag.Payload()[at:])
		if err != nil || next >= 0 && s.Seq != next {
			t.Fatalf("frame %d, want %d: %v", s.Seq, next, err)
		}
		if next < 0 && !tag.Is(flv.Keyframe) {
			t.Error("the first frame is no keyframe")
		}
		next = s.Seq + 1
	}
}

// play connects as often as it takes for the publisher to be there.
func play(t *testing.T, ctx context.Context, url string) *rtmp.Client {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		c, err := rtmp.Dial(ctx, url, rtmp.DefaultClientConfig())
		if err != nil {
			t.Fatal(err)
		}
		if err = c.Play(ctx); err == nil {
			return c
		}
		c.Close()
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func TestRunFailsWhenRefused(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	o, err := parse([]string{"--url", "rtmp://" + addr + "/live/a", "--streams", "2", "--quiet"})
	if err != nil {
		t.Fatal(err)
	}
	if err := run(context.Background(), o); err == nil {
		t.Error("no error without a server")
	}
}

func TestFlags(t *testing.T) {
	f := func(ok bool, args ...string) options {
		t.Helper()
		o, err := parse(args)
		if (err == nil) != ok {
			t.Errorf("%v: %v", args, err)
		}
		return o
	}
	if o := f(true, "--streams", "2", "--url", "rtmp://h/live/x"); o.url != "rtmp://h/live/x%d" {
		t.Errorf("url is %s", o.url)
	}
	if o := f(true, "--size", "320x180", "--codec", "av1", "--audio-only"); o.config.Width != 320 || o.config.Height != 180 || !o.config.NoVideo {
		t.Errorf("%+v", o.config)
	}
	f(false, "--size", "big")
	f(false, "--codec", "mpeg2")
	f(false, "--audio-only", "--video-only")
	f(false, "--streams", "0")
	f(false, "extra")
}
