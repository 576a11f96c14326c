package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"millrace/tools/cluster"
)

func TestOptions(t *testing.T) {
	top, err := cluster.Default()
	if err != nil {
		t.Fatal(err)
	}
	f := func(want cluster.Ports, args ...string) {
		t.Helper()
		s, err := parse(args, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.options(top).At; len(got) != 1 || got["edge-1"] != want {
			t.Errorf("%v: got %+v, want %+v for edge-1", args, got, want)
		}
	}
	f(cluster.Ports{HTTP: ":8080", RTMP: ":1935", Admin: "127.0.0.1:9090"})
	f(cluster.Ports{HTTP: ":8081", RTMP: ":1935", Admin: "127.0.0.1:9090"}, "--http", ":8081", "--port", "22000")
	f(cluster.Ports{}, "--port", "0")
	f(cluster.Ports{Admin: "127.0.0.1:9091"}, "--port", "0", "--admin", "127.0.0.1:9091")
}

// TestTakenPorts: all that are taken are named in one go, with one way round them
// that works, and nothing is left.
func TestTakenPorts(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	addr := ln.Addr().String()
	args := []string{"--port", "0", "--http", addr, "--rtmp", addr}
	var out, errs bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(""), &out, &errs)
	if want := "taken by another program: " + addr + ", " + addr + "\n"; code != exitRefused || !strings.Contains(errs.String(), want) {
		t.Errorf("code %d and %q, want %d and %q", code, errs.String(), exitRefused, want)
	}
	var http, rtmp string
	_, hint, _ := strings.Cut(errs.String(), "make demo DEMO=")
	if _, err := fmt.Sscanf(strings.ReplaceAll(hint, "'", ""), "--http %s --rtmp %s", &http, &rtmp); err != nil || !canListen(http) || !canListen(rtmp) {
		t.Errorf("the way round is %q: %v", hint, err)
	}
	if left, _ := filepath.Glob(filepath.Join(temp, "*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

func TestOtherPorts(t *testing.T) {
	s := settings{port: 21000}
	taken := cluster.TakenError{
		{Node: "center-1", Protocol: "http", Addr: "127.0.0.1:21000"},
		{Node: "edge-1", Protocol: "http", Addr: "127.0.0.1:21016", Given: true},
		{Node: "edge-2", Protocol: "http", Addr: "127.0.0.1:21020"},
	}
	var port, other int
	got := s.otherPorts(taken, 7)
	if _, err := fmt.Sscanf(got, "--port %d --http 127.0.0.1:%d", &port, &other); err != nil || port <= 21000 || port%100 != 0 || other <= 21016 {
		t.Errorf("got %q: %v", got, err)
	}
}
