package main

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"go.uber.org/goleak"

	"millrace/internal/flv"
	"millrace/tools/frames"
	"millrace/tools/pull"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCannedStreamGoesOn(t *testing.T) {
	cfg := frames.DefaultConfig()
	cfg.GOP = 500 * time.Millisecond
	c, err := newCanned(cfg)
	if err != nil {
		t.Fatal(err)
	}
	check, parser := pull.NewChecker(0, true), pull.Parser{Verify: true}
	emit := func(tag *pull.Tag) { check.Tag(tag) }
	if err := parser.Feed(c.head, emit); err != nil {
		t.Fatal(err)
	}
	begin := time.Unix(100, 0)
	for ms := 0; ms < 5000; ms += 70 {
		c.advance(begin, begin.Add(time.Duration(ms)*time.Millisecond))
		for i, tag := range c.batch {
			if (i == c.key) != tag.Is(flv.Keyframe) && c.key > i {
				t.Fatalf("at %d ms: keyframe at %d, said to be at %d", ms, i, c.key)
			}
			if err := parser.Feed(tag.Wire, emit); err != nil {
				t.Fatal(err)
			}
		}
	}
	if check.Faults.Total() != 0 || check.Skips != 0 || check.Frames < 5*(30+43)-6 {
		t.Errorf("%d frames, faults %v", check.Frames, check.Faults.Words())
	}
}

func TestFloorServesWholeStreams(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // only to find a free port
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()

	cfg := frames.DefaultConfig()
	cfg.GOP, cfg.VideoKbps = 200*time.Millisecond, 1000
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	l, err := newLoop(netAddr(t, addr), 20*time.Millisecond, 1, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	go func() { done <- l.run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()

	p := pull.DefaultConfig()
	p.URLs, p.Viewers, p.Verify = []string{"http://" + addr + "/live/s0.flv"}, 20, 20
	p.Warmup, p.Duration = 500*time.Millisecond, 500*time.Millisecond
	p.Frozen = .2
	r, err := pull.Run(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK() || r.Normal.Skips > 0 || r.Normal.Frames == 0 {
		t.Errorf("%+v", r)
	}
}

func netAddr(t *testing.T, s string) netip.AddrPort {
	t.Helper()
	a, err := netip.ParseAddrPort(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
