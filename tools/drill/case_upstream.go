package drill

import (
	"fmt"
	"slices"
	"time"

	"millrace/internal/failover"
	"millrace/tools/cluster"
)

// settle is how long viewers are watched after the last fault.
const settle = 2500 * time.Millisecond

// lane is an edge with a stream and a viewer, and when something happened to it.
type lane struct {
	i     int
	v     *viewer
	fault time.Time
}

// openLanes publishes a stream for each edge at the center, and starts the viewers
// when the first frames have been sent for sure. It returns when all play from a, at a
// moment that the seed decides.
func (r *rig) openLanes(p pace) ([]*lane, error) {
	var out []*lane
	for i := range lanes {
		if err := r.wait(r.between(0, 300*time.Millisecond)); err != nil { // where GOPs begin
			return nil, err
		}
		if _, err := r.publish("center", name(i), p); err != nil {
			return nil, err
		}
	}
	if err := r.wait(p(0)); err != nil {
		return nil, err
	}
	// One after the other: a cold start of all at once on a busy machine takes longer
	// than an edge waits before it asks b too.
	for i := range lanes {
		l := &lane{i: i, v: r.view(edge(i), name(i))}
		out = append(out, l)
		if err := r.playing([]*viewer{l.v}); err != nil {
			return nil, err
		}
	}
	if _, err := r.until("all lanes begin with a", func(s cluster.Snapshot) bool {
		for i := range lanes {
			if sourceOf(s, edge(i), name(i)) != "a" {
				return false
			}
		}
		return true
	}); err != nil {
		return nil, err
	}
	return out, r.wait(r.between(calibration, calibration+2*time.Second)) // anywhere in a GOP
}

// breakLinks does something to the links of the lanes to a, one after the other.
func breakLinks(verb cluster.Verb) func(*rig) error {
	return func(r *rig) error {
		all, err := r.openLanes(steady)
		if err != nil {
			return err
		}
		for _, l := range all {
			if err := r.wait(r.between(0, 250*time.Millisecond)); err != nil {
				return err
			}
			l.fault = time.Now()
			if err := r.do("%s %s>a", verb, edge(l.i)); err != nil {
				return err
			}
		}
		return r.closeLanes(all, "b")
	}
}

// breakNode does something to a itself, which all lanes come through.
func breakNode(verb cluster.Verb) func(*rig) error {
	return func(r *rig) error {
		all, err := r.openLanes(steady)
		if err != nil {
			return err
		}
		at := time.Now()
		for _, l := range all {
			l.fault = at
		}
		if err := r.do("%s a", verb); err != nil {
			return err
		}
		return r.closeLanes(all, "b")
	}
}

// closeLanes watches for a while, and wants all streams to come from where.
func (r *rig) closeLanes(all []*lane, where string) error {
	if err := r.wait(settle); err != nil {
		return err
	}
	s := r.observe()
	for _, l := range all {
		if got := sourceOf(s, edge(l.i), name(l.i)); got != where {
			r.broke("%s has its stream from %q, want %s", edge(l.i), got, where)
		}
		l.v.leave()
		r.sum(l.v, l.fault)
		if n := len(r.happened("switched", edge(l.i), name(l.i), l.fault)); n > 1 {
			r.broke("%s switched %d times", edge(l.i), n)
		}
	}
	return nil
}

// each is how many streams an edge has when its upstreams die one after the other.
const each = 5

// upstreamReturns kills a, brings it back, and kills b: it is a's turn again, however
// many streams have lost it before.
func upstreamReturns(r *rig) error {
	var viewers []*viewer
	for i := range each {
		if _, err := r.publish("center", name(i), steady); err != nil {
			return err
		}
	}
	for i := range lanes {
		for k := range each {
			viewers = append(viewers, r.view(edge(i), name(k)))
		}
	}
	if err := r.playing(viewers); err != nil {
		return err
	}
	for _, step := range []struct {
		wait time.Duration
		do   string
	}{
		{r.between(calibration, calibration+time.Second), "kill a"},
		{r.between(1500*time.Millisecond, 2500*time.Millisecond), "restart a"},
		{r.between(time.Second, 2*time.Second), ""},
	} {
		if err := r.wait(step.wait); err != nil {
			return err
		}
		if step.do == "" {
			break
		}
		if err := r.do("%s", step.do); err != nil {
			return err
		}
	}
	fault := time.Now()
	if err := r.do("kill b"); err != nil {
		return err
	}
	if err := r.wait(settle); err != nil {
		return err
	}
	for _, v := range viewers {
		v.leave()
		r.sum(v, fault)
	}
	return nil
}

