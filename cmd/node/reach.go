package main

import (
	"strings"

	"millrace/internal/control"
)

// ways is where this node reaches others instead of where they say, as router.reach has
// it: URLs by id.
type ways map[string][]string

// orders returns o with the targets as this node reaches them.
func (w ways) orders(o *control.Orders) *control.Orders {
	if len(w) == 0 {
		return o
	}
	out := *o
	for _, list := range []*[]control.Target{&out.Pool, &out.Peers, &out.Centers, &out.Measure} {
		*list = w.targets(*list)
	}
	return &out
}

// targets returns targets as this node reaches them.
func (w ways) targets(all []control.Target) []control.Target {
	if len(w) == 0 {
		return all
	}
	out := make([]control.Target, 0, len(all))
	for _, t := range all {
		out = append(out, w.target(t))
	}
	return out
}

func (w ways) target(t control.Target) control.Target {
	for _, url := range w[t.Node] {
		switch scheme, rest, _ := strings.Cut(url, "://"); scheme {
		case "http", "https":
			t.URL = url
		case "rtmp", "rtmps":
			t.Push = url
		case "udp":
			t.Probe = rest
		}
	}
	return t
}
