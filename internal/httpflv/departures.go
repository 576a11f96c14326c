package httpflv

import (
	"log/slog"
	"time"

	"millrace/internal/session"
)

// departure is what is logged of a viewer that left.
type departure struct {
	info    session.Info
	reason  session.Reason
	bytes   uint64
	skipped uint64
	lasted  time.Duration
}

func departureOf(s *session.Session, r session.Reason) departure {
	return departure{
		info: s.Info, reason: r, bytes: s.Bytes.Load(), skipped: s.Skipped.Load(), lasted: time.Since(s.Info.Started),
	}
}

// leftQueue is how many departures may wait to be logged: a log that blocks must
// not hold up a shard.
const leftQueue = 256

// freeLines is how many departures for one reason have a line each in a second. Those
// after them are counted: a stream that ends must not write ten thousand lines, nor
// must somebody who comes and goes as fast as he can.
const freeLines = 5

// logLater has the end of a session logged without waiting for the log.
func (f *Fanout) logLater(s *session.Session, r session.Reason) {
	select {
	case f.left <- departureOf(s, r):
	default:
		f.unlogged.Add(1)
	}
}

// logDepartures logs until done is closed and nothing waits.
func (f *Fanout) logDepartures(done <-chan struct{}) {
	l := newDepartureLog(f.log)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case d := <-f.left:
			l.left(d)
		case <-tick.C:
			l.report(f.unlogged.Swap(0))
		case <-done:
			for {
				select {
				case d := <-f.left:
					l.left(d)
				default:
					l.report(f.unlogged.Swap(0))
					return
				}
			}
		}
	}
}

// departureLog keeps the log readable. It belongs to one goroutine.
type departureLog struct {
	log    *slog.Logger
	counts map[session.Reason]int // in this second
}

func newDepartureLog(log *slog.Logger) *departureLog {
	return &departureLog{log: log, counts: make(map[session.Reason]int)}
}

// left logs a departure, or counts it.
func (l *departureLog) left(d departure) {
	l.counts[d.reason]++
	if l.counts[d.reason] > freeLines {
		return
	}
	l.log.Info("viewer left", "stream", d.info.Stream, "peer", d.info.Peer, "protocol", d.info.Protocol, "action", d.info.Action,
		"reason", d.reason, "bytes", d.bytes, "skipped", d.skipped, "lasted", d.lasted.Round(time.Millisecond))
}

// report tells what was held back and begins a new second. lost is how many more there
// were whose reason nobody had the time to look at.
func (l *departureLog) report(lost uint64) {
	for r, n := range l.counts {
		if n > freeLines {
			l.log.Info("more viewers left", "reason", r, "count", n-freeLines)
		}
	}
	if lost > 0 {
		l.log.Info("more viewers left than the log could take", "count", lost)
	}
	clear(l.counts)
}
