package failover

import (
	"fmt"
	"testing"
	"time"

	"millrace/internal/flv"
	"millrace/internal/session"
)

// server is an upstream in simulated time. Its connections get what the source has
// released, at the rate of the link.
type server struct {
	url     string
	rate    func(ms int) float64 // part of the bitrate that gets through; nil: all of it
	frozen  func(ms int) bool    // nothing comes, not even link tags
	down    func(ms int) bool    // connections break, and are refused
	hole    bool                 // takes connections and never answers
	foreign bool                 // no link tags
	shift   int64
	epoch   int64
	release func(dts int64) int // when the source gives out a frame; nil: at its time
	keep    func(n int) bool    // which video frames are sent; nil: all
}

// world is a session with its upstreams.
type world struct {
	t       *testing.T
	src     *source
	servers map[string]*server
	cfg     Config
	policy  *Policy
	pool    *Pool
	splicer *Splicer
	viewer  *viewer

	now     int // ms
	current *feed
	lost    session.Reason
	trials  []*feed
	ids     int

	log    []string
	tries  int
	moves  []string // upstreams that became current
	movedA []int    // when
	gap    int      // longest pause at the viewer, once it had begun
	fed    int      // when the viewer got something last
	stalls int      // ms that a player with a buffer of a second had nothing to play
	buffer float64
	begun  bool
}

// feed is one connection.
type feed struct {
	id     int
	url    string
	srv    *server
	trial  *Trial
	next   int // index of the next frame of the source
	free   float64
	linkAt int
	since  int
	flows  bool
	joined bool
}

func newWorld(t *testing.T, src *source, servers ...*server) *world {
	w := &world{
		t: t, src: src, servers: map[string]*server{}, cfg: DefaultConfig(),
		splicer: NewSplicer(), viewer: &viewer{s: src}, now: 3000, lost: session.None,
	}
	var urls []string
	for _, s := range servers {
		w.servers[s.url] = s
		urls = append(urls, s.url)
	}
	w.policy, w.pool = NewPolicy(&w.cfg), NewPool(urls, seeded(1))
	return w
}

func (w *world) time() time.Time { return at(w.now) }

func (w *world) busy(url string) bool {
	if w.current != nil && w.current.url == url {
		return true
	}
	for _, f := range w.trials {
		if f.url == url {
			return true
		}
	}
	return false
}

func size(t flv.Tag) float64 {
	switch {
	case t.Is(flv.Keyframe):
		return 40_000
	case t.Kind == flv.Video:
		return 10_000
	}
	return 400
}

const bitrate = 25*10_000 + 15_000 + 43*400 // bytes/s, with a keyframe every two seconds

func (w *world) released(s *server, f flv.Tag) bool {
	if s.release == nil {
		return f.DTS <= int64(w.now)
	}
	return s.release(f.DTS) <= w.now
}

// deliver moves what the link lets through within the last 10 ms.
func (w *world) deliver(f *feed) (alive bool) {
	s := f.srv
	if s.down != nil && s.down(w.now) {
		return false
	}
	if s.hole || s.frozen != nil && s.frozen(w.now) || w.now < f.since+20 {
		return true
	}
	if f.next < 0 { // the first keyframe at least 1.5 s behind the newest
		f.next = 0
		for i, t := range w.src.frames {
			if t.Is(flv.Keyframe) && t.DTS <= int64(w.now)-1500 && w.released(s, t) {
				f.next = i
			}
		}
		w.give(f, metadata(s.url))
		w.give(f, flv.New(flv.Video, 0, videoHeader))
		w.give(f, flv.New(flv.Audio, 0, audioHeader))
	}
	limit := 100.0
	if s.rate != nil {
		limit = s.rate(w.now)
	}
	f.free = min(f.free+limit*bitrate*0.01, max(limit*bitrate*0.01, 16_000))
	for f.free > 0 {
		more := f.next < len(w.src.frames) && w.released(s, w.src.frames[f.next])
		if !s.foreign && w.now-f.linkAt >= 250 {
			f.linkAt = w.now
			f.trial.Link(w.time(), w.time(), !more)
		}
		if !more {
			break
		}
		t := w.src.frames[f.next]
		n := f.next
		f.next++
		if s.keep != nil && t.Kind == flv.Video && !s.keep(n) {
			continue
		}
		f.free -= size(t)
		t.DTS += s.shift
		w.give(f, t)
	}
	return true
}

// give hands a tag of f to whoever wants it.
func (w *world) give(f *feed, t flv.Tag) {
	f.flows = f.flows || t.Is(flv.Frame)
	if f.joined {
		f.trial.Came(w.time(), t)
		w.show(w.splicer.Take(w.time(), t, nil))
		return
	}
	if !f.trial.Take(w.time(), t) {
		w.t.Fatalf("%d ms: trial of %s is over its bound", w.now, f.url)
	}
}

