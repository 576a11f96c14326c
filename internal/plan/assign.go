package plan

import (
	"cmp"
	"math"
	"slices"
)

// assignment places the first choices of one tier of nodes.
type assignment struct {
	*planner
	of      *tierOf
	who     []int32       // the nodes, by id
	choices [][]candidate // by place in who
	at      []candidate   // first choices; up is none where there is none
	state   []placing
	members [][]int32 // places in who, by upstream
	tries   int       // of exchanges that are left
}

type placing uint8

const (
	movable placing = iota
	kept            // where the old plan had it
	pinned
	over // where it has no room
)

const (
	// batches is in how many steps nodes are placed; after each the regrets of the rest
	// are computed anew.
	batches = 8
	// rounds bounds the passes of improvement. Each move gains, so that they end; most of
	// the gain is in the first two.
	rounds = 4
	// triesPerNode bounds the search for exchanges.
	triesPerNode = 200
	// slight is a gain in ms that is not worth a line in a list of moves.
	slight = 0.5
)

func (p *planner) assign(o *tierOf, who []int32) *assignment {
	a := &assignment{
		planner: p, of: o, who: who, choices: make([][]candidate, len(who)), at: make([]candidate, len(who)),
		state: make([]placing, len(who)), members: make([][]int32, len(p.nodes)), tries: triesPerNode * len(who),
	}
	for k, i := range who {
		a.choices[k] = o.candidates(i)
		a.at[k].up = none
		if up, ok := a.pin(i); ok {
			a.put(k, o.candidate(i, up), pinned)
		}
	}
	for k, i := range who {
		if a.at[k].up == none && len(p.old[i]) > 0 && o.open(i, p.old[i][0]) {
			a.put(k, o.candidate(i, p.old[i][0]), kept)
		}
	}
	a.relieve()
	a.place()
	for range rounds {
		if !a.improve() {
			break
		}
	}
	a.rescue()
	return a
}

// pin returns the first upstream that operators want for node i and that could serve.
func (p *planner) pin(i int32) (up int32, ok bool) {
	for _, up := range p.rules.pins[i] {
		if p.mayPin(i, up) {
			return up, true
		}
	}
	return none, false
}

func (p *planner) mayPin(i, up int32) bool {
	m := &p.nodes[up]
	return m.Alive && m.capacity > 0 && m.tier < p.nodes[i].tier
}

func (a *assignment) demand(k int) float64 { return a.nodes[a.who[k]].demand }

func (a *assignment) put(k int, c candidate, s placing) {
	a.at[k], a.state[k] = c, s
	a.used[c.up] += a.demand(k)
	a.members[c.up] = append(a.members[c.up], int32(k))
}

func (a *assignment) lift(k int) candidate {
	c := a.at[k]
	a.used[c.up] -= a.demand(k)
	list := a.members[c.up]
	at := slices.Index(list, int32(k))
	a.members[c.up] = slices.Delete(list, at, at+1)
	a.at[k].up = none
	return c
}

func (a *assignment) move(k int, c candidate) {
	a.lift(k)
	a.put(k, c, movable)
}

// relieve takes nodes from upstreams that have no room for all that they had: those
// that lose least first.
func (a *assignment) relieve() {
	for _, up := range a.of.ups {
		if a.room(up) >= 0 {
			continue
		}
		type loss struct {
			k    int32
			cost float64
		}
		var losses []loss
		for _, k := range a.members[up] {
			if a.state[k] == kept {
				_, other := a.best(a.choices[k], a.demand(int(k)), up)
				losses = append(losses, loss{k, other - a.cost(&a.at[k], 0)})
			}
		}
		slices.SortFunc(losses, func(x, y loss) int { return cmp.Or(cmp.Compare(x.cost, y.cost), cmp.Compare(x.k, y.k)) })
		for _, l := range losses {
			if a.room(up) >= 0 {
				break
			}
			a.lift(int(l.k))
		}
	}
}

// place places those that have no place, first who would regret most to come late.
func (a *assignment) place() {
	type regret struct {
		k      int
		regret float64
	}
	var left []regret
	for k := range a.who {
		if a.at[k].up == none {
			left = append(left, regret{k: k})
		}
	}
	for batch := batches; batch > 0 && len(left) > 0; batch-- {
		for i := range left {
			r := &left[i]
			r.regret = a.regret(r.k)
		}
		slices.SortFunc(left, func(x, y regret) int {
			return cmp.Or(cmp.Compare(y.regret, x.regret), cmp.Compare(a.demand(y.k), a.demand(x.k)), cmp.Compare(x.k, y.k))
		})
		n := (len(left) + batch - 1) / batch
		for _, r := range left[:n] {
			a.settle(r.k)
		}
		left = left[n:]
	}
}

// regret is how much more the second best costs than the best.
func (a *assignment) regret(k int) float64 {
	at, first := a.best(a.choices[k], a.demand(k), none)
	if at < 0 {
		return -1 // it is lost already, and must not take from others what they could have
	}
	_, second := a.best(a.choices[k], a.demand(k), a.choices[k][at].up)
	return second - first
}

// settle gives k the best place with room, else one for which another node makes room,
// else the least bad.
func (a *assignment) settle(k int) {
	if c, ok := a.roomy(k); ok {
		a.put(k, c, movable)
		return
	}
	if c, ok := a.eject(k, math.Inf(1)); ok {
		a.put(k, c, movable)
		return
	}
	if c, ok := a.least(k); ok {
		a.put(k, c, over)
	}
}

// roomy returns the best choice of k with room: of its candidates, else of all.
func (a *assignment) roomy(k int) (candidate, bool) {
	if at, _ := a.best(a.choices[k], a.demand(k), none); at >= 0 {
		return a.choices[k][at], true
	}
	i := a.who[k]
	found := 0
	var out candidate
	cost := math.Inf(1)
	for _, c := range a.of.list(i) {
		if a.room(c.up) < a.demand(k) || !a.of.open(i, c.up) {
			continue
		}
		c = a.of.candidate(i, c.up)
		if v := a.cost(&c, a.demand(k)); v < cost {
			out, cost = c, v
		}
		if found++; found == a.cfg.Candidates {
			break
		}
	}
	return out, found > 0
}

// least returns the choice of k that is the least bad when none has room.
func (a *assignment) least(k int) (out candidate, ok bool) {
	cost := math.Inf(1)
	for _, c := range a.choices[k] {
		if v := a.cost(&c, a.demand(k)); v < cost {
			out, cost, ok = c, v, true
		}
	}
	return out, ok
}
