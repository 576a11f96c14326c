package run

import (
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestReachable(t *testing.T) {
	for _, c := range []struct{ addr, want string }{
		{"[::]:1935", "127.0.0.1:1935"},
		{"0.0.0.0:8080", "127.0.0.1:8080"},
		{"192.0.2.1:80", "192.0.2.1:80"},
		{"[2001:db8::1]:80", "[2001:db8::1]:80"},
		{"a pipe", "a pipe"},
	} {
		if got := Reachable(address(c.addr)); got != c.want {
			t.Errorf("%s can be reached at %s, want %s", c.addr, got, c.want)
		}
	}
}

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// TestUnopened: an address that cannot be had comes with another one to try.
func TestUnopened(t *testing.T) {
	ln, err := Listen("http", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	taken := ln.Addr().String()
	_, port, _ := net.SplitHostPort(taken)
	p, _ := strconv.Atoi(port)
	_, err = Listen("http", taken)
	if p < 65535 && (err == nil || !strings.HasPrefix(err.Error(), "address.http: ") || !strings.Contains(err.Error(), "use --http 127.0.0.1:"+strconv.Itoa(p+1)+" or stop")) {
		t.Errorf("in use: %v", err)
	}
	f := func(errno syscall.Errno, scheme, addr, want string) {
		t.Helper()
		got := Unopened(&net.OpError{Op: "listen", Err: errno}, scheme, addr).Error()
		if !strings.Contains(got, "address."+scheme+": ") || !strings.Contains(got, want) {
			t.Errorf("%v: got %s, want %s", errno, got, want)
		}
	}
	f(syscall.EACCES, "dns", ":53", "CAP_NET_BIND_SERVICE")
	f(syscall.EACCES, "dns", "192.0.2.1:53", "--dns 192.0.2.1:8053")
	f(syscall.EADDRINUSE, "http", "[::1]:80", "--http [::1]:81")
	if got := Unopened(syscall.EADDRNOTAVAIL, "http", "192.0.2.1:80").Error(); strings.Contains(got, "--http") {
		t.Errorf("another port does not help against %s", got)
	}
}
