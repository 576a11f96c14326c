package run

import (
	"errors"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// short is a listener whose first Accepts fail for want of descriptors.
type short struct {
	net.Listener
	fails int
}

func (s *short) Accept() (net.Conn, error) {
	if s.fails--; s.fails >= 0 {
		return nil, &net.OpError{Op: "accept", Err: unix.EMFILE}
	}
	a, b := net.Pipe()
	b.Close()
	return a, nil
}

func (s *short) Close() error { return nil }

func TestReserve(t *testing.T) {
	r := NewReserve(&short{fails: 2})
	if r.held == nil {
		t.Fatal("nothing is held")
	}
	if _, err := r.Accept(); !errors.Is(err, unix.EMFILE) || r.held == nil {
		t.Fatalf("got %v, want the error after a second one, and the reserve back", err)
	}
	r.Listener.(*short).fails = 1
	c, err := r.Accept()
	if err != nil || r.held != nil {
		t.Fatalf("got %v, want a connection on the reserve", err)
	}
	c.Close()
	if r.held == nil {
		t.Error("the reserve is not taken again when the connection closes")
	}
	if c, err = r.Accept(); err != nil {
		t.Fatal(err)
	}
	c.Close()
	r.Close()
	r.refill()
	if r.held != nil {
		t.Error("a closed listener takes a descriptor")
	}
}
