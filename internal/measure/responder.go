package measure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"millrace/internal/auth"
	"millrace/internal/session"
)

// ResponderConfig says how much a [Responder] answers. Start from
// [DefaultResponderConfig].
type ResponderConfig struct {
	// PerSource is how many packets a second of one source address are answered.
	PerSource int
	// Total is how many packets a second are answered.
	Total int
}

// DefaultResponderConfig answers what two thousand probers ask, at 10 µs each with a
// fifth of a core.
func DefaultResponderConfig() ResponderConfig { return ResponderConfig{PerSource: 200, Total: 20_000} }

// Validate checks every value. Its errors name the key and the accepted range.
func (c ResponderConfig) Validate() error {
	if c.PerSource < 1 || c.PerSource > 1_000_000 {
		return fmt.Errorf("per_source: is %d, must be 1 to 1000000", c.PerSource)
	}
	if c.Total < 1 || c.Total > 1_000_000 {
		return fmt.Errorf("total: is %d, must be 1 to 1000000", c.Total)
	}
	return nil
}

// Responder answers the probes of other nodes. All methods may be called from any
// goroutine.
type Responder struct {
	// Fixed at construction.
	cfg     ResponderConfig
	self    string
	cluster *auth.Cluster
	log     *slog.Logger

	// Safe from any goroutine.
	answered atomic.Uint64
	refused  [refusals]atomic.Uint64
}

// NewResponder returns a Responder for the node self. It starts nothing.
func NewResponder(cfg ResponderConfig, self string, cluster *auth.Cluster, log *slog.Logger) (*Responder, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if !auth.ValidNodeID(self) {
		return nil, fmt.Errorf("%q is not the id of a node", self)
	}
	return &Responder{cfg: cfg, self: self, cluster: cluster, log: log}, nil
}

// ResponderStats is a copy of the figures of a [Responder].
type ResponderStats struct {
	Answered uint64             `json:"answered"`
	Refused  map[Refusal]uint64 `json:"refused"` // by reason
}

// Stats returns the figures of now.
func (r *Responder) Stats() ResponderStats {
	st := ResponderStats{Answered: r.answered.Load(), Refused: make(map[Refusal]uint64, refusals)}
	for i := range r.refused {
		st.Refused[Refusal(i)] = r.refused[i].Load()
	}
	return st
}

// Run answers what comes on conn until ctx ends, and then closes conn. It returns an error
// when the socket fails.
func (r *Responder) Run(ctx context.Context, conn *net.UDPConn) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer conn.Close()
	// Where a node has several addresses, an answer from another one than was asked is not
	// known for one. Without this the system chooses, and is mostly right.
	_ = tellDestination(conn)
	limit := newLimiter(r.cfg.PerSource, r.cfg.Total)
	var buf [packetSize + 1]byte // a byte more shows what is too long
	var oob [oobSize]byte
	var ill illness
	for {
		n, m, _, from, err := conn.ReadMsgUDPAddrPort(buf[:], oob[:])
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("probes: %w", err)
		case err != nil: // mostly of an answer that did not arrive
			pause, tell := ill.failed()
			if tell {
				r.log.Error("probes of other nodes cannot be read: links to this node are taken for bad until they can", "err", err)
			}
			if !sleep(ctx, pause) {
				return nil
			}
			continue
		}
		if ill.over() {
			r.log.Info("probes of other nodes are answered again")
		}
		out, why, ok := r.reply(time.Now(), limit, from, buf[:n])
		if !ok {
			r.refused[why].Add(1)
			continue
		}
		if _, _, err := conn.WriteMsgUDPAddrPort(out, sourceFrom(oob[:m]), from); err == nil {
			r.answered.Add(1)
		}
	}
}

// illness is how often a socket has failed since it worked.
type illness int

const (
	// illFrom is how many failures in a row are no accident.
	illFrom = 10
	// illPause bounds the pause after each: a socket that is well again is soon read.
	illPause = time.Second
)

// failed counts a failure. It returns how long to wait before the next try, and whether
// the failures are worth a line in the log now.
func (i *illness) failed() (pause time.Duration, tell bool) {
	*i++
	if *i < illFrom {
		return 0, false
	}
	return min(time.Millisecond<<min(*i-illFrom, 20), illPause), *i == illFrom
}

// over notes that the socket works, and reports whether the log tells that it did not.
func (i *illness) over() bool {
	was := *i >= illFrom
	*i = 0
	return was
}

// sleep waits, and reports whether ctx is not over.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// reply returns the answer to a packet, or why there is none. The cheap questions come
// first.
func (r *Responder) reply(now time.Time, limit *limiter, from netip.AddrPort, b []byte) ([]byte, Refusal, bool) {
	asked, err := parse(b)
	if err != nil || asked.kind != question {
		return nil, Malformed, false
	}
	if !limit.take(now, from.Addr()) {
		return nil, TooMany, false
	}
	if err := asked.verify(now, r.cluster, r.self, nil); err != nil {
		if denied, ok := errors.AsType[*auth.Denied](err); ok && denied.Reason == session.ClockSkew {
			return nil, ClockSkew, false
		}
		return nil, BadSignature, false
	}
	out := packet{kind: answer, index: asked.index, train: asked.train}
	out.sign(now, r.cluster, r.self, &asked)
	return out.append(b[:0]), 0, true
}
