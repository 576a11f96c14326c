// Package churn connects to a node and leaves again, very often and in many ways:
// publishers that say goodbye and publishers that vanish, viewers over HTTP, RTMP
// and WebSocket, requests for streams that are not there, and peers that talk
// garbage. What the node holds is measured before and after: descriptors,
// goroutines and heap have to come back to where they were.
//
//	rest → [warm up: some cycles] → rest: baseline → [cycles] → rest: what is left
//
// At rest the node serves one stream, live/base, which [Node.Standing] publishes all
// the time, and everything else is over, the grace times of streams too.
package churn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"millrace/internal/rtmp"
	"millrace/tools/frames"
)

// Node is a running node.
type Node struct {
	PID   int
	RTMP  string // host:port
	HTTP  string
	Admin string
}

// Config says how much.
type Config struct {
	Node
	Cycles  int
	Workers int
	Settle  time.Duration // how long the node may take to come to rest, its grace time included
}

// Result counts what was done.
type Result struct {
	Done   map[string]int64  // cycles by kind
	Failed map[string]int64  // cycles that did not go as they should, by kind
	Errors map[string]string // an error of each kind that failed
	Took   time.Duration
}

// String is one line.
func (r *Result) String() string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(r.Done)) {
		out = append(out, fmt.Sprintf("%s %d", k, r.Done[k]))
	}
	for _, k := range slices.Sorted(maps.Keys(r.Failed)) {
		out = append(out, fmt.Sprintf("FAILED %s %d (%s)", k, r.Failed[k], r.Errors[k]))
	}
	return fmt.Sprintf("%s in %.1f s", strings.Join(out, ", "), r.Took.Seconds())
}

// cycle is one way of coming and going.
type cycle struct {
	name string
	run  func(*runner, context.Context, int) error
}

// ways is how many kinds of cycle there are.
const ways = 10

// cycles in the order in which they take turns. Those of viewers need the stream
// live/base.
var cycles = [ways]cycle{
	{"publish", (*runner).publish},
	{"http", (*runner).http},
	{"publish and vanish", (*runner).vanish},
	{"http and vanish", (*runner).httpVanish},
	{"publish in turn", (*runner).displace},
	{"http/1.0", (*runner).http10},
	{"rtmp play", (*runner).play},
	{"missing stream", (*runner).missing},
	{"websocket", (*runner).webSocket},
	{"garbage", (*runner).garbage},
}

// runner is one call of Run.
type runner struct {
	Config
	tags frames.Config // of short publishers
	rtmp rtmp.ClientConfig
}

// Run does the cycles and returns what came of them, while [Node.Standing] runs.
// Each cycle ends within seconds; an error is only for what keeps all of them from running.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	if cfg.Cycles < 1 || cfg.Workers < 1 {
		return nil, errors.New("cycles and workers must be at least 1")
	}
	r := &runner{Config: cfg, rtmp: rtmp.DefaultClientConfig(), tags: frames.DefaultConfig()}
	r.tags.Width, r.tags.Height, r.tags.VideoKbps, r.tags.GOP = 320, 180, 200, 500*time.Millisecond
	if err := r.awaitBase(ctx); err != nil {
		return nil, err
	}
	res := &Result{Done: map[string]int64{}, Failed: map[string]int64{}, Errors: map[string]string{}}
	var next atomic.Int64
	var mu sync.Mutex
	var wg sync.WaitGroup
	begin := time.Now()
	for range cfg.Workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= cfg.Cycles {
					return
				}
				c := cycles[i%ways]
				err := c.run(r, ctx, i)
				mu.Lock()
				res.Done[c.name]++
				if err != nil && ctx.Err() == nil {
					res.Failed[c.name]++
					res.Errors[c.name] = err.Error()
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	res.Took = time.Since(begin)
	return res, ctx.Err()
}

// Standing publishes live/base, 2 Mbit/s with a keyframe every second, until ctx ends.
func (n Node) Standing(ctx context.Context) error {
	r := &runner{Config: Config{Node: n}, rtmp: rtmp.DefaultClientConfig()}
	c, err := r.dial(ctx, 0, "live/base")
	if err != nil {
		return err
	}
	defer c.Close()
	cfg := frames.DefaultConfig()
	cfg.GOP = time.Second
	g, err := frames.NewGenerator(cfg)
	if err != nil {
		return err
	}
	return g.Play(ctx, c.Write)
}

// awaitBase returns when a viewer sees live/base.
func (r *runner) awaitBase(ctx context.Context) (err error) {
	for range 100 {
		if err = r.http(ctx, 0); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("live/base does not play: %w", err)
}

// from returns the address that cycle i comes from. With 200 of them neither ports
// nor limits per address run out.
func from(i int) *net.TCPAddr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%200))}
}

// open connects to addr; the connection ends with everything on it after a minute.
func (r *runner) open(ctx context.Context, i int, addr string) (*net.TCPConn, error) {
	d := net.Dialer{LocalAddr: from(i), Timeout: time.Minute, KeepAlive: -1}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c.SetDeadline(time.Now().Add(time.Minute))
	return c.(*net.TCPConn), nil
}
