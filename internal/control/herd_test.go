package control

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// counted is a Backend that counts heartbeats by second and node.
type counted struct {
	fakeFleet
	seconds map[int64]int
	nodes   map[string]int
	full    map[string]int // heartbeats with everything
}

func (c *counted) Heartbeat(now time.Time, h *Heartbeat, _ netip.Addr) (Ack, Refusal, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seconds[now.Unix()]++
	c.nodes[h.Node]++
	if h.Identity != nil {
		c.full[h.Node]++
	}
	return Ack{Router: "r1", Sequence: h.Sequence, Interval: 1000, Resend: h.Streams.Based > 0 && c.full[h.Node] == 0}, NotRefused, nil
}

func newCounted() *counted {
	return &counted{seconds: map[int64]int{}, nodes: map[string]int{}, full: map[string]int{}}
}

// TestHerd has 300 nodes lose their only router and find it again, started anew
// with nothing.
func TestHerd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes = 300
		n := &network{}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		router := func() (*Server, *counted) {
			s, c := newServer(t, newCluster(t)), newCounted()
			s.Fleet(c)
			n.http("r1:80", s)
			return s, c
		}
		_, before := router()
		cfg := DefaultBeatConfig()
		cfg.Servers = []string{"http://r1:80"}
		for i := range nodes {
			id := fmt.Sprint("e", i)
			node := &fakeNode{identity: Identity{ID: id, Role: "edge", URL: "http://192.0.2.1:80"}}
			b, err := NewBeat(cfg, node, id, newCluster(t), n.dial, nil, silent)
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() { _ = b.Run(ctx) })
		}
		defer n.wg.Wait()
		defer wg.Wait()
		defer cancel()
		pass(20 * time.Second)
		before.with(func() {
			if len(before.nodes) != nodes {
				t.Errorf("%d nodes were heard", len(before.nodes))
			}
		})
		n.set("r1:80", nil)
		pass(time.Minute)
		_, after := router()
		back := time.Now()
		pass(8 * time.Second)
		after.with(func() {
			most := 0
			for second := range 5 {
				most = max(most, after.seconds[back.Unix()+int64(second)])
			}
			// They come back over five seconds, one by one; an ordinary second has one each.
			if len(after.nodes) != nodes || most > nodes*3/2 {
				t.Errorf("%d nodes are back, at most %d heartbeats in a second", len(after.nodes), most)
			}
			for id, full := range after.full {
				if full != 1 {
					t.Errorf("%s told everything %d times", id, full)
				}
			}
			if len(after.full) != nodes {
				t.Errorf("%d nodes told everything", len(after.full))
			}
		})
	})
}
