package probe

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/sched"
)

// network is edges in memory, by host:port. Its own lock makes it safe from any
// goroutine.
type network struct {
	wg sync.WaitGroup

	mu     sync.Mutex
	serve  func(addr string) func(net.Conn) // nil: refused
	dialed map[string][]time.Time
	open   int
	most   int
}

func (n *network) dial(_ context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dialed == nil {
		n.dialed = map[string][]time.Time{}
	}
	n.dialed[addr] = append(n.dialed[addr], time.Now())
	here, there := net.Pipe()
	n.open++
	n.most = max(n.most, n.open)
	serve := n.serve(addr)
	n.wg.Go(func() { serve(there) })
	return &counted{Conn: here, closed: sync.OnceFunc(func() {
		n.mu.Lock()
		n.open--
		n.mu.Unlock()
	})}, nil
}

// counted is a connection that is counted until it is closed.
type counted struct {
	net.Conn
	closed func()
}

func (c *counted) Close() error {
	c.closed()
	return c.Conn.Close()
}

// peak returns how many connections were open at a time.
func (n *network) peak() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.most
}

func (n *network) times(addr string) []time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.dialed[addr])
}

// seen keeps the newest observation of each node and family.
type seen struct {
	mu  sync.Mutex
	all map[string]sched.Observation
	n   int
}

func (s *seen) take(obs []sched.Observation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]sched.Observation{}
	}
	for _, o := range obs {
		s.all[o.Node+" "+o.Family.String()] = o
		s.n++
	}
}

// keys returns what was observed, in order.
func (s *seen) keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.all))
}

// forget begins anew. It returns how many observations there were.
func (s *seen) forget() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.n
	s.all, s.n = nil, 0
	return n
}

func (s *seen) get(node string) (sched.Observation, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.all[node]
	return o, ok
}

// run starts a Prober and returns how to stop it.
func run(t *testing.T, cfg Config, n *network, s *seen, log *slog.Logger) (*Prober, func()) {
	t.Helper()
	p, err := New(cfg, "s1", newCluster(t), n.dial, nil, s.take, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	return p, func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v", err)
		}
		n.wg.Wait()
	}
}

func healthy(string) func(net.Conn) { return answers(func(string) string { return ok("ok\n") }) }

func dual(id string, n byte) sched.Node {
	return sched.Node{ID: id, Role: "edge", HTTPPort: 8080, Capacity: 1, Addresses: []netip.Addr{
		netip.AddrFrom4([4]byte{192, 0, 2, n}), netip.MustParseAddr(fmt.Sprintf("2001:db8::%d", n)),
	}}
}

func TestRunProbesEachFamily(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := &network{serve: func(addr string) func(net.Conn) {
			if strings.HasPrefix(addr, "[") {
				return func(c net.Conn) { c.Close() }
			}
			return healthy(addr)
		}}, &seen{}
		p, stop := run(t, DefaultConfig(), n, s, quiet)
		defer stop()
		p.SetNodes([]sched.Node{dual("e1", 1), {ID: "c1", Role: "center", HTTPPort: 1, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.9")}}})
		time.Sleep(5 * time.Second)
		v4, ok4 := s.get("e1 v4")
		v6, ok6 := s.get("e1 v6")
		if !ok4 || !v4.Up || v4.Error != "" || v4.Observer != "s1" {
			t.Errorf("over v4: %+v", v4)
		}
		if !ok6 || v6.Up || v6.Error != "reset" {
			t.Errorf("over v6: %+v", v6)
		}
		if keys := s.keys(); len(keys) != 2 {
			t.Errorf("observed %v", keys)
		}
		if st := p.Stats(); st.Targets != 2 || st.Outcomes["up"] == 0 || st.Outcomes["reset"] == 0 || st.Late != 0 {
			t.Errorf("stats %+v", st)
		}
	})
}

// TestRunKeepsTheInterval: probes of an edge come once an interval, give or take a
// tenth, and after a change at once again.
func TestRunKeepsTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		n, s := &network{serve: func(addr string) func(net.Conn) {
			if down.Load() {
				return func(c net.Conn) { c.Close() }
			}
			return healthy(addr)
		}}, &seen{}
		cfg := DefaultConfig()
		p, stop := run(t, cfg, n, s, quiet)
		defer stop()
		begun := time.Now()
		p.SetNodes([]sched.Node{edge("e1")})
		time.Sleep(time.Minute)
		down.Store(true)
		fell := time.Now()
		time.Sleep(time.Minute)
		times := n.times("192.0.2.1:8080")
		if first := times[0].Sub(begun); first > cfg.Interval/2 {
			t.Errorf("the first probe came after %v", first)
		}
		i, _ := slices.BinarySearchFunc(times, fell, time.Time.Compare) // the first that fails
		for j := 1; j < len(times); j++ {
			low, high := cfg.Interval*9/10, cfg.Interval*11/10
			if j == i+1 {
				low, high = low/4, high/4
			}
			if d := times[j].Sub(times[j-1]); d < low || d > high {
				t.Errorf("probe %d of %d came %v after the one before, want %v to %v", j, len(times), d, low, high)
			}
		}
	})
}

