package upstream

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/failover"
	"millrace/internal/httpflv"
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

// comeFrom reads until the readers have their stream from the nodes named.
func comeFrom(readers []*reader, sources ...string) {
	t := readers[0].t
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		ok := true
		for i, r := range readers {
			want(t, r.read(1), "")
			ok = ok && r.n.from(r.s.Name()) == sources[i]
		}
		switch {
		case ok:
			return
		case time.Now().After(end):
			for _, r := range readers {
				t.Logf("%s has it from %s: %+v", r.n.id, r.n.from(r.s.Name()), r.n.origin.Events())
			}
			t.Fatalf("it never comes from %q", sources)
		}
	}
}

// A stream whose owner sends more than it should is brought in by the runner-up, for all
// who ask; and when the owner sends less again it comes home, once.
func TestPassedOn(t *testing.T) {
	const name = "live/a"
	w := startTown(t, name, 4)
	w.loads(0, 100<<20, true)
	var readers []*reader
	comeFrom := func(sources ...string) { t.Helper(); comeFrom(readers, sources...) }
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

// When the one dies that has a stream instead of its owner, the owner names another one.
func TestPassedOnAnew(t *testing.T) {
	const name = "live/a"
	w := startTown(t, name, 4)
	w.loads(0, 100<<20, true)
	r := w.at(3).attach(name)
	defer r.detach()
	readers := []*reader{r}
	comeFrom(readers, w.ranked[1])
	want(t, r.read(50), "") // enough to recognise them elsewhere
	w.at(1).stop()
	delete(w.nodes, w.ranked[1])
	comeFrom(readers, w.ranked[2])
	eventually(t, "the owner has named it", func() bool { return w.at(0).count(PassedOn, "") == 2 })
	for end := time.Now().Add(peerTime + time.Second); time.Now().Before(end); {
		comeFrom(readers, w.ranked[2])
	}
	for _, e := range r.n.origin.Events() {
		if e.Kind == Spliced && e.Fig["missing"] != 0 {
			t.Errorf("viewers noticed: %+v", e)
		}
	}
}

// Who was asked for a stream by its owner moves to that owner, when it comes home.
func TestComesHomeFromWhoWasAsked(t *testing.T) {
	const name = "live/a"
	w := startTown(t, name, 3)
	w.loads(0, 100<<20, true)
	first := w.at(2).attach(name)
	want(t, first.read(5), "")
	first.detach()
	eventually(t, "the runner-up has it no more", func() bool { return w.at(1).origin.Stats().Sessions == 0 })
	var readers []*reader
	for place := range 2 {
		r := w.at(place).attach(name)
		defer r.detach()
		readers = append(readers, r)
		want(t, r.read(5), "")
	}
	comeFrom(readers, w.ranked[1], "center")
	w.loads(0, 0, false)
	comeFrom(readers, "center", w.ranked[0])
}

// Where to go instead is no failure: nothing that may be tried waits because of it.
func TestRedirectedCostsNothing(t *testing.T) {
	n := start(t, "n", func(c *Config, _ *Options) { c.Peers = map[string]string{"b": "http://b:1"} })
	x := newSession(n.origin, new(stream.Stream), stream.Demand{})
	now, b := time.Now(), &feed{s: x, to: target{url: "http://b:1", node: "b", member: true}}
	well := failover.CurrentView{Present: true, Verdict: failover.Good}
	try := func() {
		t.Helper()
		now = now.Add(50 * time.Millisecond)
		if d := x.policy.Step(now, failover.View{Current: well, Left: 1, Prefer: true}); d.Action != failover.Try {
			t.Fatalf("it does %v, want to try", d.Action)
		}
	}
	try()
	refused := fmt.Errorf("pull: %w", &httpflv.PullError{Reason: "over_bound", To: "n", Over: 7})
	if why := x.redirected(now, b, refused); why != failover.OverBound || x.blame(now, b, why) != failover.OverBound {
		t.Errorf("it failed by %v", why)
	}
	if x.word.by != "b" || x.word.to != "n" || x.word.over != 7 || len(x.failures) != 0 || n.origin.members.peers["b"].skip.After(now) {
		t.Errorf("it heard %+v, failures %v", x.word, x.failures)
	}
	x.policy.Step(now, failover.View{Current: well, Left: 1})
	try()
	b.to.member = false
	if why := x.redirected(now, b, refused); why != failover.Refused {
		t.Errorf("who is no member failed by %v", why)
	}
}

// owned returns members with the peers b, c and d that have said what they send, and a
// stream that this node, a, owns; rank are those behind it.
func owned(t *testing.T) (m *members, n stream.Name, rank []string) {
	t.Helper()
	m = newMembers("a", 0)
	all := []ring.Member{{ID: "a", Weight: 1}}
	urls := map[string]string{}
	for _, id := range []string{"b", "c", "d"} {
		urls[id] = "http://" + id + ":1"
		all = append(all, ring.Member{ID: id, Weight: 1})
	}
	m.set(urls, nil)
	for id := range urls {
		m.told(id, httpflv.Figures{})
	}
	for i := 0; ; i++ {
		n = stream.Name(fmt.Sprint("live/", i))
		if rank = ring.Rank(n, all); rank[0] == "a" {
			return m, n, rank[1:]
		}
	}
}

// An owner that is over its bound passes on what it does not have, and sticks to it.
func TestPassOn(t *testing.T) {
	over, now := time.Unix(1_800_000_000, 0), time.Unix(1_800_000_001, 0)
	full := httpflv.Figures{Load: 1 << 30, Over: 1}
	m, n, rank := owned(t)
	f := func(name string, begun bool, want string, wantFirst bool) {
		t.Helper()
		to, since, first := m.passOn(now, n, begun)
		if to != want || first != wantFirst || since != m.over {
			t.Errorf("%s: %q %v %v, want %q %v %v", name, to, since, first, want, m.over, wantFirst)
		}
	}
	f("within its bound", false, "", false)
	m.over = over
	f("over it at once, as another one asks", false, "", false)
	now = now.Add(wordStands)
	f("over it, and nobody looks for it", false, rank[0], true)
	m.told(rank[0], full)
	f("asked again, as the other is over its bound too", false, rank[0], false)
	f("asked again, while this node has it from there", true, rank[0], false)
	m.over = time.Time{}
	f("within its bound again, and has it from there", true, rank[0], false)
	f("within its bound again", false, "", false)
	m.over = over
	f("over it as it comes home", false, "", false)

	m, n, rank = owned(t)
	m.over = over
	f("begun before anybody asked", true, "", false)
	m.told(rank[0], full)
	f("the runner-up is over its bound", false, rank[1], true)
	for range deadAfter {
		m.checked(rank[1], false)
	}
	f("who has it is dead", false, rank[2], true)
	m.carried(n)
	m.told(rank[2], full)
	f("all that live are over their bounds", false, "", false)

	m, _, _ = owned(t)
	m.over = over
	m.set(nil, &Orders{Weight: 1, Peers: []Upstream{{Node: "x", URL: "http://x:1", Weight: 1}}})
	n, _ = ownedBy(m, "a")
	f("of the others nothing is known", false, "", false)
	n, _ = ownedBy(m, "x")
	f("another one owns it", false, "", false)

	m, n, _ = owned(t)
	m.over = over
	for i := range maxPassed {
		m.passed[stream.Name(fmt.Sprint("other/", i))] = &passed{to: "b", used: now}
	}
	f("too many are passed on", false, "", false)
	if len(m.passed) != maxPassed {
		t.Errorf("it remembers %d", len(m.passed))
	}
}

// ownedBy returns a stream that id owns, as m sees it.
func ownedBy(m *members, id string) (n stream.Name, ok bool) {
	for i := range 1000 {
		n = stream.Name(fmt.Sprint("live/", i))
		if owner, _ := ring.Owners(n, m.live(time.Now())); owner == id {
			return n, true
		}
	}
	return "", false
}

// What is decided is forgotten when nobody asks any more.
func TestPassedIsForgotten(t *testing.T) {
	m, _, _ := owned(t)
	now := time.Unix(1_800_000_000, 0)
	m.passed["live/kept"] = &passed{at: now, used: now}
	m.passed["live/passed"] = &passed{to: "b", at: now, used: now.Add(time.Minute)}
	f := func(after time.Duration, want int) {
		t.Helper()
		if m.weigh(now.Add(after), 0); len(m.passed) != want {
			t.Errorf("after %v it remembers %v, want %d", after, m.passed, want)
		}
	}
	f(wordStands-1, 2)
	f(wordStands, 1)
	f(keepPassed, 1)
	f(keepPassed+time.Minute, 0)
}

// What an owner has said counts for as long as it can be true.
func TestWordStands(t *testing.T) {
	m, _, _ := owned(t)
	now := time.Unix(1_800_000_000, 0)
	n, _ := ownedBy(m, "b")
	all := m.live(now)
	rank := ring.Rank(n, all)
	others := slices.DeleteFunc(slices.Clone(rank), func(id string) bool { return id == "b" || id == "a" })
	f := func(name string, w word, want ...string) {
		t.Helper()
		var got []string
		for _, to := range m.owners(now, n, &w) {
			got = append(got, to.node)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	// behind returns those of ids in front of this node, two at most.
	behind := func(ids ...string) []string {
		if i := slices.Index(ids, "a"); i >= 0 {
			ids = ids[:i]
		}
		return ids[:min(len(ids), 2)]
	}
	asked := behind(rank...)
	last := others[len(others)-1]
	rest := slices.DeleteFunc(slices.Clone(rank), func(id string) bool { return id == "b" || id == last })
	said := word{by: "b", to: last, at: now.Add(-time.Minute), until: now.Add(time.Minute), over: 7}
	m.told("b", httpflv.Figures{Over: 7})

	f("nothing", word{}, asked...)
	f("to another", said, behind(append([]string{last}, rest...)...)...)
	to := said
	to.to = "a"
	f("to this node", to)
	to.to = ""
	f("to nobody", to, asked...)
	to = said
	to.until = now
	f("long ago", to, asked...)
	m.told("b", httpflv.Figures{Over: 8})
	f("before it began anew", said, asked...)
	m.told("b", httpflv.Figures{})
	f("before it was within its bound", said, asked...)
	said.at = now.Add(1 - wordStands)
	f("just now", said, behind(append([]string{last}, rest...)...)...)
	m.failed(last, now)
	f("just now, to one that does not answer", said, behind(rest...)...)
	said.at = now.Add(-wordStands)
	f("to one that does not answer", said, behind(slices.DeleteFunc(slices.Clone(rank), func(id string) bool { return id == last })...)...)
	said.by = "x"
	f("of nobody", said, behind(slices.DeleteFunc(slices.Clone(rank), func(id string) bool { return id == last })...)...)
}
