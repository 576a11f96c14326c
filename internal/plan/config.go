package plan

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Config is how plans are made.
type Config struct {
	Costs Costs
	// A choice of the old plan is left only for one that costs less by GainMS and by
	// GainShare of its cost. More means fewer moves, and a longer way while they wait.
	GainMS    float64
	GainShare float64
	// MaxUse is the share of its capacity up to which a node is given work, 0…1. The rest
	// is for viewers that come between two plans, and for those of a neighbour that dies.
	MaxUse float64
	Pool   int   // upstreams in a pool
	Demand int64 // bytes/s of a node of whose demand nothing is known
	// Candidates is how many of the nearest upstreams a node chooses among, before those
	// that it has measured; more are looked at only when these are full.
	Candidates int
	Flat       bool // edges pull from centers only
	// Near is how many ms two regions may be apart for a stream to be pulled straight
	// from its source within an ISP.
	Near float64
	// Bound is how many ms more a path may cost for the sake of the rules: to use a node
	// that carries the stream, to go straight where that is near, to have a node between where it is far.
	Bound float64
	// Hot is how many nodes carry a stream from which on those near its source pull over
	// a node between as well, so that the source does not serve them all.
	Hot  int
	Half Halves
}

// DefaultConfig returns the settings that README.md explains.
func DefaultConfig() Config {
	return Config{
		Costs: DefaultCosts(), GainMS: 10, GainShare: 0.15, MaxUse: 0.9, Pool: 3, Demand: 1 << 20,
		Candidates: 20, Near: 5, Bound: 10, Hot: 32, Half: DefaultHalves(),
	}
}

// maxPool bounds pools: a node tries two upstreams at a time, and seconds each.
const maxPool = 8

// Validate returns what is wrong with c.
func (c *Config) Validate() error {
	var errs []error
	figure := func(name string, v, lo, hi float64) {
		if math.IsNaN(v) || v < lo || v > hi {
			errs = append(errs, fmt.Errorf("%s: %v must be between %v and %v", name, v, lo, hi))
		}
	}
	figure("gain_ms", c.GainMS, 0, 10_000)
	figure("gain_share", c.GainShare, 0, 1)
	figure("max_use", c.MaxUse, 0.01, 1)
	figure("pool", float64(c.Pool), 1, maxPool)
	figure("demand", float64(c.Demand), 0, maxBytes)
	figure("candidates", float64(c.Candidates), 1, 1000)
	figure("near", c.Near, 0, 1000)
	figure("bound", c.Bound, 0, 10_000)
	figure("hot", float64(c.Hot), 1, 1e6)
	c.Costs.each(func(name string, v *float64) { figure("costs: "+name, *v, 0, 1e6) })
	c.Half.each(func(name string, v *time.Duration) {
		figure("half: "+name+" (s)", v.Seconds(), 0.1, 86_400)
	})
	return errors.Join(errs...)
}