// TestRunSpreads: a thousand edges that are set at once are not asked at once.
func TestRunSpreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := &network{serve: healthy}, &seen{}
		p, stop := run(t, DefaultConfig(), n, s, quiet)
		defer stop()
		var nodes []sched.Node
		for i := range 1000 {
			e := edge(fmt.Sprintf("e%d", i))
			e.Addresses = []netip.Addr{netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})}
			nodes = append(nodes, e)
		}
		p.SetNodes(nodes)
		time.Sleep(20 * time.Second)
		slots := map[int64]int{}
		for i := range nodes {
			for _, at := range n.times(netip.AddrPortFrom(nodes[i].Addresses[0], 8080).String())[1:] {
				slots[at.UnixMilli()/100]++
			}
		}
		// 50 per tenth of a second on average.
		for slot, count := range slots {
			if count > 250 {
				t.Errorf("%d probes in one tenth of a second, %d", count, slot)
			}
		}
		if got := len(s.keys()); got != len(nodes) {
			t.Errorf("%d of %d edges observed", got, len(nodes))
		}
	})
}

// TestRunIsBounded: hanging edges take no more than their places, and the healthy ones
// are still asked.
func TestRunIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := &network{serve: func(addr string) func(net.Conn) {
			if strings.HasSuffix(addr, "7:8080") {
				return healthy(addr)
			}
			return func(c net.Conn) { // says nothing until it is left
				defer c.Close()
				_, _ = c.Read(make([]byte, 1))
				for {
					if _, err := c.Read(make([]byte, 512)); err != nil {
						return
					}
				}
			}
		}}, &seen{}
		cfg := Config{Interval: 2 * time.Second, Timeout: time.Second, Concurrency: 16}
		p, stop := run(t, cfg, n, s, quiet)
		var nodes []sched.Node
		for i := range 100 {
			e := edge(fmt.Sprintf("e%d", i))
			e.Addresses = []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})}
			nodes = append(nodes, e)
		}
		p.SetNodes(nodes)
		time.Sleep(time.Minute)
		if most := n.peak(); most > cfg.Concurrency {
			t.Errorf("%d probes at a time, at most %d are allowed", most, cfg.Concurrency)
		}
		if o, ok := s.get("e17 v4"); !ok || !o.Up {
			t.Errorf("a healthy edge among hanging ones is %+v", o)
		}
		if o, ok := s.get("e18 v4"); !ok || o.Up || o.Error != "timeout" {
			t.Errorf("a hanging edge is %+v", o)
		}
		if p.Stats().Late == 0 {
			t.Error("nothing is late with 90 hanging edges and 16 places")
		}
		begun := time.Now()
		stop() // in the middle of probes
		if took := time.Since(begun); took > 0 {
			t.Errorf("it took %v to stop", took)
		}
	})
}

