package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/sched"
)

// scripted is a Source that gives what it is sent.
type scripted struct{ bundles chan *Bundle }

func (s *scripted) Next(ctx context.Context, _ *Bundle) (*Bundle, error) {
	select {
	case b := <-s.bundles:
		if b == nil {
			return nil, errors.New("nothing to begin with")
		}
		return b, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *scripted) Status() SourceStatus { return SourceStatus{Kind: "scripted"} }

// heard is a Listener that remembers.
type heard struct {
	mu      sync.Mutex
	bundles []*Bundle
	reports []*Report
}

func (h *heard) Bundle(b *Bundle) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bundles = append(h.bundles, b)
}

func (h *heard) Report(r *Report) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reports = append(h.reports, r)
}

func (h *heard) count() (bundles, reports int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.bundles), len(h.reports)
}

func (h *heard) last() *Report {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reports[len(h.reports)-1]
}

// keep starts a Keeper and returns how to stop it.
func keep(t *testing.T, log *slog.Logger) (k *Keeper, src *scripted, s *sched.Scheduler, h *heard, stop func()) {
	t.Helper()
	src, s, h = &scripted{make(chan *Bundle)}, sched.New(), &heard{}
	cfg := DefaultKeeperConfig()
	cfg.Observer = "s1"
	k, err := NewKeeper(cfg, src, s, log, h)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	return k, src, s, h, func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v", err)
		}
	}
}

// up is an observation of edge-n.
func up(n int, observer string, at time.Time) sched.Observation {
	return sched.Observation{Observer: observer, Node: fmt.Sprintf("edge-%d", n), Family: sched.V4, At: at, Up: true}
}

func placed(s *sched.Scheduler) sched.Answer {
	var a sched.Answer
	s.Decide(time.Now(), &sched.Query{Domain: "play.example.com", Client: netip.MustParsePrefix("192.0.2.7/32"), Want: 8}, &a)
	return a
}

func TestKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, src, s, h, stop := keep(t, silent)
		defer stop()
		if a := placed(s); a.Reason != sched.UnknownDomain {
			t.Errorf("before the first bundle: %v", a.Reason)
		}
		k.Observe([]sched.Observation{up(1, "s1", time.Now())}) // of a node that is not known yet
		time.Sleep(5 * time.Second)
		if b, r := h.count(); b+r != 0 {
			t.Errorf("%d bundles and %d reports of nothing", b, r)
		}
		b := bundle(t, "s1", 1, 4)
		src.bundles <- b
		time.Sleep(urgent)
		synctest.Wait()
		if v := s.View(); v.Plan != b.compiled.Plan || v.Geo != b.compiled.Table {
			t.Fatal("the bundle is not in use at once")
		}
		if a := placed(s); a.N == 0 || a.Reason != sched.Degraded {
			t.Errorf("with edges of unknown health: %d of them, %v", a.N, a.Reason)
		}
		for range 4 { // more than one observation makes an edge good
			k.Observe([]sched.Observation{up(0, "s1", time.Now()), up(2, "s2", time.Now()), up(99, "s1", time.Now())})
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if a := placed(s); a.Reason != sched.Placed || a.N != 2 {
			t.Errorf("got %d edges, %v; want the two that are up", a.N, a.Reason)
		}
		if r := h.last(); r.Observer != "s1" || len(r.Observations) != 1 || r.Observations[0].Node != "edge-0" {
			t.Errorf("told to others: %+v; want what was observed here", r)
		}
		st := k.Status()
		if st.Version != b.Version || st.Nodes != 4 || st.Domains != 1 || st.Source.Kind != "scripted" || st.Observations != 13 ||
			time.Since(st.Viewed) > time.Second || st.Geo.Coverage != 2 {
			t.Errorf("status %+v", st)
		}
		// A node that leaves the bundle is no longer told of.
		less := bundle(t, "s1", 2, 4)
		less.Snapshot.Nodes = less.Snapshot.Nodes[1:]
		src.bundles <- less
		time.Sleep(2 * time.Second)
		if r := h.last(); len(r.Observations) != 0 {
			t.Errorf("told to others: %+v", r.Observations)
		}
	})
}

