package fleet

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"millrace/internal/control"
)

const (
	// playersSpan is how long players count: the last one to two of these.
	playersSpan = 5 * time.Minute
	// maxPlayers bounds the groups of players: 300 bytes each.
	maxPlayers = 100_000
)

// players sums up how players fare.
type players struct {
	mu     sync.Mutex
	groups map[group]*fared
	turned time.Time // when the last span began
	untold []groupTold
}

// group is the players of a region and ISP at a node.
type group struct{ node, region, isp string }

// fared is how a group fared in this span and the one before.
type fared struct {
	now, before control.Players
	at          time.Time
}

// groupTold is what a node said, as routers tell one another.
type groupTold struct {
	Node string `json:"node"`
	control.Players
}

func newPlayers(now time.Time) *players { return &players{groups: map[group]*fared{}, turned: now} }

// add takes what a node says of its players.
func (p *players) add(now time.Time, node string, list []control.Players, tell bool) {
	if len(list) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range list {
		p.put(now, node, &list[i])
		if tell && len(p.untold) < maxShared {
			p.untold = append(p.untold, groupTold{node, list[i]})
		}
	}
}

// fromRouter takes what another router was told.
func (p *players) fromRouter(now time.Time, list []groupTold) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range list {
		p.put(now, list[i].Node, &list[i].Players)
	}
}

func (p *players) put(now time.Time, node string, of *control.Players) {
	p.turn(now)
	key := group{node, of.Region, of.ISP}
	g := p.groups[key]
	if g == nil {
		if len(p.groups) >= maxPlayers {
			return
		}
		g = &fared{}
		p.groups[key] = g
	}
	g.at = now
	g.now.Add(of)
}

// turn begins a new span when it is time.
func (p *players) turn(now time.Time) {
	passed := now.Sub(p.turned)
	if passed < playersSpan {
		return
	}
	p.turned = now
	for key, g := range p.groups {
		g.before, g.now = g.now, control.Players{}
		if now.Sub(g.at) >= 2*playersSpan {
			delete(p.groups, key)
		} else if passed >= 2*playersSpan {
			g.before = control.Players{}
		}
	}
}

// takeUntold returns what the other routers have not been told of, and takes it for told.
func (p *players) takeUntold() []groupTold {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.untold
	p.untold = nil
	return out
}

// rows returns how the groups fare that takes chooses, by region, ISP and node.
func (p *players) rows(now time.Time, takes func(*group) bool) []QualityRow {
	p.mu.Lock()
	p.turn(now)
	out := []QualityRow{}
	for key, g := range p.groups {
		if !takes(&key) {
			continue
		}
		all := control.Players{}
		all.Add(&g.before)
		all.Add(&g.now)
		out = append(out, qualityRow(&key, &all, g.at))
	}
	p.mu.Unlock()
	slices.SortFunc(out, func(a, b QualityRow) int {
		return cmp.Or(cmp.Compare(a.Region, b.Region), cmp.Compare(a.ISP, b.ISP), cmp.Compare(a.Node, b.Node))
	})
	return out
}

// qualityRow turns sums into what they mean.
func qualityRow(key *group, s *control.Players, at time.Time) QualityRow {
	r := QualityRow{
		Region: key.region, ISP: key.isp, Node: key.node, At: at.UTC(), Started: s.Started, Reports: s.Reports, Played: s.Played,
		Skips: s.Skips, Closes: s.Closes,
	}
	if r.Closes == nil {
		r.Closes = map[string]int{}
	}
	if s.Started > 0 {
		r.FirstByte = s.FirstByte / float64(s.Started)
	}
	if s.FirstFrames > 0 {
		r.FirstFrame = s.FirstFrame / float64(s.FirstFrames)
	}
	if s.Delays > 0 {
		r.Delay = s.Delay / float64(s.Delays)
	}
	if s.Played > 0 {
		r.Stalls = float64(s.Stalls) * 3600 / s.Played
		r.Stalled = min(s.Stalled/1000/(s.Played+s.Stalled/1000), 1)
	}
	return r
}
