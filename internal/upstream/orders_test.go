package upstream

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/stream"
)

// hasty follows a plan at once, as far as calmly can be had in a test.
var hasty = calm{
	stand: 100 * time.Millisecond, spread: 0, every: 10 * time.Millisecond, burst: 4,
	home: time.Millisecond, homeBurst: 20,
	after: 30 * time.Second, again: time.Second, most: 5 * time.Second, ask: time.Minute, fresh: time.Second,
}

// follows has a node follow a plan in the manner of c.
func follows(c calm) option { return func(_ *Config, o *Options) { o.calm = &c } }

// at is how a router names a node.
func at(n *node) Upstream { return Upstream{Node: n.id, URL: n.url, Weight: 1} }

// ordered gives orders with a pool.
func (n *node) ordered(pool ...*node) {
	n.t.Helper()
	r := Orders{Weight: 1}
	for _, p := range pool {
		r.Pool = append(r.Pool, at(p))
	}
	if err := n.origin.SetOrders(&r); err != nil {
		n.t.Fatal(err)
	}
}

// from returns whom a stream comes from.
func (n *node) from(name stream.Name) string {
	p, ok := n.origin.Path(name)
	if !ok || len(p.Feeds) == 0 || !p.Feeds[0].Current {
		return ""
	}
	return p.Feeds[0].Node
}

// readFrom reads until the stream comes from a node. On a busy machine other reasons to
// move, and not to, come first.
func (r *reader) readFrom(to *node) {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); r.n.from(r.s.Name()) != to.id; {
		if time.Now().After(end) {
			r.t.Fatalf("it never moved to %s: %v", to.id, r.n.origin.Events())
		}
		want(r.t, r.read(5), "")
	}
}

