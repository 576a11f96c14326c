package upstream

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"millrace/internal/auth"
	"millrace/internal/stream"
)

// Orders are what a router has decided for this node. They go before the settings:
// what those name is what is left when nobody of the orders has a stream.
type Orders struct {
	// Pool are the upstreams, the best first.
	Pool []Upstream
	// Peers are the other nodes of the datacenter. They go before those of the settings
	// with the same id.
	Peers []Upstream
	// Centers are where publishes are pushed to.
	Centers []Upstream
	// Weight is what share of the streams of the datacenter this node owns, beside the
	// weights of Peers. All nodes of a datacenter must be told the same, or streams enter
	// it twice. 0: none, because this node drains.
	Weight float64
	// Capacity is what this node can send, in bytes/s; 0: not known.
	Capacity int64
}

// Upstream is a node as a router names it.
type Upstream struct {
	Node     string  // its id
	URL      string  // http(s):// or rtmp(s)://; rtmp(s):// for a center
	Weight   float64 // of a peer: its share of the streams; 0: none, because it drains
	Capacity int64   // of a peer: bytes/s that it can send; 0: not known
}

// Router is asked where this node should pull a stream from that it does not get inside
// its datacenter, the best first. It must return when ctx ends.
type Router func(ctx context.Context, n stream.Name) ([]Upstream, error)

const (
	// maxOrdered bounds each list of the orders.
	maxOrdered = 4096
	// maxWeight bounds the weight of a node.
	maxWeight = 1e6
)

// Validate checks every value. Its errors name the list and the node.
func (r Orders) Validate() error {
	var errs []error
	check := func(list string, all []Upstream, schemes ...string) {
		if len(all) > maxOrdered {
			errs = append(errs, fmt.Errorf("%s: has %d nodes, at most %d are possible", list, len(all), maxOrdered))
			return
		}
		for _, u := range all {
			if err := u.check(schemes...); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", list, err))
			}
		}
	}
	check("pool", r.Pool, "http", "https", "rtmp", "rtmps")
	check("peers", r.Peers, "http", "https")
	check("centers", r.Centers, "rtmp", "rtmps")
	if !validWeight(r.Weight) {
		errs = append(errs, fmt.Errorf("weight: is %v, must be 0 to %g", r.Weight, maxWeight))
	}
	if r.Capacity < 0 {
		errs = append(errs, fmt.Errorf("capacity: is %d, must be 0 or more", r.Capacity))
	}
	return errors.Join(errs...)
}

func (u Upstream) check(schemes ...string) error {
	switch {
	case !auth.ValidNodeID(u.Node):
		return fmt.Errorf("%q is not the id of a node", u.Node)
	case !validWeight(u.Weight):
		return fmt.Errorf("%s: its weight is %v, must be 0 to %g", u.Node, u.Weight, maxWeight)
	case u.Capacity < 0:
		return fmt.Errorf("%s: its capacity is %d, must be 0 or more", u.Node, u.Capacity)
	}
	if err := checkURL(u.URL, schemes...); err != nil {
		return fmt.Errorf("%s: %w", u.Node, err)
	}
	return nil
}

func validWeight(w float64) bool { return !math.IsNaN(w) && w >= 0 && w <= maxWeight }

// SetOrders has the origin follow r from now on, nil only its settings. Running sessions
// go on; those that ought to come from elsewhere now move there in time, one after
// another. If r is not valid, what was before stays.
func (o *Origin) SetOrders(r *Orders) error {
	var own *Orders
	if r != nil {
		if err := r.Validate(); err != nil {
			return fmt.Errorf("orders: %w", err)
		}
		own = new(*r)
		own.Pool, own.Peers, own.Centers = slices.Clone(r.Pool), slices.Clone(r.Peers), slices.Clone(r.Centers)
	}
	o.settle.Lock()
	defer o.settle.Unlock()
	o.orders.Store(own)
	o.apply()
	o.changes.Add(1)
	return nil
}

// apply puts the settings and the orders in force. settle is held.
func (o *Origin) apply() {
	cfg, r := o.cfg.Load(), o.orders.Load()
	o.members.set(cfg.Peers, r)
	var ordered []target
	if r != nil {
		for _, u := range r.Pool {
			if u.Node != o.opt.Self {
				ordered = append(ordered, target{url: u.URL, node: u.Node})
			}
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pool.Set(o.places.set(ordered, cfg.Pool))
	o.standBy(ordered)
}

// standBys is to how many upstreams of the orders there is a trunk always: the one that
// streams come from, and the one that they go to when it fails.
const standBys = 2

// standBy keeps trunks to the first nodes of the orders. Whether those of the settings are
// nodes is known only when streams have come from them.
func (o *Origin) standBy(ordered []target) {
	var urls []string
	for _, t := range ordered[:min(standBys, len(ordered))] {
		if t.http() {
			urls = append(urls, t.url)
		}
	}
	o.trunks.Keep(urls)
}

// Orders returns the orders in force, ok false if there are none.
func (o *Origin) Orders() (Orders, bool) {
	r := o.orders.Load()
	if r == nil {
		return Orders{}, false
	}
	return *r, true
}
