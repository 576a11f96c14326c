package main

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"millrace/internal/stream"
)

const (
	watching = 3 * time.Minute // a play lasts so long on average
	pausing  = 2 * time.Minute // between two of them
	// usual is the share of players that watch at any time.
	usual = float64(watching) / float64(watching+pausing)
)

// player is one of the people.
type player struct {
	number   int // in people.players
	pair     pair
	addr     netip.Addr
	resolver *resolver
	kind     kind

	stream stream.Name
	edge   *edge // that serves it, nil while it does not watch
	seat   int   // in edge.viewers
	until  time.Duration
	waits  bool // no edge has served it yet
	since  time.Duration
	visit  int // counts its events, so that one that is out of date is known
}

// people are all players and resolvers.
type people struct {
	players   []player
	resolvers []*resolver
}

func newPeople(o options, w *world, r *rand.Rand) *people {
	p := &people{}
	add := func(at pair, ecs bool) *resolver {
		v := &resolver{addr: w.address(r, at, false), ecs: ecs, cache: map[netip.Prefix]kept{}}
		p.resolvers = append(p.resolvers, v)
		return v
	}
	own := make([]*resolver, len(regions)*len(isps))
	for i := range own {
		own[i] = add(pair{i / len(isps), i % len(isps)}, false)
	}
	// One of each kind in each region. Far ones are at the largest ISP.
	var distant [2][]*resolver
	for region := range regions {
		distant[0] = append(distant[0], add(pair{region, 0}, false))
		distant[1] = append(distant[1], add(pair{region, 0}, true))
	}
	p.players = make([]player, o.clients)
	for i := range p.players {
		at := drawPair(r)
		c := &p.players[i]
		*c = player{number: i, pair: at, addr: w.address(r, at, r.Float64() < o.v6), resolver: own[at.index()]}
		if r.Float64() < o.far {
			c.kind = far
			with := 0
			if r.Float64() < o.ecs {
				c.kind, with = farECS, 1
			}
			c.resolver = distant[with][(at.region+1+r.IntN(len(regions)-1))%len(regions)]
		}
	}
	return p
}
