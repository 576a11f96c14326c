// Package faultnet is a bad network in user space, for tests and for localcluster:
// relays for TCP and UDP that delay, lose, reorder, slow down, freeze and cut what
// passes, as they are told while it passes.
//
//	          ┌──────────────── link ────────────────┐
//	near ───▶ │ read ─▶ queue: due, bytes ─▶ write   │ ───▶ far (the target)
//	          │ Up: delay, jitter, loss, rate        │
//	     ◀─── │ Down: the same, with its own figures │ ◀───
//	          └──────────────────────────────────────┘
//
// Near is who connects to the link, far is what the link connects to. A [TCP] link
// is for connections, a [UDP] link for datagrams. Both begin as [Config] says and
// return to that with Heal.
//
// What is lost and how much later something comes is drawn from the seed alone, for
// TCP by the position of a byte in its connection: the same bytes meet the same
// losses however they were written. When that happens follows the real clock, or
// the virtual one of testing/synctest, under which [NewTCP] works with any
// connections that live in the bubble.
//
// # What is not like a network
//
// The kernels at both ends see a loopback connection. Congestion control is
// therefore not in play: a loss costs a pause ([Fault.Stall]) and no window. A
// connection is accepted before the target is asked; its first bytes set out one
// round trip later instead, and when the target refuses, near is reset. What near
// sends into a frozen link is acknowledged until the buffers are full.
package faultnet

import (
	"errors"
	"fmt"
	"time"
)

// Fault is what one direction of a link does. The zero value passes everything on
// at once.
type Fault struct {
	// Delay is how much later everything arrives.
	Delay time.Duration
	// Jitter is how much later than Delay it may be, evenly spread. It changes no
	// order.
	Jitter time.Duration
	// Loss is the share of packets that are lost, 0 to 1: datagrams, or every 1,448
	// bytes of a connection.
	Loss float64
	// Stall is how much later the bytes of a lost packet of a connection come, and
	// all behind them. 0 is 200 ms, the least retransmission time-out of Linux.
	Stall time.Duration
	// Reorder is the share of datagrams that are held back for Hold, so that later
	// ones overtake them. Connections have an order and ignore it.
	Reorder float64
	// Hold is for Reorder; 0 is 10 ms.
	Hold time.Duration
	// Rate is how many bytes pass in a second, of all connections together. 0 is no
	// limit.
	Rate int64
	// Buffer is how many bytes are under way at most: of each connection, which is
	// not read meanwhile, or of all datagrams, which are dropped beyond it. 0 is
	// 256 KiB. Less than rate times delay makes the link slower than its rate.
	Buffer int
}

// The values that a zero stands for.
const (
	defaultStall  = 200 * time.Millisecond
	defaultHold   = 10 * time.Millisecond
	defaultBuffer = 256 << 10
)

// Validate checks every value.
func (f Fault) Validate() error {
	var errs []error
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"delay", f.Delay}, {"jitter", f.Jitter}, {"stall", f.Stall}, {"hold", f.Hold}} {
		if d.d < 0 || d.d > time.Minute {
			errs = append(errs, fmt.Errorf("%s is %v: use 0s to 1m", d.name, d.d))
		}
	}
	for _, s := range []struct {
		name  string
		share float64
	}{{"loss", f.Loss}, {"reorder", f.Reorder}} {
		if !(s.share >= 0 && s.share <= 1) {
			errs = append(errs, fmt.Errorf("%s is %v: use 0 to 1", s.name, s.share))
		}
	}
	if f.Rate < 0 || f.Rate > 1<<40 {
		errs = append(errs, fmt.Errorf("rate is %d: use 1 to %d bytes a second, or 0 for no limit", f.Rate, int64(1)<<40))
	}
	if f.Buffer < 0 || f.Buffer > 1<<30 {
		errs = append(errs, fmt.Errorf("buffer is %d: use 1 to %d bytes, or 0 for %d", f.Buffer, 1<<30, defaultBuffer))
	}
	return errors.Join(errs...)
}

// Config is what a link begins with.
type Config struct {
	Seed uint64
	Up   Fault // from near to far
	Down Fault // from far to near
}

// Validate checks both directions.
func (c Config) Validate() error {
	var errs []error
	if err := c.Up.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("up: %w", err))
	}
	if err := c.Down.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("down: %w", err))
	}
	return errors.Join(errs...)
}

// Traffic counts one direction since the link was opened.
type Traffic struct {
	Bytes   uint64 // written to the other side
	Lost    uint64 // packets, by Loss
	Late    uint64 // datagrams, by Reorder
	Dropped uint64 // datagrams, because the buffer was full or the link frozen
}

// Stats is the state of a link.
type Stats struct {
	Up, Down Traffic
	Frozen   bool
	Refusing bool
	Open     int    // connections, or peers that sent datagrams
	Accepted uint64 // connections or peers since the link was opened
	Failed   uint64 // of Accepted: those for which the target could not be reached
}
