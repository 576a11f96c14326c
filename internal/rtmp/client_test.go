package rtmp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"millrace/internal/flv"
	"millrace/internal/session"
)

func TestClientErrors(t *testing.T) {
	ctx := context.Background()
	n := newNode(t, option{})
	for _, url := range []string{"http://host/a/b", "rtmp://host/a", "rtmp://host", "rtmp:///a/b", "rtmp://host:x/a/b", ""} {
		if _, err := Dial(ctx, url, DefaultClientConfig()); err == nil {
			t.Errorf("%q was dialled", url)
		}
	}
	c := dialClient(t, n.url("/live/a"))
	tag := flv.New(flv.Video, 0, keyframe(1))
	if _, err := c.Read(); err != ErrRole {
		t.Errorf("read without play: %v", err)
	}
	if err := c.Write(tag); err != ErrRole {
		t.Errorf("write without publish: %v", err)
	}
	var refused *StatusError
	if err := c.Play(ctx); !errors.As(err, &refused) || refused.Code != codePlayNotFound || !strings.Contains(err.Error(), "live/a") {
		t.Errorf("play of a missing stream: %v", err)
	}
	if err := c.Publish(ctx); err != ErrRole {
		t.Errorf("publish after play: %v", err)
	}

	bad := dialClient(t, n.url("/live/a"))
	done, cancel := context.WithCancel(ctx)
	cancel()
	if err := bad.Publish(done); !errors.Is(err, context.Canceled) {
		t.Errorf("publish with a cancelled context: %v", err)
	}
}

// TestClientEnds wants the end of a stream, and a displacement, told apart.
func TestClientEnds(t *testing.T) {
	ctx := context.Background()
	n := newNode(t, option{})
	pub := dialClient(t, n.url("/live/a"))
	if err := pub.Publish(ctx); err != nil {
		t.Fatal(err)
	}
	if err := pub.Write(flv.New(flv.Video, 1<<32-20, keyframe(1))); err != nil {
		t.Fatal(err)
	}
	play := dialClient(t, n.url("/live/a"))
	if err := play.Play(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := play.Read(); err != nil {
		t.Fatal(err)
	}
	second := dialClient(t, n.url("/live/a"))
	if err := second.Publish(ctx); err != nil {
		t.Fatal(err)
	}
	var refused *StatusError
	tag := flv.New(flv.Video, 0, keyframe(2))
	eventually(t, "an error", func() bool { return pub.Write(tag) != nil })
	if err := pub.Write(tag); !errors.As(err, &refused) {
		t.Errorf("displaced: %v", err)
	}
	second.Close()
	eventually(t, "the end of the publish", func() bool { return n.table.Counts()[0].Open == 0 })
	n.hub.Sweep(time.Now())
	if _, err := play.Read(); err != io.EOF {
		t.Errorf("end of stream: %v", err)
	}
	if play.Addr().String() != n.addr {
		t.Error(play.Addr())
	}
}

// TestClientCloses closes from another goroutine while the owner writes, reads or
// waits for an answer.
func TestClientCloses(t *testing.T) {
	n := newNode(t, option{cfg: func(c *Config) { c.PlayWait = time.Minute }})
	for _, f := range []func(c *Client) error{
		func(c *Client) error {
			if err := c.Publish(context.Background()); err != nil {
				return err
			}
			for {
				if err := c.Write(flv.New(flv.Video, 0, keyframe(1))); err != nil {
					return err
				}
			}
		},
		func(c *Client) error {
			if err := c.Play(context.Background()); err != nil {
				return err
			}
			_, err := c.Read()
			return err
		},
	} {
		for _, first := range []time.Duration{0, 10 * time.Millisecond} {
			c := dialClient(t, n.url("/live/closing"))
			failed := make(chan error, 1)
			go func() { failed <- f(c) }()
			<-time.After(first)
			c.Close()
			select {
			case err := <-failed:
				if err == nil {
					t.Error("no error")
				}
			case <-time.After(patience):
				t.Fatal("still blocked")
			}
		}
	}
}

// TestClientTLS dials rtmps, and a server that does not speak it.
func TestClientTLS(t *testing.T) {
	ctx := context.Background()
	cert := certificate(t)
	n := newNode(t, option{wrap: tlsListener(cert)})
	cfg := DefaultClientConfig()
	cfg.TLS = trust(cert)
	url := strings.Replace(n.url("/live/a"), "rtmp:", "rtmps:", 1)
	c, err := Dial(ctx, url, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Publish(ctx); err != nil {
		t.Fatal(err)
	}
	play, err := Dial(ctx, url, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer play.Close()
	if err := play.Play(ctx); err != nil {
		t.Fatal(err)
	}
	big := append(keyframe(1), make([]byte, 100_000)...)
	if err := c.Write(flv.New(flv.Video, 0, big)); err != nil {
		t.Fatal(err)
	}
	if tag, err := play.Read(); err != nil || !bytes.Equal(tag.Payload(), big) {
		t.Errorf("got %d bytes, %v", len(tag.Wire), err)
	}
	plain := newNode(t, option{})
	if _, err := Dial(ctx, strings.Replace(plain.url("/live/a"), "rtmp:", "rtmps:", 1), cfg); err == nil {
		t.Error("rtmps to a plain server")
	}
	plain.endsWith(t, session.HandshakeFailed)
}
