package plan

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"millrace/internal/ring"
	"millrace/internal/stream"
)

// TestPlanProperties holds what must be true of the plan of any network.
func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := randomNetwork(t, rapid.Bool().Draw(t, "tight"))
		cfg := config()
		cfg.Flat = rapid.Bool().Draw(t, "flat")
		p := Make(start, n, nil, cfg)
		w := newWorld(start, n, cfg)
		for i := range w.nodes {
			m := &w.nodes[i]
			pool, ok := p.Pools[m.ID]
			if want := m.Alive && m.tier > tierCenter; ok != want {
				t.Fatalf("%s has a pool: %v, want %v", m.ID, ok, want)
			}
			for at, c := range pool {
				up := n.node(c.Upstream)
				if u := w.ids[c.Upstream]; w.nodes[u].tier >= m.tier {
					t.Fatalf("%s (%s) pulls from %s (%s)", m.ID, m.Role, up.ID, up.Role)
				}
				if c.Reason == Pinned {
					if !up.Alive {
						t.Fatalf("%s is pinned to %+v", m.ID, up)
					}
					continue
				}
				if u := w.ids[c.Upstream]; w.nodes[u].why != None || w.rules.banned(u, int32(i)) {
					t.Fatalf("%s pulls from %+v", m.ID, up)
				}
				if d := c.Cost - Cost(c.Parts); d > 1e-9 || d < -1e-9 {
					t.Fatalf("%s: cost %v, parts %v", m.ID, c.Cost, Cost(c.Parts))
				}
				if slices.ContainsFunc(pool[:at], func(b Choice) bool { return b.Upstream == c.Upstream }) {
					t.Fatalf("%s has %s twice", m.ID, c.Upstream)
				}
			}
			checkDomains(t, w, m, p, cfg)
		}
		checkCapacity(t, w, p, cfg)
	})
}

// checkDomains wants the second choice in another failure domain where there is one.
func checkDomains(t *rapid.T, w *world, m *node, p *Plan, cfg *Config) {
	pool := p.Pools[m.ID]
	if len(pool) < 2 || pool[1].Reason == Pinned {
		return
	}
	first := w.nodes[w.ids[pool[0].Upstream]].domain
	if w.nodes[w.ids[pool[1].Upstream]].domain != first {
		return
	}
	for _, u := range usableBy(w, m, p, cfg) {
		if w.nodes[u].domain != first {
			t.Fatalf("%s: both of %v are of one failure domain, and %s is not", m.ID, pool, w.nodes[u].ID)
		}
	}
}

// usableBy are all upstreams that a node may choose.
func usableBy(w *world, m *node, p *Plan, cfg *Config) (out []int32) {
	out = slices.Clone(w.tiers[tierCenter])
	if m.tier == tierEdge && !cfg.Flat {
		for _, r := range w.tiers[tierRelay] {
			if len(w.tiers[tierCenter]) == 0 || len(p.Pools[w.nodes[r].ID]) > 0 { // else it has nothing itself
				out = append(out, r)
			}
		}
	}
	return slices.DeleteFunc(out, func(u int32) bool { return w.rules.banned(u, w.ids[m.ID]) })
}

// checkCapacity wants no upstream given more than its share while there is room elsewhere.
func checkCapacity(t *rapid.T, w *world, p *Plan, cfg *Config) {
	used := make([]float64, len(w.nodes))
	for i := range w.nodes {
		if pool := p.Pools[w.nodes[i].ID]; len(pool) > 0 {
			used[w.ids[pool[0].Upstream]] += w.nodes[i].demand
		}
	}
	for i := range w.nodes {
		m := &w.nodes[i]
		pool := p.Pools[m.ID]
		if len(pool) == 0 {
			continue
		}
		up := w.ids[pool[0].Upstream]
		over := used[up] > cfg.MaxUse*w.nodes[up].capacity*(1+1e-12)
		if pool[0].Reason == OverCapacity {
			for _, u := range usableBy(w, m, p, cfg) {
				if used[u]+m.demand <= cfg.MaxUse*w.nodes[u].capacity {
					t.Fatalf("%s is over the capacity of %s, and %s has room", m.ID, w.nodes[up].ID, w.nodes[u].ID)
				}
			}
		} else if over {
			// Others may have been added without room; then one of them says so.
			if !slices.ContainsFunc(w.nodes, func(o node) bool {
				c := p.Pools[o.ID]
				return len(c) > 0 && c[0].Upstream == w.nodes[up].ID && (c[0].Reason == OverCapacity || c[0].Reason == Pinned)
			}) {
				t.Fatalf("%s is given %v of %v, and nobody says so", w.nodes[up].ID, used[up], w.nodes[up].capacity)
			}
		}
	}
}

// TestEqualInputs wants equal plans of equal networks, in whatever order their rows are.
func TestEqualInputs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := randomNetwork(t, rapid.Bool().Draw(t, "tight"))
		old := Make(start, n, nil, config())
		shuffled := n.clone()
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		r.Shuffle(len(shuffled.Nodes), func(i, j int) {
			shuffled.Nodes[i], shuffled.Nodes[j] = shuffled.Nodes[j], shuffled.Nodes[i]
		})
		if p := Make(start, shuffled, nil, config()); !reflect.DeepEqual(p, old) {
			t.Fatalf("another order, another plan:\n%v\n%v", p, old)
		}
		a, b := Make(start, n, old, config()), Make(start, shuffled, old, config())
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("another order, another plan after the first:\n%v\n%v", a, b)
		}
	})
}

