package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"millrace/internal/auth"
	"millrace/internal/stream"
)

// Bounds of what a router says to a node.
const (
	// MaxOrders bounds the JSON of orders. A target takes about 150 bytes.
	MaxOrders = 4 << 20
	// MaxTargets bounds each list of nodes in orders: the peers are those of a datacenter.
	MaxTargets = 4096
	// MaxRoute and MaxAck bound the JSON of short answers.
	MaxRoute = 64 << 10
	MaxAck   = 64 << 10

	maxInterval = 10 * time.Minute
)

// ParseOrders reads orders for the node self. It believes nothing that it cannot check:
// what makes no sense is an error.
func ParseOrders(b []byte, self string) (*Orders, error) {
	o := &Orders{}
	if err := readSmall(b, "orders", MaxOrders, o); err != nil {
		return nil, err
	}
	if !isName(o.Origin) {
		return nil, fmt.Errorf("the orders come from %.80q, which is no origin", o.Origin)
	}
	if o.Node != self {
		return nil, fmt.Errorf("the orders are for node %.80q and this is %s", o.Node, self)
	}
	if !within(o.Weight, 1000) || o.Capacity < 0 || o.Capacity > maxRate {
		return nil, fmt.Errorf("the orders give this node the weight %v and %d bytes/s of capacity", o.Weight, o.Capacity)
	}
	for _, list := range []struct {
		key     string
		targets []Target
		needs   func(*Target) bool
		want    string
	}{
		{"pool", o.Pool, func(t *Target) bool { return t.URL != "" }, "a url to pull from"},
		{"peers", o.Peers, func(t *Target) bool { return t.URL != "" }, "a url to pull from"},
		{"centers", o.Centers, func(t *Target) bool { return t.Push != "" }, "a URL to push to"},
		{"measure", o.Measure, func(*Target) bool { return true }, ""},
	} {
		if err := checkTargets(list.targets, self, list.needs, list.want); err != nil {
			return nil, fmt.Errorf("the orders are wrong: %s: %w", list.key, err)
		}
	}
	return o, nil
}

// ParseRoute reads the route of a stream for the node self.
func ParseRoute(b []byte, self string, n stream.Name) (Route, error) {
	var r Route
	if err := readSmall(b, "a route", MaxRoute, &r); err != nil {
		return Route{}, err
	}
	switch {
	case r.Stream != n:
		return Route{}, fmt.Errorf("the route is for %.80q, asked was %s", string(r.Stream), n)
	case r.Source != "" && !auth.ValidNodeID(r.Source):
		return Route{}, fmt.Errorf("the route has the source %.80q, which is not the id of a node", r.Source)
	case !isWord(r.Reason):
		return Route{}, fmt.Errorf("the route has the reason %.80q, which is no word", r.Reason)
	}
	if err := checkTargets(r.Choices, self, func(t *Target) bool { return t.URL != "" }, "a url to pull from"); err != nil {
		return Route{}, fmt.Errorf("the route is wrong: choices: %w", err)
	}
	return r, nil
}

// ParseAck reads what a router answered to a heartbeat.
func ParseAck(b []byte) (*Ack, error) {
	a := &Ack{}
	if err := readSmall(b, "an answer to a heartbeat", MaxAck, a); err != nil {
		return nil, err
	}
	switch {
	case !auth.ValidNodeID(a.Router):
		return nil, fmt.Errorf("the router calls itself %.80q, which is no id", a.Router)
	case a.Interval < 0 || time.Duration(a.Interval) > maxInterval/time.Millisecond:
		return nil, fmt.Errorf("the router wants the next heartbeat after %d ms", a.Interval)
	case len(a.LeftOut) > maxDetail || !utf8.ValidString(a.LeftOut):
		return nil, fmt.Errorf("the router says of the node %.80q", a.LeftOut)
	case len(a.Orders) > maxToken || len(a.Snapshot) > maxToken || len(a.Refused) > maxWords || len(a.First) > maxWords:
		return nil, errors.New("the answer to the heartbeat has lists or words that are too long")
	}
	for reason, n := range a.Refused {
		if !isWord(reason) || n < 0 || n > maxViewers {
			return nil, fmt.Errorf("the router refused %d samples for %.80q", n, reason)
		}
	}
	return a, nil
}

// readSmall reads JSON of at most limit bytes into v. What says little for its length is
// none of ours: an empty object takes a hundred times its text in memory.
func readSmall(b []byte, what string, limit int, v any) error {
	if len(b) > limit {
		return fmt.Errorf("not %s: it has %d bytes, at most %d are read", what, len(b), limit)
	}
	if n := bytes.Count(b, []byte(",")); n > 16*MaxTargets {
		return fmt.Errorf("not %s: it has %d values, at most %d are read", what, n, 16*MaxTargets)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("not %s: %w", what, err)
	}
	return nil
}

// checkTargets wants other nodes, each once, with what they are needed for.
func checkTargets(list []Target, self string, needs func(*Target) bool, want string) error {
	if len(list) > MaxTargets {
		return fmt.Errorf("%d nodes, at most %d are possible", len(list), MaxTargets)
	}
	seen := make(map[string]bool, len(list))
	for i := range list {
		t := &list[i]
		if err := t.check(); err != nil {
			return err
		}
		switch {
		case t.Node == self:
			return fmt.Errorf("%s is this node itself", t.Node)
		case seen[t.Node]:
			return fmt.Errorf("%s is there twice", t.Node)
		case !needs(t):
			return fmt.Errorf("%s is without %s", t.Node, want)
		}
		seen[t.Node] = true
	}
	return nil
}

// check looks at what t says. What it does not say is another's to miss.
func (t *Target) check() error {
	switch {
	case !auth.ValidNodeID(t.Node):
		return fmt.Errorf("%.80q is not the id of a node", t.Node)
	case t.URL != "" && !validPull(t.URL):
		return fmt.Errorf("%s: url is %.100q: write http://HOST:PORT or https://HOST:PORT", t.Node, t.URL)
	case t.Push != "" && !validPush(t.Push):
		return fmt.Errorf("%s: push is %.100q: write rtmp://HOST:PORT", t.Node, t.Push)
	case t.Probe != "" && !validProbe(t.Probe):
		return fmt.Errorf("%s: probe is %.100q: write HOST:PORT", t.Node, t.Probe)
	case !within(t.Weight, 1000):
		return fmt.Errorf("%s: weight is %v: use 0 to 1000", t.Node, t.Weight)
	case t.Capacity < 0 || t.Capacity > maxRate:
		return fmt.Errorf("%s: capacity is %d bytes/s", t.Node, t.Capacity)
	}
	return nil
}
