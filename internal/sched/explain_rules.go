package sched

import (
	"fmt"
	"slices"
)

// why returns why node i is not eligible for the query, None or Held if it is. What
// overrides say is not in it.
func (d *decision) why(i int32, domain *Domain) Reason {
	n := &d.plan.Nodes[i]
	switch {
	case n.Role != roleEdge:
		return NotEdge
	case !inGroups(n, domain.Groups):
		return Group
	case d.kind >= kind(V4, true) && n.HTTPSPort == 0:
		return NoHTTPS
	}
	why := Family
	for f := range d.v.why {
		if r := d.v.why[f][i]; d.families&(1<<f) != 0 && r != Family {
			if r == None || r == Held {
				return r
			}
			why = r
		}
	}
	return why
}

func (d *decision) explainEligibility(domain *Domain) Rule {
	r := Rule{Name: "eligibility"}
	good, held := 0, 0
	for i := range d.plan.Nodes {
		switch why := d.why(int32(i), domain); why {
		case None:
			good++
		case Held:
			held++
		default:
			r.drop(why, d.plan.Nodes[i].ID)
		}
	}
	slices.SortFunc(r.Dropped, func(a, b Dropped) int { return int(a.Reason) - int(b.Reason) })
	r.Did = fmt.Sprintf("%d of %d nodes are eligible over %v", good+held, len(d.plan.Nodes), d.families)
	if held > 0 {
		r.Did += fmt.Sprintf(", of them %d that seem down, because more than %v of the edges of their groups do",
			held, d.plan.Health.EvictShare)
	}
	if d.poor {
		r.Did += "; none is left, so the least bad of the others are taken"
	}
	if d.v.old(d.now) {
		r.Did += fmt.Sprintf("; health and load are %v old, so the answer is given for a short time", d.now.Sub(d.v.State.At))
	}
	return r
}

func (d *decision) explainCoverage(a *Answer) Rule {
	region, isp := a.Place.Region, a.Place.ISP
	if region == "" {
		region = "an unknown region"
	}
	if isp == "" {
		isp = "an unknown ISP"
	}
	r := Rule{Name: "coverage", Did: fmt.Sprintf("the client is in %s at %s (%v)", region, isp, a.Place.Source)}
	if d.place.region == elsewhere && a.Place.Region != "" {
		r.Did += "; the snapshot does not name this region"
	}
	if len(d.order) > 0 {
		near := inf
		for _, c := range d.order {
			near = min(near, d.row[c].coverage)
		}
		r.Did += fmt.Sprintf("; the nearest of %d kinds of edges costs %.1f ms", len(d.order), near)
	}
	return r
}

func (d *decision) explainQuality() Rule {
	r := Rule{Name: "quality", Did: "nothing is measured for this place"}
	measured, best, worst := 0, inf, -inf
	for _, c := range d.order {
		if q := d.row[c].quality; q != 0 {
			measured++
			best, worst = min(best, d.fade*q), max(worst, d.fade*q)
		}
	}
	if measured > 0 {
		r.Did = fmt.Sprintf("measurements change the cost of %d of %d kinds of edges, by %.1f to %.1f ms; their age leaves %.0f %% of them",
			measured, len(d.order), best, worst, 100*d.fade)
	}
	return r
}

func (d *decision) explainStream() Rule {
	switch {
	case d.q.Stream == "":
		return Rule{Name: "stream", Did: "no stream is asked for"}
	case d.bonus == 0:
		return Rule{Name: "stream", Did: "no node carries it"}
	}
	return Rule{Name: "stream", Did: fmt.Sprintf("%d nodes carry it and gain %v ms", len(d.carry.list), d.bonus)}
}

func (d *decision) explainLoad() Rule {
	if d.found == 0 {
		return Rule{Name: "load", Did: "there is no edge"}
	}
	best := d.top[0].node
	used := 0.0
	if s := d.v.stateOf(best); s != nil {
		used = float64(s.Load) / float64(d.plan.Nodes[best].Capacity)
	}
	r := Rule{Name: "load", Did: fmt.Sprintf("with it, the best costs %.1f ms; %s is at %.0f %% of its capacity",
		d.best, d.plan.Nodes[best].ID, 100*used)}
	if !d.poor && d.nearest < inf {
		r.Did += fmt.Sprintf("; without load and stream, the nearest that is well costs %.1f ms", d.nearest)
	}
	return r
}

func (d *decision) explainSpreading() Rule {
	r := Rule{Name: "spreading"}
	switch {
	case d.found == 0:
		r.Did = "there is no edge"
	case d.shared == 1:
		r.Did = fmt.Sprintf("only %s costs at most %.1f ms (the best and %v ms more)",
			d.plan.Nodes[d.top[0].node].ID, d.window, d.plan.Costs.Margin)
	default:
		r.Did = fmt.Sprintf("edges that cost at most %.1f ms (the best and %v ms more) share the clients, by the first %d bits of their addresses",
			d.window, d.plan.Costs.Margin, d.spread)
		if d.q.Stream != "" {
			r.Did += " and the stream"
		}
	}
	return r
}
