package upstream

import (
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/ring"
	"millrace/internal/session"
	"millrace/internal/stream"
)

// town is a datacenter of nodes whose loads a test decides.
type town struct {
	t      *testing.T
	center *node
	nodes  map[string]*node
	load   map[string]*atomic.Int64
	ranked []string // the nodes, the owner of the stream first
}

// startTown starts a center that has a stream, and a datacenter with the nodes a, b and
// so on.
func startTown(t *testing.T, name stream.Name, count int) *town {
	t.Helper()
	const key = "0123456789abcdef"
	w := &town{t: t, center: start(t, "center", keys(key)), nodes: map[string]*node{}, load: map[string]*atomic.Int64{}}
	var all []ring.Member
	urls, starts := map[string]string{}, []func(){}
	for i := range count {
		id := string(rune('a' + i))
		ln, url := listen(t)
		urls[id], w.load[id] = url, new(atomic.Int64)
		all = append(all, ring.Member{ID: id, Weight: 1})
		starts = append(starts, func() {
			w.nodes[id] = startOn(t, ln, id, pool(w.center.url), keys(key), follows(hasty), func(c *Config, o *Options) {
				c.Peers, c.CheckEvery = urls, 50*time.Millisecond
				o.Load = func() float64 { return float64(w.load[id].Load()) }
			})
		})
	}
	for _, f := range starts {
		f()
	}
	w.ranked = ring.Rank(name, all)
	w.center.publishInTime(name)
	return w
}

// at returns the node at a place of the ranking.
func (w *town) at(place int) *node { return w.nodes[w.ranked[place]] }

// loads sets what the node at a place believes to send, and waits until all others know
// what it makes of that.
func (w *town) loads(place int, bytes int64, over bool) {
	w.t.Helper()
	id := w.ranked[place]
	w.load[id].Store(bytes)
	eventually(w.t, "all know how "+id+" stands", func() bool {
		for _, n := range w.nodes {
			for _, m := range n.origin.Members() {
				if m.ID == id && (m.OverSince != nil) != over {
					return false
				}
			}
		}
		return !w.nodes[id].origin.Over().IsZero() == over
	})
}

// A stream whose owner sends more than it should is brought in by the runner-up, for all
// who ask; and when the owner sends less again it comes home, once.
func TestPassedOn(t *testing.T) {
	const name = "live/a"
	w := startTown(t, name, 4)
	w.loads(0, 100<<20, true)
	var readers []*reader
	comeFrom := func(sources ...string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; {
			ok := true
			for i, r := range readers {
				want(t, r.read(1), "")
				ok = ok && r.n.from(name) == sources[i]
			}
			switch {
			case ok:
				return
			case time.Now().After(end):
				for _, r := range readers {
					t.Logf("%s has it from %s: %+v", r.n.id, r.n.from(name), r.n.origin.Events())
				}
				t.Fatalf("it never comes from %q", sources)
			}
		}
	}
	owner, next := w.ranked[0], w.ranked[1]
	for i, place := range []int{2, 3, 1, 0} { // the owner itself too, as the last one
		r := w.at(place).attach(name)
		defer r.detach()
		readers = append(readers, r)
		want(t, r.read(5), "")
		if i == 0 {
			if n := w.at(0).count(PassedOn, session.OverBound.String()); n != 1 {
				t.Errorf("the owner has passed it on %d times", n)
			}
		}
	}
	comeFrom(next, next, "center", next)
	// It stays there, after the time too for which the runner-up takes the word of those
	// who have asked it.
	for end := time.Now().Add(peerTime + time.Second); time.Now().Before(end); {
		comeFrom(next, next, "center", next)
	}
	if s := w.at(0).origin.Standing(); s.PassedOn != 1 || s.OverSince == nil || s.Load != 100<<20 {
		t.Errorf("the owner stands at %+v", s)
	}
	w.loads(0, 0, false)
	comeFrom(owner, owner, owner, "center")
	for range 100 {
		comeFrom(owner, owner, owner, "center")
	}
	for _, r := range readers {
		if n := r.n.count(Switched, "preferred"); n != 1 {
			t.Errorf("%s has moved %d times: %+v", r.n.id, n, r.n.origin.Events())
		}
		for _, e := range r.n.origin.Events() {
			if e.Kind == Lost || e.Kind == Spliced && e.Fig["missing"] != 0 {
				t.Errorf("viewers noticed: %+v", e)
			}
		}
	}
	if s := w.at(0).origin.Standing(); s.PassedOn != 0 {
		t.Errorf("at home the owner stands at %+v", s)
	}
}
