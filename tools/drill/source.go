package drill

import (
	"context"
	"fmt"
	"time"

	"millrace/internal/rtmp"
	"millrace/tools/frames"
)

// The streams of drills: 1,000 kbit/s of video at 30 frames a second, 64 of audio, and
// about one percent of framing.
const (
	videoKbps = 1000
	totalKbps = 1075
)

// pace says when a frame is sent, by when it is due, both after the beginning.
type pace func(due time.Duration) time.Duration

// steady sends each frame when it is due.
func steady(due time.Duration) time.Duration { return due }

// source is a publisher.
type source struct {
	began  time.Time // of the publish; set before publish returns
	cancel context.CancelFunc
	done   chan struct{} // closed at its end
	err    error         // why, if not by stop; valid when done is closed
}

// publish publishes numbered frames at a node, and returns when the node takes them.
func publish(ctx context.Context, addr, stream string, cfg frames.Config, p pace) (*source, error) {
	client := rtmp.DefaultClientConfig()
	c, err := rtmp.Dial(ctx, "rtmp://"+addr+"/"+stream, client)
	if err != nil {
		return nil, fmt.Errorf("publish %s: %w", stream, err)
	}
	if err := c.Publish(ctx); err != nil {
		c.Close()
		return nil, fmt.Errorf("publish %s: %w", stream, err)
	}
	began := time.Now()
	cfg.Epoch = began.UnixMilli()
	g, err := frames.NewGenerator(cfg)
	if err != nil {
		c.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &source{began: began, cancel: cancel, done: make(chan struct{})}
	go func() { // ends with ctx; stop waits for it
		defer close(s.done)
		defer c.Close()
		s.err = s.run(ctx, c, g, p)
	}()
	return s, nil
}

func (s *source) run(ctx context.Context, c *rtmp.Client, g *frames.Generator, p pace) error {
	for _, h := range g.Headers() {
		if err := c.Write(h); err != nil {
			return err
		}
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(time.Until(s.began.Add(p(g.Due()))))
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if err := c.Write(g.Next(time.Now())); err != nil {
			return err
		}
	}
}

// stop ends the publish and waits for it.
func (s *source) stop() {
	s.cancel()
	<-s.done
}
