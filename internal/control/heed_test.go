package control

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// ordersOf returns orders for a node with that pool.
func ordersOf(node string, version uint64, pool ...string) *Orders {
	o := &Orders{Origin: "store", Version: version, Node: node, Pool: []Target{}, Peers: []Target{}, Centers: []Target{}, Measure: []Target{}, Weight: 1}
	for _, id := range pool {
		o.Pool = append(o.Pool, Target{Node: id, URL: "http://" + id + ":8080", Probe: id + ":8080"})
	}
	return o
}

func TestParseOrders(t *testing.T) {
	want := ordersOf("e1", 7, "r1", "r2")
	want.Peers = []Target{{Node: "e2", URL: "http://e2:8080", Weight: 2, Capacity: 100}}
	want.Centers = []Target{{Node: "c1", URL: "https://[2001:db8::1]:8443", Push: "rtmp://c1:1935"}}
	want.Measure, want.Paths, want.Capacity = []Target{{Node: "r3", Probe: "r3:8080"}}, true, 1000
	got, err := ParseOrders(mustJSON(want), "e1")
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v", got, err)
	}
	for _, c := range []struct {
		saying string
		spoil  func(*Orders)
	}{
		{"no origin", func(o *Orders) { o.Origin = "" }},
		{"are for node", func(o *Orders) { o.Node = "e2" }},
		{"this node itself", func(o *Orders) { o.Pool[0].Node = "e1" }},
		{"there twice", func(o *Orders) { o.Pool[1].Node = "r1" }},
		{"not the id", func(o *Orders) { o.Peers[0].Node = "" }},
		{"without a url", func(o *Orders) { o.Pool[0].URL = "" }},
		{"without a url", func(o *Orders) { o.Peers[0].URL = "" }},
		{"without a URL to push", func(o *Orders) { o.Centers[0].Push = "" }},
		{"url is", func(o *Orders) { o.Pool[0].URL = "http://h/secret" }},
		{"push is", func(o *Orders) { o.Centers[0].Push = "rtmp://u:p@h" }},
		{"probe is", func(o *Orders) { o.Measure[0].Probe = "h h:1" }},
		{"weight is", func(o *Orders) { o.Peers[0].Weight = -1 }},
		{"capacity is", func(o *Orders) { o.Peers[0].Capacity = -1 }},
		{"weight", func(o *Orders) { o.Weight = -1 }},
		{"capacity", func(o *Orders) { o.Capacity = -1 }},
		{"at most", func(o *Orders) {
			for i := range MaxTargets {
				o.Measure = append(o.Measure, Target{Node: fmt.Sprint("n", i)})
			}
		}},
	} {
		o, err := ParseOrders(mustJSON(want), "e1")
		if err != nil {
			t.Fatal(err)
		}
		c.spoil(o)
		if o, err := ParseOrders(mustJSON(o), "e1"); o != nil || !strings.Contains(fmt.Sprint(err), c.saying) {
			t.Errorf("%s: %+v, %v", c.saying, o, err)
		}
	}
	for _, text := range []string{"", "[]", `{"node":1}`, `{"pool":[` + strings.Repeat("0,", 1<<20) + `0]}`, strings.Repeat(" ", MaxOrders+1)} {
		if _, err := ParseOrders([]byte(text), "e1"); err == nil {
			t.Errorf("%.20q is taken", text)
		}
	}
}

func TestOrdersPaper(t *testing.T) {
	a, b, c := NewOrdersPaper(ordersOf("e1", 1, "r1")), NewOrdersPaper(ordersOf("e1", 2, "r1")), NewOrdersPaper(ordersOf("e1", 2, "r2"))
	if a.Token() != b.Token() || b.Token() == c.Token() {
		t.Errorf("tokens %s, %s, %s", a.Token(), b.Token(), c.Token())
	}
}

func TestParseRoute(t *testing.T) {
	want := routeTo("r7")
	want.Stream = "live/a"
	got, err := ParseRoute(mustJSON(want), "e1", "live/a")
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v", got, err)
	}
	if _, err := ParseRoute(mustJSON(want), "r7", "live/a"); err == nil {
		t.Error("a node is sent to itself")
	}
	for name, spoil := range map[string]func(*Route){
		"route is for": func(r *Route) { r.Stream = "live/b" },
		"source":       func(r *Route) { r.Source = "?" },
		"reason":       func(r *Route) { r.Reason = "" },
		"choices":      func(r *Route) { r.Choices = []Target{{Node: "r1"}} },
	} {
		r := want
		spoil(&r)
		if _, err := ParseRoute(mustJSON(r), "e1", "live/a"); !strings.Contains(fmt.Sprint(err), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ParseRoute(make([]byte, MaxRoute+1), "e1", "live/a"); err == nil {
		t.Error("a long one is taken")
	}
}

func TestParseAck(t *testing.T) {
	good := Ack{Router: "r1", Sequence: 7, Interval: 1000, Orders: "x", Refused: map[string]int{"too_old": 3}, First: []string{"r1: too old"}}
	if got, err := ParseAck(mustJSON(good)); err != nil || !reflect.DeepEqual(*got, good) {
		t.Fatalf("got %+v, %v", got, err)
	}
	for name, spoil := range map[string]func(*Ack){
		"no id":     func(a *Ack) { a.Router = "" },
		"after -1":  func(a *Ack) { a.Interval = -1 },
		"36000000":  func(a *Ack) { a.Interval = 36_000_000 },
		"too long":  func(a *Ack) { a.Orders = strings.Repeat("x", 500) },
		"lists":     func(a *Ack) { a.First = make([]string, 100) },
		"for \"a b": func(a *Ack) { a.Refused = map[string]int{"a b": 1} },
		"-1 sample": func(a *Ack) { a.Refused = map[string]int{"a": -1} },
	} {
		a := good
		spoil(&a)
		if _, err := ParseAck(mustJSON(a)); !strings.Contains(fmt.Sprint(err), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzHeed feeds what routers say. What is taken stays the same when it is written out
// and read again.
func FuzzHeed(f *testing.F) {
	route := routeTo("r7")
	route.Stream = "live/a"
	for _, v := range []any{ordersOf("e1", 7, "r1", "r2"), route, Ack{Router: "r1", Interval: 1000, Refused: map[string]int{"too_old": 3}}} {
		f.Add(mustJSON(v))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		same := func(v any, again func([]byte) (any, error)) {
			t.Helper()
			text := mustJSON(v)
			got, err := again(text)
			if err != nil || !bytes.Equal(mustJSON(got), text) {
				t.Fatalf("%s and then %+v, %v", text, got, err)
			}
		}
		if o, err := ParseOrders(b, "e1"); err == nil {
			same(o, func(b []byte) (any, error) { return ParseOrders(b, "e1") })
		}
		if r, err := ParseRoute(b, "e1", "live/a"); err == nil {
			same(r, func(b []byte) (any, error) { return ParseRoute(b, "e1", "live/a") })
		}
		if a, err := ParseAck(b); err == nil {
			same(a, func(b []byte) (any, error) { return ParseAck(b) })
		}
	})
}
