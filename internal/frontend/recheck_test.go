package frontend

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"millrace/internal/auth"
	"millrace/internal/sched"
)

var t0 = time.Unix(1_800_000_000, 0)

func newRecheck(t testing.TB, self string, d Decider, c *auth.Cluster, change func(*RecheckConfig)) *Recheck {
	t.Helper()
	cfg := DefaultRecheckConfig()
	cfg.Self = self
	if change != nil {
		change(&cfg)
	}
	r, err := NewRecheck(cfg, d, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// only is the one outcome that was counted since the last call.
type tally map[RecheckCount]uint64

func (seen tally) only(t testing.TB, r *Recheck) (out RecheckCount) {
	t.Helper()
	n := 0
	for _, c := range r.Stats() {
		count := c.Count
		c.Count = 0
		if count != seen[c] {
			seen[c], out = count, c
			n++
		}
	}
	if n != 1 {
		t.Fatalf("%d outcomes were counted, want one", n)
	}
	return out
}

func TestRecheck(t *testing.T) {
	keys := newKeys(t, clusterKey)
	d := newDecider(t, plan(), t0, nil)
	const uri = "/live/room.flv?a=1"
	f := func(self, from, host string, want RecheckOutcome, place, location string) {
		t.Helper()
		r := newRecheck(t, self, d, keys, nil)
		got, ok := r.Elsewhere(t0, netip.MustParseAddr(from), host, false, "live/room", uri)
		if c := (tally{}).only(t, r); c.Outcome != want || c.Region+" "+c.ISP != place {
			t.Errorf("%s at %s for %s: %v in %s %s, want %v in %s", from, self, host, c.Outcome, c.Region, c.ISP, want, place)
		}
		if ok != (location != "") || ok && locationOf(t, keys, []byte(got)) != location {
			t.Errorf("%s at %s for %s: %q %v, want %q", from, self, host, got, ok, location)
		}
	}
	f("north-1", north4, play, Here, "north telecom", "")
	f("north-1", "::ffff:"+north4, play+":8080", Here, "north telecom", "")
	f("south-1", north4, play, SentOn, "north telecom", "http://192.0.2.11:8080"+uri)
	f("south-1", north4, "PLAY.cdn.example.com.", SentOn, "north telecom", "http://192.0.2.11:8080"+uri)
	f("north-1", west6, play, SentOn, "west telecom", "http://[2001:db8:3::31]:8080"+uri)
	f("north-1", nowhere, play, UnknownPlace, " ", "")
	f("south-1", nowhere, play, UnknownPlace, " ", "")
	f("south-1", "10.0.0.1", play, UnknownPlace, " ", "")
	f("south-1", north4, "x.example", OtherDomain, " ", "")
	f("south-1", north4, "192.0.2.1", OtherDomain, " ", "")
	f("south-1", north4, "x.app.cdn.example.com", Off, "north telecom", "")
	f("south-9", north4, play, NotInPlan, "north telecom", "")
}

func TestRecheckBounds(t *testing.T) {
	keys := newKeys(t, clusterKey)
	f := func(name string, d Decider, c *auth.Cluster, at time.Duration, want RecheckOutcome) {
		t.Helper()
		r := newRecheck(t, "south-1", d, c, nil)
		_, ok := r.Elsewhere(t0.Add(at), netip.MustParseAddr(north4), play, false, "live/room", "/live/room.flv")
		if c := (tally{}).only(t, r); c.Outcome != want || ok != (want == SentOn) {
			t.Errorf("%s: %v %v, want %v", name, c.Outcome, ok, want)
		}
	}
	d := newDecider(t, plan(), t0, nil)
	f("as it should be", d, keys, 0, SentOn)
	f("a little later", d, keys, 9*time.Second, SentOn)
	f("much later", d, keys, 31*time.Second, StaleView)
	// Nobody has told it of the others for a while, though it knows how it is itself.
	deaf := newDecider(t, plan(), t0, func(st *sched.State) {
		st.At = t0.Add(20 * time.Second)
		for i := range st.Nodes {
			if st.Nodes[i].ID == "south-1" {
				st.Nodes[i].V4.At, st.Nodes[i].V4.Up = st.At, st.At
			}
		}
	})
	f("no reports", deaf, keys, 20*time.Second, StaleView)
	f("no key", d, newKeys(t), 0, NoKey)
	f("no snapshot", sched.New(), keys, 0, NoView)

	change := func(f func(*sched.Snapshot)) Decider {
		s := plan()
		f(s)
		return newDecider(t, s, t0, nil)
	}
	f("a high threshold", change(func(s *sched.Snapshot) { s.Domains[0].Recheck = 100 }), keys, 0, Near)
	f("none", change(func(s *sched.Snapshot) { s.Domains[0].Recheck = 0 }), keys, 0, Off)
	f("the others drain", change(func(s *sched.Snapshot) { s.Nodes[0].Drain, s.Nodes[2].Drain = true, true }), keys, 0, Here)
	f("this one drains", change(func(s *sched.Snapshot) { s.Nodes[1].Drain = true }), keys, 0, SentOn)
	f("this one drains, and the threshold is high", change(func(s *sched.Snapshot) {
		s.Nodes[1].Drain, s.Domains[0].Recheck = true, 100
	}), keys, 0, SentOn)
	f("pinned elsewhere", change(func(s *sched.Snapshot) {
		s.Overrides = []sched.Override{{ID: "o", Pin: []string{"north-1"}}}
		s.Domains[0].Recheck = 100
	}), keys, 0, SentOn)
	f("pinned here", change(func(s *sched.Snapshot) {
		s.Overrides = []sched.Override{{ID: "o", Pin: []string{"south-1"}}}
	}), keys, 0, Here)
	f("nobody knows whether the others are up", newDecider(t, plan(), t0, func(st *sched.State) { st.Nodes = nil }), keys, 0, NowhereElse)
}

// A host that is no domain is decided by the default domain, and counted apart.
func TestRecheckWays(t *testing.T) {
	keys := newKeys(t, clusterKey)
	r := newRecheck(t, "north-1", newDecider(t, plan(), t0, nil), keys, func(c *RecheckConfig) { c.DefaultDomain = play })
	seen := tally{}
	f := func(host string, want RecheckWay) {
		t.Helper()
		r.Elsewhere(t0, netip.MustParseAddr(north4), host, false, "live/room", "/live/room.flv")
		if c := seen.only(t, r); c.Way != want || c.Outcome != Here {
			t.Errorf("%s: %v %v, want %v", host, c.Way, c.Outcome, want)
		}
	}
	f(play, ByName)
	f("other.example:80", ByName)
	f("192.0.2.11:8080", ByAddress)
	f("[2001:db8:1::11]:8080", ByAddress)

	check := func(ticket string, want RecheckOutcome) {
		t.Helper()
		if ok := r.CheckTicket(t0, "live/room", ticket); ok != (want == Ticketed) {
			t.Errorf("ticket %q: %v", ticket, ok)
		}
		if c := seen.only(t, r); c.Outcome != want || c.Way != ByTicket {
			t.Errorf("ticket %q: %+v, want %v", ticket, c, want)
		}
	}
	check(keys.SignTicket(t0, "live/room", time.Minute), Ticketed)
	check(keys.SignTicket(t0, "live/other", time.Minute), BadTicket)
	check(keys.SignTicket(t0, "live/room", -time.Hour), BadTicket)
	check("", BadTicket)
}

// HTTPS viewers are sent to edges with HTTPS, or stay.
func TestRecheckHTTPS(t *testing.T) {
	keys := newKeys(t, clusterKey)
	s := plan()
	s.Nodes[1].HTTPSPort = 443
	r := newRecheck(t, "south-1", newDecider(t, s, t0, nil), keys, nil)
	got, ok := r.Elsewhere(t0, netip.MustParseAddr(north4), play, true, "live/room", "/live/room.flv")
	if !ok || !strings.HasPrefix(got, "https://north-1.cdn.example.com:8443/live/room.flv?mr=") {
		t.Errorf("%q %v", got, ok)
	}
	s.Nodes[0].HTTPSPort = 0
	r = newRecheck(t, "south-1", newDecider(t, s, t0, nil), keys, nil)
	if got, ok := r.Elsewhere(t0, netip.MustParseAddr(north4), play, true, "live/room", "/live/room.flv"); ok {
		t.Errorf("sent to %q", got)
	}
}

func TestRecheckConfig(t *testing.T) {
	f := func(change func(*RecheckConfig), want string) {
		t.Helper()
		cfg := DefaultRecheckConfig()
		cfg.Self = "e"
		change(&cfg)
		if _, err := NewRecheck(cfg, sched.New(), newKeys(t)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	f(func(*RecheckConfig) {}, "")
	f(func(c *RecheckConfig) { c.Self = "" }, "self: ")
	f(func(c *RecheckConfig) { c.DefaultDomain = "a/b" }, "default_domain: ")
	f(func(c *RecheckConfig) { c.TicketLife = time.Hour }, "ticket_life: is 1h0m0s, must be 1s to 10m0s")
	f(func(c *RecheckConfig) { c.MaxAge = 0 }, "max_age: is 0s, must be 1s to 1h")
}

// The table is bounded: what comes when it is full is counted together.
func TestRecheckTable(t *testing.T) {
	var r Recheck
	for i := range maxRecheckRows + 100 {
		r.counts.add(recheckKey{region: fmt.Sprintf("r%d", i)}, Here)
		r.counts.add(recheckKey{region: fmt.Sprintf("r%d", i)}, Here)
	}
	r.counts.add(recheckKey{region: "x", way: ByAddress}, Near)
	var total, other uint64
	for _, c := range r.Stats() {
		total += c.Count
		if c.Region == "other" {
			other += c.Count
		}
	}
	if total != 2*(maxRecheckRows+100)+1 || other != 201 {
		t.Errorf("%d counted, %d of them as others", total, other)
	}
	if len(*r.counts.rows.Load()) > maxRecheckRows+int(recheckWays) {
		t.Errorf("%d rows", len(*r.counts.rows.Load()))
	}
}

func TestRecheckWords(t *testing.T) {
	seen := map[string]bool{}
	for o := range recheckOutcomes + 1 {
		w, err := o.MarshalText()
		if len(w) == 0 || seen[string(w)] || err != nil {
			t.Errorf("outcome %d is %q %v", o, w, err)
		}
		seen[string(w)] = true
	}
	for w := range recheckWays + 1 {
		b, err := w.MarshalText()
		if len(b) == 0 || seen[string(b)] || err != nil {
			t.Errorf("way %d is %q %v", w, b, err)
		}
		seen[string(b)] = true
	}
}

// However edges, schedulers and their views disagree, a player follows one redirect at
// most: the ticket of the first one stops it.
func TestOneRedirectAtMost(t *testing.T) {
	outer, keys := t, newKeys(t, clusterKey)
	rapid.Check(t, func(t *rapid.T) {
		// Each edge has a view of its own: each thinks that another one is best.
		rechecks := map[string]*Recheck{}
		for i, n := range plan().Nodes {
			s := plan()
			for j := range s.Nodes {
				s.Nodes[j].HTTPSPort = 443
				s.Nodes[j].Addresses = addresses(fmt.Sprintf("192.0.2.%d", j+1), fmt.Sprintf("2001:db8::%d", j+1))
				s.Nodes[j].Drain = rapid.Bool().Draw(t, fmt.Sprintf("drain %d %d", i, j))
			}
			cfg := DefaultRecheckConfig()
			cfg.Self = n.ID
			d := newDecider(outer, s, t0, nil)
			r, err := NewRecheck(cfg, d, keys)
			if err != nil {
				t.Fatal(err)
			}
			rechecks[n.ID] = r
		}
		client := netip.MustParseAddr(rapid.SampledFrom([]string{north4, south4, north6, west6, nowhere}).Draw(t, "client"))
		at := rapid.SampledFrom([]string{"north-1", "south-1", "west-1"}).Draw(t, "edge")
		location, sent := rechecks[at].Elsewhere(t0, client, play, rapid.Bool().Draw(t, "https"), "live/room", "/live/room.flv")
		if !sent {
			return
		}
		_, ticket, ok := strings.Cut(location, "mr=")
		for id, r := range rechecks {
			if !ok || !r.CheckTicket(t0.Add(time.Second), "live/room", ticket) {
				t.Fatalf("%s does not take the ticket of %s", id, location)
			}
		}
	})
}
