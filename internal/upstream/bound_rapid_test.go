package upstream

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"millrace/internal/httpflv"
)

// model is a datacenter in virtual time, with one stream. Its nodes decide by their
// members as sessions do; dialling and media take no time.
type model struct {
	t     *rapid.T
	now   time.Time
	urls  map[string]string
	nodes map[string]*modelNode
}

// abroad is where a stream comes from that a node brings in itself.
const abroad = "abroad"

type modelNode struct {
	id      string
	m       *members
	down    bool
	viewers bool
	load    float64
	figures httpflv.Figures // as it tells them, up to a second old
	phase   time.Duration   // when it checks others

	from    string // the session: where the stream comes from; empty while there is none
	outside bool
	began   time.Time
	peer    bool // it began for another node
	word    word
	away    map[string]time.Time
	hold    time.Time
	pause   time.Duration
	unread  time.Time
	moves   int
}

func newModel(t *rapid.T, count int) *model {
	w := &model{t: t, now: time.Unix(1_800_000_000, 0), urls: map[string]string{}, nodes: map[string]*modelNode{}}
	for i := range count {
		w.urls[string(rune('a'+i))] = "http://x:1"
	}
	for id := range w.urls {
		w.nodes[id] = &modelNode{id: id, phase: time.Duration(rapid.IntRange(0, 9).Draw(t, "phase")) * 100 * time.Millisecond}
		w.start(w.nodes[id])
	}
	return w
}

// start has a node begin with nothing in mind.
func (w *model) start(n *modelNode) {
	n.m = newMembers(n.id, 0)
	n.m.set(w.urls, nil)
	n.down = false
	w.end(n)
}

// end ends the session of a node.
func (w *model) end(n *modelNode) {
	n.from, n.outside, n.word, n.away = "", false, word{}, map[string]time.Time{}
	n.hold, n.pause, n.unread = time.Time{}, 0, time.Time{}
}

func (w *model) sorted() []*modelNode {
	var out []*modelNode
	for _, id := range slices.Sorted(maps.Keys(w.nodes)) {
		out = append(out, w.nodes[id])
	}
	return out
}

// run lets time pass.
func (w *model) run(d time.Duration) {
	const step = 100 * time.Millisecond
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(step) {
		since := w.now.Sub(time.Unix(1_800_000_000, 0))
		for _, n := range w.sorted() {
			if n.down {
				continue
			}
			if since%time.Second == n.phase {
				n.figures = httpflv.Figures{Load: int64(n.load), Over: milli(n.m.over)}
			}
			if (since+n.phase)%(500*time.Millisecond) == 0 {
				n.m.weigh(w.now, n.load)
				for _, other := range w.sorted() {
					n.m.checked(other.id, !other.down)
					if !other.down {
						n.m.told(other.id, other.figures)
					}
				}
			}
			w.step(n)
		}
	}
}

func milli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// read reports whether somebody has the stream from n.
func (w *model) read(n *modelNode) bool {
	return n.viewers || slices.ContainsFunc(w.sorted(), func(o *modelNode) bool { return !o.down && o.from == n.id })
}

// step is what a session does.
func (w *model) step(n *modelNode) {
	const linger, hold = 2 * time.Second, 2 * time.Second
	switch {
	case w.read(n):
		n.unread = time.Time{}
	case n.from == "":
		return
	case n.unread.IsZero():
		n.unread = w.now
	case w.now.Sub(n.unread) >= linger:
		w.end(n)
		return
	}
	if n.from == "" {
		w.begin(n, false)
		return
	}
	if up := w.nodes[n.from]; up != nil && (up.down || up.from == "") {
		if up.down {
			n.m.failed(up.id, w.now)
		}
		clear(n.away)
		n.from = ""
		w.find(n)
		return
	}
	goal := ""
	if to := w.owners(n); len(to) > 0 {
		goal = to[0].node
	} else if n.m.lent("live/a") == n.from {
		goal = abroad
	}
	if goal == "" || goal == n.from || w.now.Before(n.hold) || w.now.Before(n.away[goal]) {
		return
	}
	if w.try(n, goal) {
		n.moves++
		n.pause = 0
		return
	}
	if n.word.at == w.now { // it was told where to go: that is no failure
		return
	}
	n.pause = min(max(2*n.pause, hold), time.Minute)
	n.hold = w.now.Add(n.pause)
}