// TestSetNodes: edges that stay keep their turn, those that leave are not observed any
// more, not even by the probe under way.
func TestSetNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := &network{serve: func(addr string) func(net.Conn) {
			return answers(func(string) string { time.Sleep(time.Second); return ok("ok") })
		}}, &seen{}
		p, stop := run(t, DefaultConfig(), n, s, quiet)
		defer stop()
		p.SetNodes([]sched.Node{dual("e1", 1), dual("e2", 2)})
		time.Sleep(30 * time.Second)
		p.SetNodes([]sched.Node{dual("e2", 2), dual("e3", 3)})
		p.SetNodes([]sched.Node{dual("e2", 2), dual("e3", 3), dual("e3", 3)})
		synctest.Wait()
		s.forget()
		time.Sleep(30 * time.Second)
		if got := s.keys(); strings.Join(got, ",") != "e2 v4,e2 v6,e3 v4,e3 v6" {
			t.Errorf("observed %v", got)
		}
		if p.Stats().Targets != 4 {
			t.Errorf("stats %+v", p.Stats())
		}
		times := n.times("192.0.2.2:8080")
		for i := 1; i < len(times); i++ {
			if d := times[i].Sub(times[i-1]); d < 2*time.Second {
				t.Errorf("e2, which stayed, is asked again after %v", d)
			}
		}
		moved := dual("e2", 9)
		p.SetNodes([]sched.Node{moved})
		synctest.Wait()
		time.Sleep(10 * time.Second)
		if len(n.times("192.0.2.9:8080")) == 0 {
			t.Error("the new address of e2 is not asked")
		}
		p.SetNodes(nil)
		synctest.Wait()
		s.forget()
		time.Sleep(time.Minute)
		if n := s.forget(); n != 0 || p.Stats().Targets != 0 {
			t.Errorf("%d observations of no nodes", n)
		}
	})
}

// TestChangeLog: when everything falls at once the log does not grow with it.
func TestChangeLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		var down atomic.Bool
		n, s := &network{serve: func(addr string) func(net.Conn) {
			if down.Load() {
				return func(c net.Conn) { c.Close() }
			}
			return healthy(addr)
		}}, &seen{}
		p, stop := run(t, DefaultConfig(), n, s, slog.New(slog.NewTextHandler(&text, nil)))
		var nodes []sched.Node
		for i := range 500 {
			e := edge(fmt.Sprintf("e%d", i))
			e.Addresses = []netip.Addr{netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})}
			nodes = append(nodes, e)
		}
		p.SetNodes(nodes)
		time.Sleep(10 * time.Second)
		down.Store(true)
		time.Sleep(10 * time.Second)
		stop()
		got := text.String()
		if lines := strings.Count(got, "\n"); lines > 150 {
			t.Errorf("%d lines", lines)
		}
		for _, want := range []string{
			`msg="edge is up" node=e`, `msg="edge is down" node=e`, "family=v4 reason=reset", `msg="more edges have changed" count=`,
		} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is not in the log", want)
			}
		}
	})
}

// TestDownInTurns: a dead machine is now unreachable, now silent. That is told once.
func TestDownInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		var asked atomic.Int64
		n, s := &network{serve: func(string) func(net.Conn) {
			return func(c net.Conn) {
				if asked.Add(1)%2 == 0 {
					c.Close()
				}
			}
		}}, &seen{}
		p, stop := run(t, DefaultConfig(), n, s, slog.New(slog.NewTextHandler(&text, nil)))
		e := edge("e1")
		e.Addresses = e.Addresses[:1]
		p.SetNodes([]sched.Node{e})
		time.Sleep(time.Minute)
		stop()
		got := text.String()
		if strings.Count(got, "\n") != 2 || !strings.Contains(got, "reason=reset") || !strings.Contains(got, "reason=timeout") {
			t.Errorf("the log has\n%s", got)
		}
		if n := asked.Load(); n > 60 {
			t.Errorf("%d probes in a minute: a change of words hurries them", n)
		}
	})
}

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	err := Config{Interval: -1, Timeout: time.Hour, Concurrency: 0}.Validate()
	for _, want := range []string{"interval is -1ns: use 200ms to 5m", "timeout is 1h0m0s: use", "concurrency is 0: use"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	if _, err := New(Config{}, "s1", nil, nil, nil, nil, quiet); err == nil {
		t.Error("a zero Config is taken")
	}
	if _, err := New(DefaultConfig(), "no id", nil, nil, nil, nil, quiet); err == nil {
		t.Error("an observer with a blank is taken")
	}
}

func TestWords(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range Outcomes() {
		b, err := o.MarshalText()
		if err != nil || seen[string(b)] || string(b) == "" {
			t.Errorf("%d has the word %q, %v", o, b, err)
		}
		seen[string(b)] = true
	}
	if Outcome(200).String() != "outcome(200)" {
		t.Errorf("got %v", Outcome(200))
	}
}
