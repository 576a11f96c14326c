package rtmp

import (
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

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

// paces bound what a connection may send.
type paces struct{ bytes, commands, controls *rate.Limiter }

func newPaces() paces {
	return paces{
		bytes:    rate.NewLimiter(guestByteRate, guestBytes),
		commands: rate.NewLimiter(0, commandBurst), // for those before the first role, however long it takes
		controls: rate.NewLimiter(controlRate, controlBurst),
	}
}

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
	if c.pub != nil || c.hand != nil || c.pace.bytes.AllowN(time.Now(), n) {
		return nil
	}
	return faultf(session.BadCommand, "more than %d bytes without a publish", guestBytes)
}

// control counts a message that is neither a command nor media of a publish.
func (c *conn) control() error {
	if c.pace.controls.Allow() {
		return nil
	}
	return faultf(session.ProtocolError, "more than %d messages a second that are neither media nor commands", controlRate)
}

// takes notes a role that the peer has asked for.
func (c *conn) takes(role session.Action) {
	c.role = role.String()
	c.pace.commands.SetLimit(commandRate)
}

// commanded counts a command.
func (c *conn) commanded() error {
	if c.pace.commands.Allow() {
		return nil
	}
	return faultf(session.BadCommand, "more than %d commands, or %d a second", commandBurst, commandRate)
}
