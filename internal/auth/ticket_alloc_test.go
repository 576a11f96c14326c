//go:build !race

package auth

import "testing"

// Not under the race detector, which has pools forget at random.
func TestTicketAllocates(t *testing.T) {
	c := newCluster(t, secretA)
	s := c.SignTicket(t0, "live/room", 0)
	buf := make([]byte, 0, MaxTicket)
	// The pool is emptied by a collection now and then, hence not exactly zero.
	if n := testing.AllocsPerRun(1000, func() { buf = c.AppendTicket(buf[:0], t0, "live/room", 0) }); n >= 1 {
		t.Errorf("AppendTicket allocates %v times", n)
	}
	if n := testing.AllocsPerRun(1000, func() { _ = c.CheckTicket(t0, "live/room", s) }); n >= 1 {
		t.Errorf("CheckTicket allocates %v times", n)
	}
}
