package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/stream"
)

// finding runs a Pathfinder that asks routers until the test ends.
func finding(t *testing.T, net *network, servers ...string) *Pathfinder {
	t.Helper()
	cfg := DefaultPathConfig()
	cfg.Servers = servers
	p, err := NewPathfinder(cfg, "e1", newCluster(t, clusterKey), net.dial, nil, silent)
	if err != nil {
		t.Fatal(err)
	}
	p.rota.turn = 0
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		net.wg.Wait()
	})
	return p
}

// find asks for a stream, and returns how long that took.
func find(t *testing.T, p *Pathfinder, n stream.Name) (Route, time.Duration, error) {
	t.Helper()
	begun := time.Now()
	r, err := p.Route(t.Context(), n)
	return r, time.Since(begun), err
}

func TestPathfinder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fleet := newRouter(t, "r1", clusterKey)
		n := &network{}
		n.http("r1:80", s)
		fleet.routes["live/a"] = routeTo("r7")
		p := finding(t, n, "http://r1:80")
		for range 3 {
			if r, _, err := find(t, p, "live/a"); err != nil || r.Choices[0].Node != "r7" || r.Reason != "direct" {
				t.Fatalf("got %+v, %v", r, err)
			}
		}
		for range 3 {
			if r, _, err := find(t, p, "live/none"); err != nil || len(r.Choices) != 0 || r.Reason != "unknown" {
				t.Fatalf("got %+v, %v", r, err)
			}
		}
		if fleet.asked != 2 {
			t.Errorf("asked %d times for two streams", fleet.asked)
		}
		// An answer is used for two seconds, and that there is none for one.
		pass(1500 * time.Millisecond)
		find(t, p, "live/a")
		find(t, p, "live/none")
		if fleet.asked != 3 {
			t.Errorf("asked %d times after 1.5 s", fleet.asked)
		}
		pass(time.Second)
		find(t, p, "live/a")
		if fleet.asked != 4 {
			t.Errorf("asked %d times after 2.5 s", fleet.asked)
		}
		// Many readers of one stream ask once.
		pass(time.Minute)
		fleet.with(func() { fleet.slow = 20 * time.Millisecond })
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if r, took, err := find(t, p, "live/a"); err != nil || len(r.Choices) != 1 || took != 20*time.Millisecond {
					t.Errorf("got %+v, %v after %v", r, err, took)
				}
			})
		}
		wg.Wait()
		if fleet.asked != 5 {
			t.Errorf("asked %d times", fleet.asked)
		}
		if st := p.Status(); st.Asked != 5 || st.Kept != 104 || st.Late != 0 || st.Resting || st.Counts["answered"] != 5 {
			t.Errorf("status %+v", st)
		}
	})
}

func TestPathfinderRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fleet := newRouter(t, "r1", clusterKey)
		n := &network{}
		n.http("r1:80", s)
		fleet.slow = 200 * time.Millisecond
		fleet.routes["live/a"] = routeTo("r7")
		p := finding(t, n, "http://r1:80")
		if _, took, err := find(t, p, "live/a"); !errors.Is(err, ErrNoRoute) || took != 50*time.Millisecond {
			t.Errorf("a slow router: %v after %v", err, took)
		}
		for i := range 20 {
			if _, took, err := find(t, p, stream.Name(fmt.Sprint("live/", i))); !errors.Is(err, ErrNoRoute) || took != 0 {
				t.Errorf("another reader: %v after %v", err, took)
			}
		}
		// What came late is there for the next reader.
		pass(300 * time.Millisecond)
		if r, took, err := find(t, p, "live/a"); err != nil || took != 0 || len(r.Choices) != 1 {
			t.Errorf("the late answer: %+v, %v after %v", r, err, took)
		}
		// One reader tries again, others do not wait meanwhile.
		pass(2 * time.Second)
		var wg sync.WaitGroup
		waited := make(chan time.Duration, 20)
		for i := range 20 {
			wg.Go(func() {
				_, took, err := find(t, p, stream.Name(fmt.Sprint("live/", i)))
				if !errors.Is(err, ErrNoRoute) {
					t.Errorf("got %v", err)
				}
				waited <- took
			})
		}
		wg.Wait()
		close(waited)
		sum := time.Duration(0)
		for took := range waited {
			sum += took
		}
		if sum != 50*time.Millisecond {
			t.Errorf("readers waited %v in all", sum)
		}
		if st := p.Status(); !st.Resting || st.Error == "" || st.Spared != 39 || st.Late != 2 {
			t.Errorf("status %+v", st)
		}
		fleet.with(func() { fleet.slow = 0 })
		pass(2 * time.Second)
		for i := range 20 {
			if _, _, err := find(t, p, stream.Name(fmt.Sprint("live/", i))); err != nil {
				t.Errorf("the router is well again: %v", err)
			}
		}
		if st := p.Status(); st.Resting || st.Error != "" {
			t.Errorf("status %+v", st)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		fleet.with(func() { fleet.slow = 10 * time.Millisecond })
		if _, err := p.Route(ctx, "live/other"); !errors.Is(err, context.Canceled) {
			t.Errorf("a reader that went: %v", err)
		}
	})
}