func (w *world) show(out []flv.Tag) {
	before := w.viewer.newest
	if err := w.viewer.see(out); err != nil {
		w.t.Fatalf("%d ms: %v\n%v", w.now, err, w.log)
	}
	if len(out) == 0 {
		return
	}
	if w.begun {
		w.gap = max(w.gap, w.now-w.fed)
		w.buffer += float64(w.viewer.newest - before)
	}
	w.begun, w.fed = true, w.now
}

func (w *world) view() View {
	v := View{Left: w.pool.Left(w.time(), w.busy)}
	v.Current.Lost = w.lost
	if c := w.current; c != nil {
		v.Current = CurrentView{
			Present: true, Verdict: c.trial.Verdict(w.time()), Figures: c.trial.Figures(w.time()), Epoch: c.srv.epoch,
		}
	}
	for _, f := range w.trials {
		t := TrialView{
			ID: f.id, Verdict: f.trial.Verdict(w.time()), Figures: f.trial.Figures(w.time()),
			Age: ms(int64(w.now - f.since)), Epoch: f.srv.epoch,
		}
		if f.flows {
			t.State = Flowing
		}
		same := w.current != nil && w.current.srv.shift == f.srv.shift
		t.Lead, t.Aligned = f.trial.Lead(w.splicer.Window(), same)
		v.Trials = append(v.Trials, t)
	}
	return v
}

func (w *world) logf(format string, a ...any) {
	w.log = append(w.log, fmt.Sprintf("%d: ", w.now)+fmt.Sprintf(format, a...)+"\n")
}

// decide performs what the policy says.
func (w *world) decide() {
	for {
		d := w.policy.Step(w.time(), w.view())
		if d.Action == None {
			return
		}
		switch d.Action {
		case Try:
			url, _ := w.pool.Next(w.time(), w.busy)
			w.logf("try %s: %v %+v", url, d.Reason, d.Current)
			w.tries++
			w.ids++
			s := w.servers[url]
			if s.down != nil && s.down(w.now) {
				w.pool.Failed(w.time(), url, Refused)
				continue
			}
			w.trials = append(w.trials, &feed{id: w.ids, url: url, srv: s, trial: NewTrial(&w.cfg, w.time()), next: -1, since: w.now})
		case GiveUp:
			f := w.take(d.ID)
			w.logf("give up %s: %v, hold off %v, lead %v %v %+v", f.url, d.Reason, d.HoldOff, d.Lead, d.Aligned, d.Trial)
			kind := Worse
			if d.Reason == NoMedia {
				kind = Timeout
			}
			w.pool.Failed(w.time(), f.url, kind)
		case Switch:
			f := w.take(d.ID)
			w.logf("switch to %s: %v, lead %v %v %+v", f.url, d.Reason, d.Lead, d.Aligned, d.Trial)
			same := w.current == nil || w.current.srv.shift == f.srv.shift
			w.current, f.joined = f, true
			w.moves, w.movedA = append(w.moves, f.url), append(w.movedA, w.now)
			w.pool.Good(w.time(), f.url)
			w.show(w.splicer.JoinTrial(w.time(), f.trial, same, nil))
		}
	}
}

func (w *world) take(id int) *feed {
	for i, f := range w.trials {
		if f.id == id {
			w.trials = append(w.trials[:i:i], w.trials[i+1:]...)
			return f
		}
	}
	w.t.Fatalf("no trial %d", id)
	return nil
}

// run lets time pass up to end, in ms.
func (w *world) run(end int) {
	for ; w.now < end; w.now += 10 {
		lost := false
		if c := w.current; c != nil && !w.deliver(c) {
			w.logf("lost %s", c.url)
			w.pool.Failed(w.time(), c.url, Lost)
			w.current, w.lost, lost = nil, session.UpstreamLost, true
		}
		flows := false
		for _, f := range append([]*feed(nil), w.trials...) {
			had := f.flows
			if !w.deliver(f) {
				w.take(f.id)
				w.pool.Failed(w.time(), f.url, Lost)
			}
			flows = flows || f.flows && !had
		}
		if lost || flows || w.now%100 == 0 {
			w.decide()
			w.show(w.splicer.Poll(w.time(), nil))
		}
		if w.begun {
			w.gap = max(w.gap, w.now-w.fed)
			if w.buffer -= 10; w.buffer < -1000 { // a second of it, less what is played
				w.stalls += 10
				w.buffer = -1000
			}
		}
	}
}
