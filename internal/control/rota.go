package control

import (
	"errors"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"
)

// rota is whose turn it is among servers of which one will do. It belongs to one
// goroutine.
type rota struct {
	servers            []string
	first              uint32 // which one the node begins with, of however many
	retryMin, retryMax time.Duration

	turn     int             // which one is asked
	failures int             // since the last answer
	told     map[string]told // of each server, the last failure that was logged
	begun    time.Time       // of the first failure, if there was no answer before
	settled  bool            // there was an answer
}

// told is a failure that was logged.
type told struct {
	outcome Outcome
	level   slog.Level
}

// grace is for how long after a start it is nothing to worry about when a server has no
// answer yet: programs that are started together take that long to find one another.
const grace = 5 * time.Second

// severity is the level of a failure at a program that has begun its work so long ago,
// without an answer so far.
func severity(since time.Duration) slog.Level {
	if since < grace {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// newRota begins with another server on each node, so that they share the work.
func newRota(node string, servers []string, retryMin, retryMax time.Duration) rota {
	h := fnv.New32a()
	h.Write([]byte(node))
	r := rota{first: h.Sum32(), retryMin: retryMin, retryMax: retryMax, told: map[string]told{}}
	r.change(servers)
	return r
}

// change puts servers in the place of those that there were. It stays the turn of the
// one that has it, if that is still there.
func (r *rota) change(servers []string) {
	turn := int(r.first % uint32(len(servers)))
	if len(r.servers) > 0 {
		if i := slices.Index(servers, r.server()); i >= 0 {
			turn = i
		}
	}
	r.servers, r.turn, r.failures = servers, turn, 0
}

// newServers returns what may take the place of the servers of a program that runs.
func newServers(servers []string) ([]string, error) {
	if len(servers) == 0 {
		return nil, errors.New("servers is empty: name at least one")
	}
	return slices.Clone(servers), checkServers(servers)
}

// server returns the one to ask.
func (r *rota) server() string { return r.servers[r.turn] }

// answered notes an answer, and reports whether a failure was logged since the last.
func (r *rota) answered() (again bool) {
	again = len(r.told) > 0
	clear(r.told)
	r.failures, r.settled = 0, true
	return again
}

// welcome notes an answer, and returns the line that the log should have of it: what, of
// the first one; what with "again" of one after a failure that was logged; none of others.
func (r *rota) welcome(what string) string {
	first := !r.settled
	again := r.answered()
	switch {
	case first:
		return what
	case again:
		return what + " again"
	}
	return ""
}

// failed notes that the server failed at now and goes on to the next. It reports whether
// that is worth a line in the log, and of which level: a server that is merely early will
// answer.
func (r *rota) failed(now time.Time, o Outcome) (level slog.Level, news bool) {
	if r.begun.IsZero() {
		r.begun = now
	}
	if level = slog.LevelWarn; !r.settled {
		level = severity(now.Sub(r.begun))
	}
	server := r.server()
	r.failures++
	r.turn = (r.turn + 1) % len(r.servers)
	if last, ok := r.told[server]; o == Early || ok && last.outcome == o && last.level >= level {
		return level, false
	}
	r.told[server] = told{o, level}
	return level, true
}

// round reports whether all servers have failed since one was last paused for.
func (r *rota) round() bool { return r.failures%len(r.servers) == 0 }

// pause returns how long to wait after all of them have failed: longer and longer, and
// shortened by chance.
func (r *rota) pause() time.Duration {
	d := r.retryMin
	for range min(r.failures/len(r.servers)-1, 20) {
		d = min(2*d, r.retryMax)
	}
	return d/2 + jitter(d/2)
}

// jitter returns a time of up to d, by chance.
func jitter(d time.Duration) time.Duration { return rand.N(d + 1) }
