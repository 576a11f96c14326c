package sched

import (
	"slices"
	"strings"
	"time"
)

// setDefaults fills in what the Snapshot left open.
func (p *Plan) setDefaults() {
	if p.Costs == (Costs{}) {
		p.Costs = DefaultCosts()
	}
	if p.Health == (HealthConfig{}) {
		p.Health = DefaultHealth()
	}
	for i := range p.Nodes {
		set(&p.Nodes[i].Weight, 1)
	}
	for i := range p.Zones {
		p.Zones[i].setDefaults(p.Version)
	}
	for i := range p.Domains {
		p.Domains[i].setDefaults()
	}
}

func (z *Zone) setDefaults(version uint64) {
	z.Name = canonical(z.Name)
	z.NS = slices.Clone(z.NS)
	for i := range z.NS {
		z.NS[i].Host = canonical(z.NS[i].Host)
	}
	set(&z.Mbox, "hostmaster."+z.Name)
	z.Mbox = canonical(strings.Replace(z.Mbox, "@", ".", 1))
	set(&z.Serial, uint32(version)) // so that it rises with what is served
	set(&z.Serial, 1)
	set(&z.Refresh, Duration(time.Hour))
	set(&z.Retry, Duration(10*time.Minute))
	set(&z.Expire, Duration(7*24*time.Hour))
	set(&z.Minimum, Duration(time.Minute))
	set(&z.TTL, Duration(time.Hour))
}

func (d *Domain) setDefaults() {
	d.Name, d.Zone = canonical(d.Name), canonical(d.Zone)
	set(&d.TTL, Duration(time.Minute))
	set(&d.DegradedTTL, min(d.TTL, Duration(5*time.Second)))
	set(&d.Answers, 3)
	set(&d.Spread4, 24)
	set(&d.Spread6, 56)
}

// set gives v a value if it has none.
func set[T comparable](v *T, to T) {
	var none T
	if *v == none {
		*v = to
	}
}
