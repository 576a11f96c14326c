package main

import (
	"container/heap"
	"maps"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"time"

	"millrace/internal/auth"
	"millrace/internal/frontend"
	"millrace/internal/sched"
	"millrace/internal/stream"
)

const (
	probing = 2 * time.Second // each edge is probed so often
	warm    = 10              // seconds of probes before the first player comes
)

// epoch is when simulations begin.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// sim is a simulation under way.
type sim struct {
	options
	*world
	*people
	twice   bool // edges look again
	chance  *rand.Rand
	names   []stream.Name
	rank    []float64 // of streams: sums of their weights
	edges   []*edge
	board   *sched.Board
	dns     *sched.Scheduler // the scheduler that resolvers ask
	copies  *sched.Scheduler // what all edges have of it
	late    []*sched.View    // on the way to the edges
	truth   *sched.View      // with what is true of the edges in this second
	agenda  agenda
	trouble []trouble
	rush    int // the region where everybody wants to watch, -1 for none
	tally   tally
}

// simulate runs the players of o from beginning to end.
func simulate(o options, twice bool) (*tally, error) {
	s, err := newSim(o, twice)
	if err != nil {
		return nil, err
	}
	for second := -warm; second < int(o.duration/time.Second); second++ {
		at := time.Duration(second) * time.Second
		s.makeTrouble(at)
		s.look(at)
		for len(s.agenda) > 0 && s.agenda[0].at < at+time.Second {
			e := heap.Pop(&s.agenda).(event)
			if p := &s.players[e.player]; e.visit == p.visit {
				s.act(e.at, p)
			}
		}
		if second >= 0 {
			s.tally.sample(at)
		}
	}
	for _, v := range s.resolvers {
		s.tally.queries += v.asked
	}
	return &s.tally, nil
}

func newSim(o options, twice bool) (*sim, error) {
	w, err := newWorld(o, rand.New(rand.NewPCG(o.seed, 1)))
	if err != nil {
		return nil, err
	}
	s := &sim{
		options: o, world: w, people: newPeople(o, w, rand.New(rand.NewPCG(o.seed, 2))), twice: twice,
		chance: rand.New(rand.NewPCG(o.seed, 3)), board: sched.NewBoard(w.plan.Health), dns: sched.New(), copies: sched.New(), rush: -1,
	}
	s.board.Track(w.plan)
	cluster, err := auth.NewCluster(auth.ClusterConfig{Keys: []string{"the key of a simulation, no secret"}})
	if err != nil {
		return nil, err
	}
	for i := range w.plan.Nodes {
		c := frontend.DefaultRecheckConfig()
		c.Self = w.plan.Nodes[i].ID
		recheck, err := frontend.NewRecheck(c, s.copies, cluster)
		if err != nil {
			return nil, err
		}
		s.edges = append(s.edges, &edge{node: &w.plan.Nodes[i], recheck: recheck, up: true, carried: map[stream.Name]int{}})
	}
	sum := 0.0
	for i := range o.streams {
		sum += 1 / float64(i+1)
		s.names, s.rank = append(s.names, stream.Name("live/room"+strconv.Itoa(i))), append(s.rank, sum)
	}
	if !o.calm {
		s.trouble = s.plans()
	}
	s.tally.begin(o.duration, s.trouble, s.edges)
	for i := range s.players { // they come bit by bit, then as they go
		s.later(time.Duration(s.chance.Int64N(int64(s.duration)/8)), &s.players[i])
	}
	return s, nil
}

// look makes the views of the second that begins at at.
func (s *sim) look(at time.Duration) {
	now := epoch.Add(at)
	real := &sched.State{At: now}
	for i, e := range s.edges {
		streams := slices.Sorted(maps.Keys(e.carried)) // the order of a map is chance of another kind
		if (int(at/time.Second)+i)%int(probing/time.Second) == 0 {
			s.board.Observe(e.observe(now, sched.V4, streams))
			s.board.Observe(e.observe(now, sched.V6, streams))
		}
		real.Nodes = append(real.Nodes, e.state(now, streams))
	}
	s.truth = sched.NewView(s.plan, s.table, real)
	seen := sched.NewView(s.plan, s.table, s.board.State(now))
	s.dns.Swap(seen)
	if s.late = append(s.late, seen); len(s.late) > int(s.lag/time.Second) {
		s.copies.Swap(s.late[0])
		s.late = s.late[1:]
	}
}

