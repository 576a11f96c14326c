package frontend

import (
	"context"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/sched"
	"millrace/internal/session"
)

// face is what a request was for.
type face uint8

// The faces of HTTP.
const (
	faceRedirect face = iota
	faceResolve
	facePlain
	faceExplain
	faceNone // a path that is none of these
	faces
)

var faceWords = [faces]string{"redirect", "resolve", "plain", "explain", "none"}

// String returns the word used in logs and metrics.
func (f face) String() string { return faceWords[f] }

// outcome says how a request ended: a reason of sched for what was placed, one of
// session for what was refused. So the words are those that are used everywhere.
type outcome uint8

var (
	placements = len(sched.Reasons())
	outcomes   = placements + len(session.Reasons())
)

func placedAs(r sched.Reason) outcome { return outcome(r) }

func refusedFor(r session.Reason) outcome { return outcome(placements + int(r)) }

// String returns the word of o.
func (o outcome) String() string {
	if int(o) < placements {
		return sched.Reason(o).String()
	}
	return session.Reason(int(o) - placements).String()
}

// httpStats counts. It is safe from any goroutine.
type httpStats struct {
	counts [faces][]atomic.Uint64 // by outcome
	told   [faces][]uint64        // of the counts of refusals, what the log has; owned by report
	newest [faces][]atomic.Pointer[refused]
}

// refused is one of the requests that were turned away since the last report.
type refused struct {
	peer netip.Addr
	path string // without the query, which holds credentials
	text string
}

func newHTTPStats() *httpStats {
	s := &httpStats{}
	for f := range s.counts {
		s.counts[f] = make([]atomic.Uint64, outcomes)
		s.told[f] = make([]uint64, outcomes)
		s.newest[f] = make([]atomic.Pointer[refused], outcomes)
	}
	return s
}

func (s *httpStats) placed(f face, r sched.Reason) { s.counts[f][placedAs(r)].Add(1) }

// maxLogged is how much of a path is logged.
const maxLogged = 256

func (s *httpStats) refused(f face, r *refusal, ctx *fasthttp.RequestCtx) {
	s.counts[f][r.reason].Add(1)
	if p := &s.newest[f][r.reason]; p.Load() == nil {
		path, _ := target(ctx)
		p.Store(&refused{addrOf(ctx.RemoteAddr()), string(path[:min(len(path), maxLogged)]), r.text})
	}
}

// HTTPCount is how many requests ended in one way.
type HTTPCount struct {
	Face   string // redirect, resolve, plain, explain or none
	Reason string // of sched or session
	Count  uint64
}

// Stats returns the counts that are not zero.
func (h *HTTP) Stats() []HTTPCount {
	var out []HTTPCount
	for f := range faces {
		for o := range outcomes {
			if n := h.stats.counts[f][o].Load(); n > 0 {
				out = append(out, HTTPCount{f.String(), outcome(o).String(), n})
			}
		}
	}
	return out
}

// reportEvery is how often refusals are logged: a line for each face and reason, with
// one of them as an example, so that a flood costs as little as one.
const reportEvery = 10 * time.Second

func (s *httpStats) run(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.report(log)
		case <-ctx.Done():
			s.report(log)
			return
		}
	}
}

func (s *httpStats) report(log *slog.Logger) {
	for f := range faces {
		for o := range outcomes {
			r := s.newest[f][o].Swap(nil)
			n := s.counts[f][o].Load()
			count := n - s.told[f][o]
			s.told[f][o] = n
			if r != nil {
				log.Info("requests refused", "face", f.String(), "reason", outcome(o).String(), "count", max(count, 1),
					"peer", r.peer, "path", r.path, "detail", r.text)
			}
		}
	}
}
