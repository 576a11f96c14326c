package rtmp

import (
	"sync/atomic"
	"time"

	"millrace/internal/session"
)

// What a connection may send besides the media of its own publish. Encoders and
// players need a dozen commands to begin and a few messages a second then: librtmp
// acknowledges a tenth of its window, which is 50 a second at 100 Mbit/s.
const (
	commandBurst, commandRate = 64, 20            // commands; the rate holds from the first role on
	controlBurst, controlRate = 1000, 200         // all other messages, and media that goes nowhere
	guestBytes, guestByteRate = 1 << 20, 16 << 10 // bytes as long as nothing is published
)

// pace is a bucket of what may still come. It begins full. The zero value is one
// that has not begun.
type pace struct {
	left float64
	at   time.Time
}

// take takes n out of a bucket that holds burst and gets rate a second, and reports
// whether there was as much in it.
func (p *pace) take(now time.Time, n, burst, rate float64) bool {
	if p.at.IsZero() {
		p.left = burst
	} else {
		p.left = min(burst, p.left+now.Sub(p.at).Seconds()*rate)
	}
	p.at = now
	if p.left < n {
		return false
	}
	p.left -= n
	return true
}

// paces are the buckets of a connection.
type paces struct{ bytes, commands, controls pace }

// freePartial is what a connection may hold of unfinished messages without being
// counted: more than a picture of 10 Mbit/s has.
const freePartial = 64 << 10

// partials bounds what the unfinished messages of all connections hold together.
// When the bound is reached a connection may still have its even share of it, so
// that those who hold the most are the first who get no more.
type partials struct {
	// Safe from any goroutine.
	most    atomic.Int64
	bytes   atomic.Int64
	holders atomic.Int64 // connections that hold some
}

// move changes what one connection holds from old to held, and reports whether it
// may have that much. If not, nothing is changed.
func (p *partials) move(old, held int) bool {
	total := p.bytes.Add(int64(held - old))
	if old == 0 {
		p.holders.Add(1)
	}
	most := p.most.Load()
	if held > old && total > most && int64(held) > most/max(1, p.holders.Load()) {
		p.bytes.Add(int64(old - held))
		if old == 0 {
			p.holders.Add(-1)
		}
		return false
	}
	if held == 0 {
		p.holders.Add(-1)
	}
	return true
}

// guest counts bytes from the socket of a connection that publishes nothing.
func (c *conn) guest(n int) error {
	if c.pub != nil || c.hand != nil || c.pace.bytes.take(time.Now(), float64(n), guestBytes, guestByteRate) {
		return nil
	}
	return faultf(session.BadCommand, "more than %d bytes without a publish", guestBytes)
}

// control counts a message that is neither a command nor media of a publish.
func (c *conn) control() error {
	if c.pace.controls.take(time.Now(), 1, controlBurst, controlRate) {
		return nil
	}
	return faultf(session.ProtocolError, "more than %d messages a second that are neither media nor commands", controlRate)
}

// commanded counts a command. Before the first role there are commandBurst of them,
// however long it takes.
func (c *conn) commanded() error {
	rate := float64(commandRate)
	if c.role == "" {
		rate = 0
	}
	if c.pace.commands.take(time.Now(), 1, commandBurst, rate) {
		return nil
	}
	return faultf(session.BadCommand, "more than %d commands, or %d a second", commandBurst, commandRate)
}