func TestOrdersValidate(t *testing.T) {
	good := Upstream{Node: "a", URL: "http://a:1", Weight: 1}
	with := func(change func(*Upstream)) []Upstream {
		u := good
		change(&u)
		return []Upstream{u}
	}
	for _, c := range []struct {
		name string
		r    Orders
		want string // part of the error; empty means valid
	}{
		{"nothing", Orders{}, ""},
		{"all", Orders{
			Pool: []Upstream{good, {Node: "b", URL: "rtmps://b:1"}}, Peers: []Upstream{good},
			Centers: []Upstream{{Node: "c", URL: "rtmp://c:1935"}}, Weight: 2, Capacity: 1,
		}, ""},
		{"no id", Orders{Pool: with(func(u *Upstream) { u.Node = "a b" })}, `pool: "a b" is not the id of a node`},
		{"a file", Orders{Pool: with(func(u *Upstream) { u.URL = "file:///etc/passwd" })}, "pool: a: "},
		{"a query", Orders{Pool: with(func(u *Upstream) { u.URL += "/?x" })}, "must end after the path"},
		{"a peer over rtmp", Orders{Peers: with(func(u *Upstream) { u.URL = "rtmp://a:1" })}, "peers: a: "},
		{"a center over http", Orders{Centers: []Upstream{good}}, "centers: a: "},
		{"no number", Orders{Peers: with(func(u *Upstream) { u.Weight = math.NaN() })}, "weight is NaN"},
		{"too heavy", Orders{Weight: 1e7}, "weight: is 1e+07"},
		{"negative weight", Orders{Weight: -1}, "weight: is -1"},
		{"negative capacity", Orders{Capacity: -1}, "capacity: is -1"},
		{"a peer that can send less than nothing", Orders{Peers: with(func(u *Upstream) { u.Capacity = -1 })}, "capacity is -1"},
		{"too many", Orders{Pool: make([]Upstream, maxOrdered+1)}, "has 4097 nodes"},
	} {
		err := c.r.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// The pool of the orders goes before that of the settings, which is what is left.
func TestOrdersGoFirst(t *testing.T) {
	center := start(t, "center")
	one, two := start(t, "one", pool(center.url)), start(t, "two", pool(center.url))
	edge := start(t, "edge", pool(one.url), follows(hasty))
	if _, ok := edge.origin.Orders(); ok {
		t.Error("there are orders before the first")
	}
	edge.ordered(two)
	if err := edge.origin.SetOrders(&Orders{Weight: -1}); err == nil {
		t.Error("bad orders are taken")
	}
	if r, ok := edge.origin.Orders(); !ok || len(r.Pool) != 1 || r.Pool[0].Node != "two" {
		t.Errorf("the orders are %+v %v", r, ok)
	}
	center.publishInTime("live/a")
	r := edge.attach("live/a")
	defer r.detach()
	r.readFrom(two)
	want(t, r.read(50), "") // enough to recognise them elsewhere
	two.stop()
	want(t, r.read(50), "")
	if got := edge.from("live/a"); got != "one" {
		t.Errorf("without two it comes from %q, want one", got)
	}
	if err := edge.origin.SetOrders(nil); err != nil {
		t.Error(err)
	}
	want(t, r.read(10), "")
}

// A node that has nothing but orders has somewhere to look.
func TestOrdersAlone(t *testing.T) {
	center := start(t, "center")
	edge := start(t, "edge")
	center.publishInTime("live/a")
	edge.ordered(edge, center) // it never asks itself
	r := edge.attach("live/a")
	defer r.detach()
	want(t, r.read(10), "")
}

// Weights are the shares of the ring, and who drains owns nothing.
func TestWeights(t *testing.T) {
	url := func(id string) Upstream { return Upstream{Node: id, URL: "http://" + id + ":1", Weight: 1} }
	owned := func(m *members) map[string]int {
		count := map[string]int{}
		for i := range 3000 {
			id := m.self
			if o := m.owners(time.Now(), stream.Name(fmt.Sprint("live/", i)), new(word)); len(o) > 0 {
				id = o[0].node
			}
			count[id]++
		}
		return count
	}
	m := newMembers("a", 0)
	b, c := url("b"), url("c")
	b.Weight = 4
	m.set(map[string]string{"c": "http://other:1"}, &Orders{Weight: 1, Peers: []Upstream{b, c}})
	if n := owned(m); n["b"] < 1800 || n["b"] > 2200 || n["a"] < 350 || n["c"] < 350 {
		t.Errorf("with weights 1, 4 and 1 they own %v", n)
	}
	if o := m.urls(); o["c"] != "http://c:1" {
		t.Errorf("the settings go before the orders: %v", o)
	}
	b.Weight = 0
	m.set(nil, &Orders{Weight: 1, Peers: []Upstream{b, c}})
	if n := owned(m); n["b"] != 0 {
		t.Errorf("who drains owns %d streams", n["b"])
	}
	m.set(nil, &Orders{Weight: 0, Peers: []Upstream{c}})
	if n := owned(m); n["a"] != 0 {
		t.Errorf("a node that drains owns %d streams", n["a"])
	}
	m.set(map[string]string{"d": "http://d:1"}, nil)
	if n := owned(m); n["a"] < 1300 || n["d"] < 1300 {
		t.Errorf("without orders they own %v", n)
	}
	m.set(nil, &Orders{})
	if n := owned(m); n["a"] != 3000 {
		t.Errorf("a node alone owns %v", n)
	}
}

// Centers of the orders go first, those that drain behind them, those of the settings
// last.
func TestOrderedCenters(t *testing.T) {
	edge := start(t, "edge", func(c *Config, _ *Options) { c.Centers = []string{"rtmp://x:1", "rtmp://y:1"} })
	if got := edge.origin.centers("live/a"); len(got) != 2 {
		t.Errorf("without orders they are %q", got)
	}
	err := edge.origin.SetOrders(&Orders{Centers: []Upstream{
		{Node: "d", URL: "rtmp://d:1"},
		{Node: "c1", URL: "rtmp://c1:1", Weight: 1},
		{Node: "c2", URL: "rtmp://c2:1", Weight: 1},
		{Node: "x", URL: "rtmp://x:1", Weight: 1},
		{Node: "edge", URL: "rtmp://me:1", Weight: 1},
	}})
	if err != nil {
		t.Fatal(err)
	}
	first := map[string]bool{}
	for i := range 50 {
		got := edge.origin.centers(stream.Name(fmt.Sprint("live/", i)))
		if len(got) != 5 || got[3] != "rtmp://d:1" || got[4] != "rtmp://y:1" || slices.Contains(got, "rtmp://me:1") {
			t.Fatalf("they are %q", got)
		}
		first[got[0]] = true
	}
	if len(first) != 3 {
		t.Errorf("the first of 50 streams are %v, want all three", first)
	}
}