// slowKbps is sixty percent of a stream.
const slowKbps = totalKbps * 6 / 10

// slowLinks limits the links of each lane to some relays, and returns when all are.
func (r *rig) slowLinks(all []*lane, relays ...string) error {
	for _, l := range all {
		if err := r.wait(r.between(0, 250*time.Millisecond)); err != nil {
			return err
		}
		l.fault = time.Now()
		for _, to := range relays {
			if err := r.do("slow %s>%s %d", edge(l.i), to, slowKbps); err != nil {
				return err
			}
		}
	}
	return nil
}

// slowOne: a is too slow, b is good.
func slowOne(r *rig) error {
	all, err := r.openLanes(steady)
	if err != nil {
		return err
	}
	if err := r.slowLinks(all, "a"); err != nil {
		return err
	}
	if err := r.wait(time.Second); err != nil { // the buffer of the player and what it has seen
		return err
	}
	if err := r.closeLanes(all, "b"); err != nil {
		return err
	}
	r.took(all, "b", 0)
	return nil
}

// slowTwo: a and b are too slow, c is good.
func slowTwo(r *rig) error {
	all, err := r.openLanes(steady)
	if err != nil {
		return err
	}
	if err := r.slowLinks(all, "a", "b"); err != nil {
		return err
	}
	if err := r.wait(time.Second); err != nil {
		return err
	}
	if err := r.closeLanes(all, "c"); err != nil {
		return err
	}
	r.took(all, "c", 3*time.Second)
	return nil
}

// took notes how long it took until the lanes were on a relay; 0 is no limit.
func (r *rig) took(all []*lane, to string, limit time.Duration) {
	for _, l := range all {
		for _, e := range r.happened("switched", edge(l.i), name(l.i), l.fault) {
			if e.To != to {
				continue
			}
			d := e.At.Sub(l.fault)
			r.figure(fmt.Sprintf("ms until on %s", to), ms(d))
			if limit > 0 && d > r.limit(limit) {
				r.broke("%s was on %s after %v, want %v", edge(l.i), to, d.Round(time.Millisecond), limit)
			}
			break
		}
	}
}

// slowAll: there is none that is better.
func slowAll(r *rig) error {
	all, err := r.openLanes(steady)
	if err != nil {
		return err
	}
	if err := r.slowLinks(all, "a", "b"); err != nil {
		return err
	}
	watch := 16 * time.Second
	if r.opt.Short {
		watch = 8 * time.Second
	}
	if err := r.wait(watch); err != nil {
		return err
	}
	r.observe()
	for _, l := range all {
		l.v.leave()
		r.sum(l.v, l.fault)
		r.stayed(l, true)
	}
	return nil
}

// least is the first hold-off after a trial that showed nothing better.
const least = 2 * time.Second

// stayed wants no switch since the fault, and trials ever more seldom.
func (r *rig) stayed(l *lane, growing bool) {
	stream := name(l.i)
	for _, e := range r.happened("switched", edge(l.i), stream, l.fault) {
		r.broke("%s switched from %s to %s because of %s", e.Node, e.From, e.To, e.Reason)
	}
	tries := slices.DeleteFunc(r.happened("tried", edge(l.i), stream, l.fault), func(e cluster.Event) bool {
		return e.Reason == failover.UpstreamSilent.String() // the machine stood still: it ends with that, and shows nothing
	})
	r.figure("trials of a stream", float64(len(tries)))
	pause := least
	for i := 1; growing && i < len(tries); i++ {
		between := tries[i].At.Sub(tries[i-1].At)
		if between < pause {
			r.broke("%s tried %s only %v after the trial before, want %v", edge(l.i), tries[i].To, between.Round(time.Millisecond), pause)
		}
		pause *= 2
	}
}