// owners are those of a session.
func (w *model) owners(n *modelNode) []target {
	if n.peer && w.now.Sub(n.began) < peerTime {
		return nil
	}
	return n.m.owners(w.now, "live/a", &n.word)
}

// begin starts a session.
func (w *model) begin(n *modelNode, peer bool) {
	w.end(n)
	n.began, n.peer = w.now, peer
	w.find(n)
}

// find looks for the stream where a session without one does.
func (w *model) find(n *modelNode) {
	for range 4 {
		to := slices.DeleteFunc(w.owners(n), func(t target) bool { return w.now.Before(n.away[t.node]) })
		if len(to) == 0 {
			break
		}
		if w.try(n, to[0].node) {
			return
		}
	}
	w.try(n, abroad)
}

// try has n take the stream from a node, or from abroad.
func (w *model) try(n *modelNode, from string) bool {
	if from == abroad {
		n.from, n.outside = abroad, true
		return true
	}
	up := w.nodes[from]
	if up.down {
		n.m.failed(up.id, w.now)
		return false
	}
	if up.from != "" && up.outside {
		up.m.carried("live/a")
	} else if to, over, _ := up.m.passOn(w.now, "live/a", up.from != ""); to != "" {
		n.word = n.m.heardOf(w.now, from, &httpflv.PullError{To: to, Over: milli(over)})
		n.away[from] = w.now.Add(absentPause)
		return false
	}
	for hop := up; hop != nil; hop = w.nodes[hop.from] {
		if hop.from == n.id { // it would go round
			n.away[from] = w.now.Add(circlePause)
			return false
		}
	}
	if up.from == "" {
		w.begin(up, true)
	}
	n.from, n.outside = from, false
	return true
}

// settled wants the stream to be brought in once, and everybody to have it from there.
func (w *model) settled(after string) {
	var in []string
	for _, n := range w.sorted() {
		switch {
		case n.down:
		case n.from == abroad:
			in = append(in, n.id)
		case n.viewers && n.from == "":
			w.t.Fatalf("after %s: %s does not have it", after, n.id)
		}
	}
	if len(in) > 1 || len(in) == 0 && slices.ContainsFunc(w.sorted(), func(n *modelNode) bool { return n.viewers && !n.down }) {
		for _, n := range w.sorted() {
			w.t.Logf("%s: down %v, viewers %v, load %.0f, over %v, from %q, word %+v, passed %v", n.id, n.down, n.viewers, n.load, n.m.over, n.from, n.word, n.m.passed["live/a"])
		}
		w.t.Fatalf("after %s: brought in by %v", after, in)
	}
}

// Whatever the loads are, whoever asks, dies and comes back: the stream settles at one
// bringer, and a change of loads moves it once at most.
func TestOneBringer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newModel(t, rapid.IntRange(2, 5).Draw(t, "nodes"))
		w.run(3 * time.Second)
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			n := w.nodes[rapid.SampledFrom(slices.Sorted(maps.Keys(w.nodes))).Draw(t, "node")]
			what := rapid.SampledFrom([]string{"load", "load", "load", "viewers", "viewers", "viewers", "death"}).Draw(t, "what")
			for _, n := range w.nodes {
				n.moves = 0
			}
			switch what {
			case "load":
				n.load = rapid.SampledFrom([]float64{0, 1 << 20, 10 << 20, 100 << 20}).Draw(t, "load")
			case "viewers":
				n.viewers = !n.viewers
			case "death":
				n.down = true
				w.end(n)
				if d := rapid.SampledFrom([]time.Duration{200 * time.Millisecond, time.Second, 10 * time.Second}).Draw(t, "for"); rapid.Bool().Draw(t, "returns") {
					w.run(d)
					w.start(n)
					what += " for " + d.String()
				}
			}
			w.run(15 * time.Second)
			w.settled(what + " of " + n.id)
			if what == "load" {
				for _, n := range w.sorted() {
					if n.moves > 1 {
						t.Fatalf("%s has moved %d times", n.id, n.moves)
					}
				}
			}
		}
	})
}
