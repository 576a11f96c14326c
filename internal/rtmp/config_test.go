package rtmp

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/session"
)

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		want string
		set  func(*Config)
	}{
		{"handshake_timeout: is 0s, must be 100ms to 1m0s", func(c *Config) { c.HandshakeTimeout = 0 }},
		{"command_timeout: is 1h0m0s, must be", func(c *Config) { c.CommandTimeout = time.Hour }},
		{"idle_timeout: is -1s, must be", func(c *Config) { c.IdleTimeout = -time.Second }},
		{"stall_timeout: is 1ms, must be", func(c *Config) { c.StallTimeout = time.Millisecond }},
		{"play_wait: is -1ns, must be", func(c *Config) { c.PlayWait = -1 }},
		{"message_bytes: is 0, must be 65536 to 16777215", func(c *Config) { c.MessageBytes = 0 }},
		{"partial_bytes: is 65536, must be at least message_bytes (8388608)", func(c *Config) { c.PartialBytes = 65536 }},
		{"total_partial_bytes: is 1, must be 1048576 to 1099511627776", func(c *Config) { c.TotalPartialBytes = 1 }},
		{"chunk_streams: is 1, must be", func(c *Config) { c.ChunkStreams = 1 }},
		{"chunk_size: is 100, must be", func(c *Config) { c.ChunkSize = 100 }},
	} {
		cfg := DefaultConfig()
		tt.set(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
		if _, err := New(cfg, nil, nil, nil, nil, nil, nil); err == nil {
			t.Errorf("New takes %s", tt.want)
		}
	}
}

// TestFlood holds equal events back within a second and reports how many.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		f := &flood{log: slog.New(slog.NewTextHandler(&out, nil))}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { f.run(ctx); close(done) }()
		own := 0
		for range 100 {
			if f.allow(eventEnded, session.HandshakeFailed, freeLines) {
				own++
			}
		}
		f.allow(eventEnded, session.Idle, freeLines)
		f.allow(eventDropped, session.NotPublishing, 0)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if own != freeLines {
			t.Errorf("%d lines of their own", own)
		}
		got := out.String()
		for _, want := range []string{"reason=handshake_failed count=95", `msg="rtmp messages dropped" reason=not_publishing count=1`} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
		if strings.Contains(got, "idle") || strings.Count(got, "\n") != 2 {
			t.Errorf("more was reported:\n%s", got)
		}
		f.allow(eventDropped, session.BadTag, 0)
		cancel()
		<-done
		if !strings.Contains(out.String(), "bad_tag") {
			t.Error("the last second is lost")
		}
	})
}

func TestListenerFails(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(DefaultConfig(), ln, nil, nil, nil, session.NewTable(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), ln.Addr().String()) {
		t.Errorf("got %v", err)
	}
}

func TestReasons(t *testing.T) {
	for _, r := range session.Reasons() {
		if codes := publishCode(r) + playCode(r); !strings.HasPrefix(codes, "NetStream.Publish.") {
			t.Errorf("%v: %s", r, codes)
		}
		for _, a := range []session.Action{session.Publish, session.Play} {
			if body := farewell(a, r); body != nil && !validScript(body) {
				t.Errorf("%v %v: % x", a, r, body)
			}
		}
	}
}
