package httpflv

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"millrace/internal/session"
)

// refusalLog keeps the log readable. The first refusal in a second has a line of its
// own, for each reason and protocol; those after it are counted, and told together
// with the newest of them when the second is over.
type refusalLog struct {
	// Guarded by mu.
	mu   sync.Mutex
	held map[refusalKey]refusals
}

// refusalKey is what makes refusals equal.
type refusalKey struct {
	protocol session.Protocol
	reason   session.Reason
}

// refusals are those that wait to be told.
type refusals struct {
	count  int
	newest session.Info
	detail string // what the newest was told
}

// note counts a refusal, and reports whether it is to have a line of its own.
func (l *refusalLog) note(info session.Info, r session.Reason, detail string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = make(map[refusalKey]refusals)
	}
	k := refusalKey{info.Protocol, r}
	h, again := l.held[k]
	if again {
		h = refusals{h.count + 1, info, detail}
	}
	l.held[k] = h
	return !again
}

// report logs what was held back and begins a new second.
func (l *refusalLog) report(log *slog.Logger) {
	l.mu.Lock()
	held := l.held
	l.held = nil
	l.mu.Unlock()
	for k, h := range held {
		if h.count > 0 {
			h.log(log, k.reason)
		}
	}
}

// log writes the line.
func (h refusals) log(log *slog.Logger, r session.Reason) {
	args := []any{"count", h.count, "peer", h.newest.Peer, "protocol", h.newest.Protocol, "reason", r}
	if h.newest.Stream != "" {
		args = append(args, "stream", h.newest.Stream)
	}
	if h.newest.Node != "" {
		args = append(args, "node", h.newest.Node)
	}
	if h.detail != "" {
		args = append(args, "detail", h.detail)
	}
	log.Info("requests refused", args...)
}

// run reports once a second, until ctx ends.
func (l *refusalLog) run(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.report(log)
		case <-ctx.Done():
			l.report(log)
			return
		}
	}
}

// refused counts a request that was turned away, and has it logged. detail is what
// the client was told, if it was told anything.
func (s *Server) refused(info session.Info, r session.Reason, detail string) {
	s.table.Refuse(info.Protocol, r)
	if s.refusals.note(info, r, detail) {
		refusals{1, info, detail}.log(s.log, r)
	}
}