// act does what a player does at a time: it goes, or comes.
func (s *sim) act(at time.Duration, p *player) {
	if p.edge != nil {
		p.edge.remove(p)
		pause := float64(pausing)
		if p.pair.region == s.rush {
			pause /= 10
		}
		s.later(at+time.Duration(s.chance.ExpFloat64()*pause), p)
		return
	}
	if p.until <= at { // a new play, not one that was broken off
		p.until = at + time.Duration(s.chance.ExpFloat64()*float64(watching)) + time.Second
		n, _ := slices.BinarySearch(s.rank, s.chance.Float64()*s.rank[len(s.rank)-1])
		p.stream = s.names[min(n, len(s.names)-1)]
	}
	if s.try(at, p) {
		if p.waits {
			s.tally.waited(at - p.since)
			p.waits = false
		}
		s.later(max(p.until, at+time.Second), p)
		return
	}
	if !p.waits {
		p.waits, p.since = true, at
	}
	s.later(at+3*time.Second, p)
}

// later puts the next thing that a player does on the agenda, in place of what was.
func (s *sim) later(at time.Duration, p *player) {
	p.visit++
	heap.Push(&s.agenda, event{at: at, player: p.number, visit: p.visit})
}

// try lets a player ask for its stream, and reports whether an edge serves it.
func (s *sim) try(at time.Duration, p *player) bool {
	now := epoch.Add(at)
	addrs := slices.Clone(p.resolver.resolve(s.dns, now, p.addr))
	s.chance.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] }) // resolvers and players do
	t := trial{kind: p.kind, region: p.pair.region, at: at, again: p.waits}
	for i, a := range addrs {
		first := s.edges[s.byAddr[a]]
		if i == 0 {
			t.byDNS, _ = s.judge(s.dns.View(), now, p, first)
		}
		e, hops := s.follow(now, p, first)
		t.redirects += hops
		t.longest = max(t.longest, hops)
		switch {
		case !e.up:
			t.dead++
			continue
		case !e.has():
			t.refused++
			continue
		}
		t.served = true
		t.right, t.exact = s.judge(s.dns.View(), now, p, e)
		t.truly, _ = s.judge(s.truth, now, p, e)
		e.add(p)
		break
	}
	s.tally.add(t)
	return t.served
}

// follow goes where the edges send a player that comes to e, and returns where that
// ends and after how many redirects.
func (s *sim) follow(now time.Time, p *player, e *edge) (at *edge, hops int) {
	ticket := ""
	const more = 5 // than there may ever be
	for s.twice && e.up && hops < more {
		if ticket != "" && e.recheck.CheckTicket(now, p.stream, ticket) {
			break
		}
		location, ok := e.recheck.Elsewhere(now, p.addr, domain, false, p.stream, "/"+string(p.stream)+".flv")
		if !ok {
			break
		}
		u, err := url.Parse(location)
		if err != nil {
			panic(err) // the redirector's URLs are tested where it is
		}
		e, ticket = s.edges[s.byAddr[netip.MustParseAddr(u.Hostname())]], u.Query().Get(auth.TicketParam)
		hops++
	}
	return e, hops
}

// judge asks the policy where p should be, with its true address and by what v knows
// of the edges: is e right, and is it the very one?
func (s *sim) judge(v *sched.View, now time.Time, p *player, e *edge) (right, exact bool) {
	q := sched.Query{
		Client: netip.PrefixFrom(p.addr, p.addr.BitLen()), Domain: domain, Stream: p.stream,
		Families: sched.FamilyOf(p.addr), Want: 1, Self: e.node.ID,
	}
	var a sched.Answer
	v.Decide(now, &q, &a)
	if a.N == 0 || !e.up {
		return false, false
	}
	best := &a.Candidates[0]
	exact = best.Node.ID == e.node.ID
	return exact || a.SelfOK && float64(a.SelfCost)-float64(best.Cost) <= s.options.recheck, exact
}

// event is something that a player will do.
type event struct {
	at     time.Duration
	player int
	visit  int
}

// agenda is a heap of events, the next first.
type agenda []event

func (a agenda) Len() int      { return len(a) }
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].player < a[j].player
}
func (a *agenda) Push(e any) { *a = append(*a, e.(event)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}
