package main

import (
	"reflect"
	"testing"

	"millrace/internal/control"
)

// TestWays: what the settings say of a node stands in for what it says itself, purpose by
// purpose, and the orders stay as they came.
func TestWays(t *testing.T) {
	a := control.Target{Node: "a", URL: "http://a:80", Push: "rtmp://a", Probe: "a:80", Weight: 2}
	b := control.Target{Node: "b", URL: "http://b:80"}
	o := &control.Orders{
		Version: 7, Pool: []control.Target{a, b}, Peers: []control.Target{b}, Centers: []control.Target{a}, Measure: []control.Target{a},
	}
	w := ways{"a": {"https://10.0.0.1:443", "udp://10.0.0.1:444"}, "c": {"http://c"}}
	got := w.orders(o)
	moved := control.Target{Node: "a", URL: "https://10.0.0.1:443", Push: "rtmp://a", Probe: "10.0.0.1:444", Weight: 2}
	want := &control.Orders{
		Version: 7, Pool: []control.Target{moved, b}, Peers: []control.Target{b}, Centers: []control.Target{moved}, Measure: []control.Target{moved},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if o.Pool[0] != a {
		t.Errorf("the orders were changed: %+v", o)
	}
	if ways(nil).orders(o) != o {
		t.Error("without ways the orders are others")
	}
}