func TestPathfinderAsksTheNextRouter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fleet := newRouter(t, "r2", clusterKey)
		n := &network{}
		n.http("r2:80", s)
		fleet.routes["live/a"] = routeTo("r7")
		p := finding(t, n, "http://r1:80", "http://r2:80")
		if _, took, err := find(t, p, "live/a"); err != nil || took != 0 {
			t.Errorf("got %v after %v", err, took)
		}
		find(t, p, "live/b")
		if d := n.dials(); d["r1:80"] != 1 {
			t.Errorf("dialled %v: the router that answered last is to be asked", d)
		}
		n.set("r2:80", nil)
		if _, took, err := find(t, p, "live/c"); !errors.Is(err, ErrNoRoute) || took != 0 {
			t.Errorf("no router: %v after %v", err, took)
		}
		n.dials()
		for i := range 50 {
			find(t, p, stream.Name(fmt.Sprint("live/", i)))
		}
		if d := n.dials(); len(d) != 0 {
			t.Errorf("dialled %v within the rest", d)
		}
		// A signed answer for something else is none.
		n.http("r2:80", s)
		pass(time.Minute)
		fleet.with(func() { fleet.routes["live/odd"] = routeTo("e1") })
		if _, _, err := find(t, p, "live/odd"); !errors.Is(err, ErrNoRoute) || p.Status().Counts["faulty"] != 1 {
			t.Errorf("sent to itself: %v, %+v", err, p.Status())
		}
	})
}

func TestPathfinderIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newRouter(t, "r1", clusterKey)
		n := &network{}
		n.http("r1:80", s)
		p := finding(t, n, "http://r1:80")
		for i := range 2 * maxRoutes {
			if _, _, err := find(t, p, stream.Name(fmt.Sprint("live/", i))); err != nil {
				t.Fatal(err)
			}
		}
		if len(p.routes) > maxRoutes {
			t.Errorf("%d answers are kept", len(p.routes))
		}
		// Nobody asks, and readers come all the same.
		cfg := DefaultPathConfig()
		cfg.Servers = []string{"http://r1:80"}
		idle, err := NewPathfinder(cfg, "e1", newCluster(t), n.dial, nil, silent)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 2 * maxAsks {
			wg.Go(func() {
				if _, took, err := find(t, idle, stream.Name(fmt.Sprint("live/", i))); !errors.Is(err, ErrNoRoute) || took > 50*time.Millisecond {
					t.Errorf("got %v after %v", err, took)
				}
			})
		}
		wg.Wait()
	})
}

func TestPathConfig(t *testing.T) {
	for _, spoil := range []func(*PathConfig){
		func(c *PathConfig) { c.Servers = nil },
		func(c *PathConfig) { c.Servers = []string{"r1"} },
		func(c *PathConfig) { c.Timeout = 0 },
		func(c *PathConfig) { c.Keep = -1 },
		func(c *PathConfig) { c.Rest = 0 },
	} {
		c := DefaultPathConfig()
		c.Servers = []string{"http://r1:80"}
		spoil(&c)
		if _, err := NewPathfinder(c, "e1", newCluster(t), nil, nil, silent); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}
