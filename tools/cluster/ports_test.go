package cluster

import (
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestPick(t *testing.T) {
	top, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	var own reservations
	defer own.close()
	ports, err := top.pick(Options{}, &own)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for id, p := range ports {
		all := []string{p.HTTP, p.RTMP, p.Admin, p.Internal}
		if id == "router-1" { // nodes and operators share one, and nobody publishes there
			all = []string{p.HTTP, p.Admin}
		}
		for _, addr := range all {
			if host, _, err := net.SplitHostPort(addr); err != nil || host != "127.0.0.1" || seen[addr] {
				t.Errorf("%s: %s is no port of its own", id, addr)
			}
			seen[addr] = true
		}
		if id != "router-1" && p.pull() != p.Internal {
			t.Errorf("%s is pulled from at %s, want the listener for nodes", id, p.pull())
		}
	}
	top.ClusterKey = ""
	if ports, err = top.pick(Options{}, &own); err != nil || ports["edge-1"].Internal != "" || ports["edge-1"].pull() != ports["edge-1"].HTTP {
		t.Errorf("without a key: %+v and %v, want no listener for nodes", ports["edge-1"], err)
	}
}

// TestPickAt: what is given stays as it was written, what is taken is told together.
func TestPickAt(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	top, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	var own reservations
	defer own.close()
	any := func() string {
		addr, err := own.free(loopback)
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(addr)
		return ":" + port
	}
	at := Ports{HTTP: any(), RTMP: any()}
	ports, err := top.pick(Options{At: map[string]Ports{"edge-1": at}}, &own)
	if got := ports["edge-1"]; err != nil || got.HTTP != at.HTTP || got.RTMP != at.RTMP || got.Admin == "" || got.Internal == "" {
		t.Errorf("got %+v and %v, want those of %+v and others", got, err, at)
	}

	taken := ln.Addr().String()
	_, err = top.pick(Options{At: map[string]Ports{"edge-1": {HTTP: taken}, "edge-2": {Admin: taken}}}, &own)
	got, ok := errors.AsType[TakenError](err)
	want := TakenError{{"edge-1", "http", taken, true}, {"edge-2", "admin", taken, true}}
	if !ok || !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", err, want)
	}
	_, port, _ := net.SplitHostPort(taken)
	first, _ := strconv.Atoi(port)
	_, err = top.pick(Options{Port: first, At: map[string]Ports{"edge-3": {RTMP: taken}}}, &own)
	if got, _ := errors.AsType[TakenError](err); len(got) < 2 || got[0] != (Taken{"edge-3", "rtmp", taken, true}) {
		t.Errorf("got %v, want what was given first", err)
	}
	if text := "taken by another program: " + taken + ", " + taken; got.Error() != text {
		t.Errorf("it says %q, want %q", got, text)
	}
	if text := slices.Repeat(want, 4).Error(); strings.Count(text, taken) != takenShown || !strings.HasSuffix(text, " and 3 more") {
		t.Errorf("of eight it says %q", text)
	}
}

func TestReachable(t *testing.T) {
	f := func(addr, want string) {
		t.Helper()
		if got := (Ports{HTTP: addr}).reachable(); got != (Ports{HTTP: want}) {
			t.Errorf("%q: got %+v, want %q", addr, got, want)
		}
	}
	f("", "")
	f(":8080", "localhost:8080")
	f("0.0.0.0:8080", "localhost:8080")
	f("[::]:8080", "localhost:8080")
	f("127.0.0.1:8080", "127.0.0.1:8080")
	f("192.0.2.7:80", "192.0.2.7:80")
	f("[2001:db8::1]:80", "[2001:db8::1]:80")
}