// TestNoChurn wants nothing moved by time and noise.
func TestNoChurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := randomNetwork(t, false)
		cfg := config()
		p := Make(start, n, nil, cfg)
		for round := range 4 {
			noisy := n.clone()
			for i := range noisy.Nodes {
				noisy.Nodes[i].Load = rapid.Int64Range(0, 20<<20).Draw(t, "load") // of 1 GB/s and more
			}
			next := Make(start.Add(time.Duration(round)*time.Second), noisy, p, cfg)
			if next.Version != p.Version {
				t.Fatalf("round %d: %v became %v", round, p.Pools, next.Pools)
			}
			p = next
		}
	})
}

// TestOneLeaves wants a relay or center that dies to change the pools that had it only.
func TestOneLeaves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := randomNetwork(t, false)
		cfg := config()
		p := Make(start, n, nil, cfg)
		gone := rapid.SampledFrom(n.Nodes).Draw(t, "gone")
		less := n.clone()
		less.node(gone.ID).Alive = false
		next := Make(start, less, p, cfg)
		for id, pool := range next.Pools {
			had := slices.Contains(p.upstreams(id), gone.ID)
			if slices.Contains(next.upstreams(id), gone.ID) {
				t.Fatalf("%s still has %s, which is dead", id, gone.ID)
			}
			if had || sameUpstreams(pool, p.Pools[id]) {
				continue
			}
			// What is behind an upstream that had it has changed, which is a reason too.
			if slices.ContainsFunc(p.upstreams(id), func(up string) bool { return slices.Contains(p.upstreams(up), gone.ID) }) {
				continue
			}
			// And so is that no center is left to be reached: then relays without one will do.
			if gone.Role == Center && len(newWorld(start, less, cfg).tiers[tierCenter]) == 0 {
				continue
			}
			t.Fatalf("%s died: the pool of %s became %v from %v", gone.ID, id, next.upstreams(id), p.upstreams(id))
		}
	})
}

// TestPathProperties wants answers that never make a ring, whoever asks when and whatever
// was answered before.
func TestPathProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := randomNetwork(t, rapid.Bool().Draw(t, "tight"))
		name, s := randomStream(t, n)
		n.Streams = StreamMap{name: s}
		cfg := config()
		v := NewView(start, n, Make(start, n, nil, cfg), cfg)
		for range rapid.IntRange(1, 40).Draw(t, "questions") {
			m := rapid.SampledFrom(n.Nodes).Draw(t, "node")
			var a PathAnswer
			v.Path(m.ID, name, &a)
			if m.ID == s.Source {
				if a.Reason != Source || len(a.Choices) > 0 {
					t.Fatalf("the source is sent to %+v", a)
				}
				continue
			}
			seen := map[string]bool{m.ID: true}
			for _, c := range a.Choices {
				if seen[c.Upstream] {
					t.Fatalf("%s is there twice or asks itself: %+v", c.Upstream, a)
				}
				seen[c.Upstream] = true
				if len(c.Hops) == 0 || c.Hops[0] != c.Upstream || slices.Contains(c.Hops, m.ID) {
					t.Fatalf("%s: hops %v", m.ID, c.Hops)
				}
			}
			if len(a.Choices) == 0 || a.Reason == Pool || !m.Alive {
				continue
			}
			s.Carriers[m.ID] = a.Choices[0].Upstream
			if up := a.Choices[0].Upstream; up != s.Source && s.Carriers[up] == "" && a.Reason != Pinned {
				// The node between asks as well, by what was known when the first one asked.
				// It goes to the owner in its datacenter first, and that asks.
				from := s.Source
				if o := v.ownerOf(up, name); o != up && o != m.ID && o != s.Source {
					from = o
					if s.Carriers[o] == "" {
						s.Carriers[o] = s.Source
					}
				}
				if a.Choices[0].Hops[1] != from {
					t.Fatalf("%s begins to pull over %v, and not from %s", up, a.Choices[0].Hops, from)
				}
				s.Carriers[up] = from
			}
			if err := follow(s, m.ID); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// ownerOf returns who brings a stream into the datacenter of a node.
func (v *View) ownerOf(node string, s stream.Name) string {
	if r := v.rings[v.ids[node]]; len(r) > 1 {
		owner, _ := ring.Owners(s, r)
		return owner
	}
	return node
}

// TestStalePathsMakeNoRing lets all nodes ask with the same old knowledge at once, many
// times over: what they are told, taken together, must lead to the source.
func TestStalePathsMakeNoRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := randomNetwork(t, false)
		name, s := randomStream(t, n)
		cfg := config()
		p := Make(start, n, nil, cfg)
		next := map[string]string{}
		for range 4 {
			// What is known of who carries it is any earlier state.
			n.Streams = StreamMap{name: s}
			v := NewView(start, n, p, cfg)
			for _, m := range n.Nodes {
				if !rapid.Bool().Draw(t, "asks") || m.ID == s.Source {
					continue
				}
				var a PathAnswer
				v.Path(m.ID, name, &a)
				if len(a.Choices) > 0 && a.Reason != Pool {
					next[m.ID] = a.Choices[0].Upstream
				}
			}
			told := &Stream{Source: s.Source, Bitrate: s.Bitrate, Carriers: map[string]string{s.Source: ""}}
			for id, up := range next {
				told.Carriers[id] = up
				if err := follow(&Stream{Source: s.Source, Carriers: next}, id); err != nil {
					t.Fatal(err)
				}
			}
			s = told
		}
	})
}
