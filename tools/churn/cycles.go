package churn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"millrace/internal/rtmp"
	"millrace/tools/frames"
)

// dial connects and publishes.
func (r *runner) dial(ctx context.Context, i int, name string) (*rtmp.Client, error) {
	cfg := r.rtmp
	cfg.Dial = func(ctx context.Context, _, addr string) (net.Conn, error) {
		d := net.Dialer{LocalAddr: from(i), KeepAlive: -1}
		return d.DialContext(ctx, "tcp", addr)
	}
	c, err := rtmp.Dial(ctx, "rtmp://"+r.RTMP+"/"+name, cfg)
	if err != nil {
		return nil, err
	}
	if err := c.Publish(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// feed publishes a few frames under a name.
func (r *runner) feed(ctx context.Context, i int, name string) (*rtmp.Client, error) {
	c, err := r.dial(ctx, i, name)
	if err != nil {
		return nil, err
	}
	g, err := frames.NewGenerator(r.tags)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	tags := g.Headers()
	for range 8 {
		tags = append(tags[:len(tags):len(tags)], g.Next(time.Now()))
	}
	for _, t := range tags {
		if err := c.Write(t); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// publish is an encoder with a name that nobody used before.
func (r *runner) publish(ctx context.Context, i int) error {
	c, err := r.feed(ctx, i, fmt.Sprintf("live/p%d", i))
	if err != nil {
		return err
	}
	return c.Close()
}

// vanish is an encoder whose connection breaks in the middle of a message.
func (r *runner) vanish(ctx context.Context, i int) error {
	var raw *net.TCPConn
	cfg := r.rtmp
	cfg.Dial = func(ctx context.Context, _, addr string) (net.Conn, error) {
		c, err := r.open(ctx, i, addr)
		raw = c
		return c, err
	}
	c, err := rtmp.Dial(ctx, fmt.Sprintf("rtmp://%s/live/v%d", r.RTMP, i), cfg)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Publish(ctx); err != nil {
		return err
	}
	// A video message of 1,000 bytes of which ten come.
	begun := append([]byte{6, 0, 0, 0, 0, 3, 0xe8, 9, 1, 0, 0, 0}, "0123456789"...)
	if _, err := raw.Write(begun); err != nil {
		return err
	}
	return raw.SetLinger(0)
}

// displace is one of eight encoders that all come back while the last one is there.
// They come from one address each, so they are taken for the same encoder.
func (r *runner) displace(ctx context.Context, i int) error {
	n := i / ways % 8
	c, err := r.feed(ctx, n, fmt.Sprintf("live/turn%d", n))
	if err != nil {
		return nil // displaced before it was done: the way of this cycle
	}
	return c.Close()
}

// get asks for a path and reads until enough bytes came.
func (r *runner) get(ctx context.Context, i int, request, status string, enough int) (*net.TCPConn, error) {
	c, err := r.open(ctx, i, r.HTTP)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(c, request); err != nil {
		c.Close()
		return nil, err
	}
	got := make([]byte, enough)
	if _, err := io.ReadFull(c, got); err != nil {
		c.Close()
		return nil, fmt.Errorf("after %q: %w", bytes.TrimRight(got[:min(len(got), 40)], "\x00"), err)
	}
	if want := "HTTP/1.1 " + status; !bytes.HasPrefix(got, []byte(want)) {
		c.Close()
		return nil, fmt.Errorf("answer %q, want %s", got[:min(len(got), 40)], want)
	}
	return c, nil
}

// enough is a response header, headers of the stream and some of a keyframe.
const enough = 1500

func (r *runner) http(ctx context.Context, i int) error {
	c, err := r.get(ctx, i, "GET /live/base.flv HTTP/1.1\r\nHost: x\r\n\r\n", "200", enough)
	if err != nil {
		return err
	}
	return c.Close()
}

func (r *runner) http10(ctx context.Context, i int) error {
	c, err := r.get(ctx, i, "GET /live/base.flv HTTP/1.0\r\n\r\n", "200", enough)
	if err != nil {
		return err
	}
	if err := c.CloseWrite(); err != nil {
		c.Close()
		return err
	}
	return c.Close()
}

func (r *runner) httpVanish(ctx context.Context, i int) error {
	c, err := r.get(ctx, i, "GET /live/base.flv HTTP/1.1\r\nHost: x\r\n\r\n", "200", 20)
	if err != nil {
		return err
	}
	c.SetLinger(0)
	return c.Close()
}

func (r *runner) webSocket(ctx context.Context, i int) error {
	c, err := r.get(ctx, i, "GET /live/base.flv HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n", "101", enough)
	if err != nil {
		return err
	}
	return c.Close()
}

func (r *runner) missing(ctx context.Context, i int) error {
	c, err := r.get(ctx, i, fmt.Sprintf("GET /live/none%d.flv HTTP/1.1\r\nHost: x\r\n\r\n", i), "404", 20)
	if err != nil {
		return err
	}
	return c.Close()
}

func (r *runner) play(ctx context.Context, i int) error {
	cfg := r.rtmp
	cfg.Dial = func(ctx context.Context, _, addr string) (net.Conn, error) { return r.open(ctx, i, addr) }
	c, err := rtmp.Dial(ctx, "rtmp://"+r.RTMP+"/live/base", cfg)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Play(ctx); err != nil {
		return err
	}
	for range 4 {
		if _, err := c.Read(); err != nil {
			return err
		}
	}
	return nil
}

// garbage is what scanners send: half a handshake, something else than RTMP,
// something else than HTTP, or nothing.
func (r *runner) garbage(ctx context.Context, i int) error {
	n := i / ways
	addr, say := r.RTMP, ""
	switch n % 5 {
	case 0:
		say = "\x03" + string(make([]byte, 700))
	case 1:
		say = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	case 2:
		addr, say = r.HTTP, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
	case 3:
		addr, say = r.HTTP, "GET /live/base.flv HTTP/1.1\r\nHos"
	}
	c, err := r.open(ctx, i, addr)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(c, say); err != nil {
		c.Close()
		return nil // the node may have hung up
	}
	if n%2 == 0 {
		c.SetLinger(0)
	}
	return c.Close()
}
