package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"millrace/internal/flv"
	"millrace/internal/rtmp"
	"millrace/tools/clip"
	"millrace/tools/frames"
)

const (
	// retryTime is between two attempts to publish, as encoders do.
	retryTime = 500 * time.Millisecond
	// writeTime is after how long a frozen node is left for the next one.
	writeTime = 3 * time.Second
)

// publisher publishes one feed, at one node after another.
type publisher struct {
	// Fixed at construction.
	feed Feed
	id   uint32              // in the stamps of frames
	addr func(string) string // of a node's RTMP, by its id

	// Guarded by mu.
	mu  sync.Mutex
	at  string // where it publishes, "" while it does not
	err error  // of the last attempt
}

// run publishes until ctx ends.
func (p *publisher) run(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		node := p.feed.At[i%len(p.feed.At)]
		err := p.publish(ctx, node)
		p.set("", err)
		select {
		case <-ctx.Done():
		case <-time.After(retryTime):
		}
	}
}

func (p *publisher) set(at string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, p.err = at, err
}

// publish publishes at one node until that ends.
func (p *publisher) publish(ctx context.Context, node string) error {
	cfg := rtmp.DefaultClientConfig()
	cfg.Timeout, cfg.WriteTimeout = writeTime, writeTime
	url := "rtmp://" + p.addr(node) + "/" + p.feed.Name
	c, err := rtmp.Dial(ctx, url, cfg)
	if err != nil {
		return fmt.Errorf("at %s: %w", node, err)
	}
	defer c.Close()
	if err := c.Publish(ctx); err != nil {
		return fmt.Errorf("at %s: %w", node, err)
	}
	p.set(node, nil)
	if err := p.play(ctx, c.Write); err != nil {
		return fmt.Errorf("at %s: %w", node, err)
	}
	return nil
}

// play writes the feed's tags when they are due.
func (p *publisher) play(ctx context.Context, write func(flv.Tag) error) error {
	if p.feed.Source == Clip {
		loop, err := clip.NewLoop()
		if err != nil {
			return err
		}
		return loop.Play(ctx, write)
	}
	cfg := frames.DefaultConfig()
	cfg.Stream, cfg.Epoch, cfg.VideoKbps = p.id, time.Now().UnixMilli(), p.feed.kbps()
	g, err := frames.NewGenerator(cfg)
	if err != nil {
		return err
	}
	return g.Play(ctx, write)
}
