package fleet

import (
	"fmt"
	"strings"

	"millrace/internal/control"
	"millrace/internal/plan"
	"millrace/internal/sched"
)

// edgeOf is a node as schedulers take it, by what it says of itself.
func edgeOf(of *control.Identity) sched.Node {
	return sched.Node{
		ID: of.ID, Role: of.Role, Datacenter: of.Datacenter, Region: of.Region, ISPs: of.ISPs, Addresses: of.Addresses, HTTPPort: of.HTTPPort,
		HTTPSPort: of.HTTPSPort, Host: of.Host, Capacity: of.Capacity, Weight: of.Weight, Groups: of.Groups,
	}
}

// leftOut returns why schedulers cannot be given a node, with what to set on it; "" if
// they can, and of a node that is no edge. One that cannot be placed must not keep all
// others from being so.
func leftOut(of *control.Identity) string {
	if of.Role != plan.Edge {
		return ""
	}
	var why []string
	if of.Region == "" {
		why = append(why, "it says no region: set router.region on it")
	}
	if len(of.Addresses) == 0 {
		why = append(why, "it says no address for players: set router.addresses on it")
	}
	if of.HTTPPort == 0 && of.HTTPSPort == 0 {
		why = append(why, "it has no port for players: set address.http or address.https on it")
	}
	if why == nil {
		n := edgeOf(of)
		n.Capacity = max(n.Capacity, 1) // that of the configuration stands in for it
		if err := (&sched.Snapshot{Nodes: []sched.Node{n}}).Validate(); err != nil {
			why = append(why, err.Error())
		}
	}
	return strings.Join(why, "; ")
}

// Placeless says why there is no snapshot; see [control.Backend].
func (f *Fleet) Placeless(node string) (control.Refusal, string) {
	fr := f.frame.Load()
	if fr == nil {
		return control.NoSnapshot, "this router has just begun: ask again"
	}
	if n := fr.node(node); n != nil && n.leftOut != "" {
		return control.LeftOut, fmt.Sprintf("there is no edge to place players on, and %s is left out: %s", node, n.leftOut)
	}
	out := ""
	for i := range fr.nodes {
		switch n := &fr.nodes[i]; {
		case n.identity.Role != plan.Edge:
		case n.leftOut == "":
			return control.NoSnapshot, "the first snapshot is being made: ask again; if it does not come, the log of the router that plans says why"
		case out == "":
			out = fmt.Sprintf("there is no edge to place players on: %s is left out: %s", n.identity.ID, n.leftOut)
		}
	}
	if out == "" {
		out = "there is no edge to place players on: none has spoken to a router yet"
	}
	return control.NoSnapshot, out
}