// TestKeeperPace: a view a second, however many observations come; one at once when an
// edge falls, but not for each of many that fall.
func TestKeeperPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, src, s, h, stop := keep(t, silent)
		defer stop()
		src.bundles <- bundle(t, "s1", 1, 200)
		time.Sleep(3 * time.Second)
		views := func(over time.Duration, each func(i int)) int {
			t.Helper()
			_, before := h.count()
			for i := range int(over / (10 * time.Millisecond)) {
				each(i)
				time.Sleep(10 * time.Millisecond)
			}
			_, after := h.count()
			return after - before
		}
		all := func(up bool) func(i int) {
			return func(i int) {
				k.Observe([]sched.Observation{{Observer: "s1", Node: fmt.Sprintf("edge-%d", i%200), Family: sched.V4, At: time.Now(), Up: up}})
			}
		}
		views(4*time.Second, all(true))
		if n := views(10*time.Second, all(true)); n < 9 || n > 11 {
			t.Errorf("%d views in 10 s of steady observations, want one a second", n)
		}
		if n := views(2*time.Second, all(false)); n < 10 || n > 22 {
			t.Errorf("%d views in 2 s in which 200 edges fall, want at most one each %v", n, urgent)
		}
		// Two that disagree, again and again, are no news.
		disagree := func(i int) {
			o := up(5, []string{"s2", "s3"}[i%2], time.Now())
			o.Up = i%2 == 0
			k.Observe([]sched.Observation{o})
		}
		views(time.Second, disagree)
		if n := views(10*time.Second, disagree); n < 9 || n > 11 {
			t.Errorf("%d views in 10 s of two that disagree, want one a second", n)
		}
		time.Sleep(3 * time.Second)
		before := s.View()
		o := up(7, "s1", time.Now())
		o.Draining = true
		k.Observe([]sched.Observation{o})
		time.Sleep(urgent)
		synctest.Wait()
		if s.View() == before {
			t.Error("an edge that drains does not show at once")
		}
		// And without any observation, because they grow old.
		if n := views(10*time.Second, func(int) {}); n < 9 || n > 11 {
			t.Errorf("%d views in 10 s of silence, want one a second", n)
		}
	})
}

// TestKeeperFollowsFall: an edge is down when it was seen down twice, and the view says
// so at the second time, not at the next second.
func TestKeeperFollowsFall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, src, s, _, stop := keep(t, silent)
		defer stop()
		src.bundles <- bundle(t, "s1", 1, 4)
		for range 4 {
			k.Observe([]sched.Observation{up(0, "s1", time.Now()), up(1, "s1", time.Now())})
			time.Sleep(time.Second)
		}
		down := up(0, "s1", time.Now())
		down.Up = false
		for i := range sched.DefaultHealth().Fall {
			if a := placed(s); a.N != 2 {
				t.Fatalf("seen down %d times: %d edges are offered", i, a.N)
			}
			time.Sleep(urgent)
			down.At = time.Now()
			k.Observe([]sched.Observation{down})
		}
		time.Sleep(urgent)
		synctest.Wait()
		if a := placed(s); a.N != 1 || a.Candidates[0].Node.ID != "edge-1" {
			t.Errorf("%d edges are offered %v after one fell, want the other", a.N, urgent)
		}
	})
}

// TestKeeperDistrustsTime: an observation from the future does not count for longer.
func TestKeeperDistrustsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, src, s, _, stop := keep(t, silent)
		defer stop()
		src.bundles <- bundle(t, "s1", 1, 2)
		time.Sleep(time.Second)
		for range 4 {
			k.Observe([]sched.Observation{up(0, "s9", time.Now().Add(time.Hour))})
			time.Sleep(time.Second)
		}
		if a := placed(s); a.Reason != sched.Placed {
			t.Fatalf("got %v", a.Reason)
		}
		time.Sleep(time.Minute)
		if a := placed(s); a.Reason != sched.Degraded {
			t.Errorf("a minute later it still counts: %v", a.Reason)
		}
	})
}

// TestKeeperIsBounded: more observations than can be taken are left out and counted.
func TestKeeperIsBounded(t *testing.T) {
	k, err := NewKeeper(DefaultKeeperConfig(), &scripted{}, sched.New(), silent)
	if err != nil {
		t.Fatal(err)
	}
	batch := make([]sched.Observation, maxInbox/4+1)
	for range 5 {
		k.Observe(batch)
	}
	if len(k.inbox) != maxInbox || k.Status().Dropped != uint64(5*len(batch)-maxInbox) {
		t.Errorf("%d wait, %d were dropped", len(k.inbox), k.Status().Dropped)
	}
}

func TestKeeperFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		_, src, s, h, stop := keep(t, slog.New(slog.NewTextHandler(&log, nil)))
		good := bundle(t, "s1", 1, 2)
		src.bundles <- good
		broken, err := NewBundle("s1", 2, time.Now(), Contents{Snapshot: snapshot(3), Coverage: NewBlob([]byte("hello"))})
		if err != nil {
			t.Fatal(err)
		}
		src.bundles <- broken
		time.Sleep(2 * time.Second)
		stop()
		if n, _ := h.count(); n != 1 || s.View().Plan != good.compiled.Plan || !strings.Contains(log.String(), "new snapshot refused, the old one stays in use") {
			t.Errorf("a broken bundle is in use; log %s", log.String())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		src := &scripted{make(chan *Bundle, 1)}
		k, err := NewKeeper(DefaultKeeperConfig(), src, sched.New(), silent)
		if err != nil {
			t.Fatal(err)
		}
		src.bundles <- nil
		if err := k.Run(t.Context()); err == nil || err.Error() != "nothing to begin with" {
			t.Errorf("Run returned %v", err)
		}
	})
	if _, err := NewKeeper(KeeperConfig{}, &scripted{}, sched.New(), silent); err == nil || !strings.Contains(err.Error(), "interval is 0s: use 100ms to 1m") {
		t.Errorf("got %v", err)
	}
}
