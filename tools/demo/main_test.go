package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// start runs the program with args and returns what it said.
func start(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestRefusals(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		code, _, stderr := start(t, args...)
		if code != exitRefused || !strings.Contains(stderr, want) {
			t.Errorf("%v: code %d and %q, want %d and %q", args, code, stderr, exitRefused, want)
		}
	}
	f("takes flags only", "now")
	f("must be app/name", "--stream", "demo")
	f("must be app/name", "--stream", "live/")
	f("not defined", "--port", "1")
	f("--rtmp 1935: ", "--rtmp", "1935")
}

// TestTakenPorts: all that are taken are named in one go, each with a way out.
func TestTakenPorts(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	addr := ln.Addr().String()
	code, stdout, stderr := start(t, "--rtmp", addr, "--http", addr, "--admin", "127.0.0.1:0")
	if code != exitRefused || stdout != "" {
		t.Errorf("code %d, want %d before anything is done; said %q", code, exitRefused, stdout)
	}
	for _, want := range []string{addr + " is taken", "DEMO='--rtmp :1936'", "DEMO='--http :8081'"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("no %q in %q", want, stderr)
		}
	}
}

func TestAddressesFromTheEnvironment(t *testing.T) {
	t.Setenv("DEMO_RTMP", "127.0.0.1:7001")
	t.Setenv("DEMO_HTTP", "127.0.0.1:7002")
	s, err := parse([]string{"--http", "127.0.0.1:7003"}, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if s.rtmp != "127.0.0.1:7001" || s.http != "127.0.0.1:7003" || s.admin != "127.0.0.1:9090" {
		t.Errorf("got %+v; a flag goes before the environment, that before the default", s)
	}
}

// TestNodeThatDoesNotStart: the demo says so instead of waiting.
func TestNodeThatDoesNotStart(t *testing.T) {
	free := []string{"--rtmp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"}
	code, _, stderr := start(t, append(free, "--node", filepath.Join(t.TempDir(), "none"))...)
	if code != exitFailed || !strings.Contains(stderr, "make build") {
		t.Errorf("without a program: code %d and %q", code, stderr)
	}
	script := filepath.Join(t.TempDir(), "node")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho no luck today\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := start(t, append(free, "--node", script)...)
	if code != exitFailed || !strings.Contains(stderr, "exit status 3") || !strings.Contains(stdout, "node: no luck today") {
		t.Errorf("with one that ends: code %d, said %q and %q", code, stdout, stderr)
	}
}

func TestURL(t *testing.T) {
	f := func(scheme, addr, want string) {
		t.Helper()
		if got := url(scheme, addr, "/live/x"); got != want {
			t.Errorf("%s at %s: got %s, want %s", scheme, addr, got, want)
		}
	}
	f("rtmp", ":1935", "rtmp://localhost/live/x")
	f("rtmp", "0.0.0.0:1936", "rtmp://localhost:1936/live/x")
	f("http", "[::]:8080", "http://localhost:8080/live/x")
	f("http", "192.0.2.7:80", "http://192.0.2.7:80/live/x")
	f("http", "[2001:db8::1]:80", "http://[2001:db8::1]:80/live/x")
}
