package failover

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Failure is how an upstream failed.
type Failure uint8

// The kinds of failure.
const (
	NotFound  Failure = iota // it does not have the stream: asked again after a second, always
	Refused                  // it does not want us, or nobody listens
	Lost                     // the connection broke
	Timeout                  // it did not answer, or sent nothing
	Worse                    // it was tried and was no better than what we had
	Loop                     // it is ourselves, or leads back to us
	Ended                    // the stream is over there
	Unreached                // it is well, but does not get at this stream itself
	OverBound                // it is well, and has another node of its datacenter bring this stream
	failures                 // how many there are
)

// String returns the word used in logs, metrics and the API.
func (f Failure) String() string {
	if f >= failures {
		return "unknown"
	}
	return [failures]string{"not_found", "refused", "lost", "timeout", "worse", "loop", "ended", "unreached", "over_bound"}[f]
}

// MarshalText returns the word of f, for JSON.
func (f Failure) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// How long a failed upstream is left alone.
const (
	notFoundPause = time.Second     // it may get the stream at any time
	worsePause    = 2 * time.Second // so that others have their turn; the policy holds off for longer
	loopPause     = 5 * time.Second
	firstPause    = 500 * time.Millisecond
	// maxPause lets the only upstream of a stream come back within its grace time.
	maxPause = 5 * time.Second
)

// Pool is the ordered upstreams of a session and what is remembered of them.
type Pool struct {
	rand    *rand.Rand
	members []member // in the configured order
	good    string   // the one that worked last
}

type member struct {
	url    string
	until  time.Time // not before
	failed int       // times in a row
	worse  int       // times that it was no better, since it was last good
}

// NewPool returns a pool of urls, the best first. r spreads the pauses of nodes that
// failed together; nil spreads nothing.
func NewPool(urls []string, r *rand.Rand) *Pool {
	p := &Pool{rand: r}
	p.Set(urls)
	return p
}

// Set replaces the list. What is remembered of those that stay is kept, but which one
// worked last counts only as long as the same one is first.
func (p *Pool) Set(urls []string) {
	old := p.members
	if len(old) > 0 && len(urls) > 0 && old[0].url != urls[0] {
		p.good = ""
	}
	p.members = make([]member, 0, len(urls))
	for _, u := range urls {
		if p.find(u) != nil {
			continue
		}
		m := member{url: u}
		if i := slices.IndexFunc(old, func(m member) bool { return m.url == u }); i >= 0 {
			m = old[i]
		}
		p.members = append(p.members, m)
	}
	if p.find(p.good) == nil {
		p.good = ""
	}
}

func (p *Pool) find(url string) *member {
	for i := range p.members {
		if p.members[i].url == url {
			return &p.members[i]
		}
	}
	return nil
}

// Next returns the upstream to dial, of those that are not held off and for which
// busy is false: the one that was found no better least often; of these the one that
// worked last, else the first in order.
func (p *Pool) Next(now time.Time, busy func(url string) bool) (url string, ok bool) {
	var best *member
	for i := range p.members {
		m := &p.members[i]
		if !m.free(now, busy) {
			continue
		}
		if best == nil || m.worse < best.worse || m.worse == best.worse && m.url == p.good {
			best = m
		}
	}
	if best == nil {
		return "", false
	}
	return best.url, true
}

func (m *member) free(now time.Time, busy func(url string) bool) bool {
	return !now.Before(m.until) && (busy == nil || !busy(m.url))
}

// Left returns how many upstreams Next could return one after another.
func (p *Pool) Left(now time.Time, busy func(url string) bool) (n int) {
	for i := range p.members {
		if p.members[i].free(now, busy) {
			n++
		}
	}
	return n
}

// Soonest returns when the first upstream is free again: now if one is, the zero
// time if the pool is empty.
func (p *Pool) Soonest(now time.Time) time.Time {
	var soonest time.Time
	for _, m := range p.members {
		if soonest.IsZero() || m.until.Before(soonest) {
			soonest = m.until
		}
	}
	if len(p.members) > 0 && soonest.Before(now) {
		return now
	}
	return soonest
}

// Good remembers that url works: its slate is clean, and it is asked first.
func (p *Pool) Good(_ time.Time, url string) {
	if m := p.find(url); m != nil {
		*m = member{url: url}
		p.good = url
	}
}

// Failed remembers that url failed, and leaves it alone for a while. When the current
// connection is Lost, those that were only Worse are free at once.
func (p *Pool) Failed(now time.Time, url string, f Failure) {
	m := p.find(url)
	if m == nil {
		return
	}
	switch f {
	case NotFound, Ended, Unreached, OverBound:
		m.until = now.Add(notFoundPause)
		return
	case Loop:
		m.until = now.Add(loopPause)
		return
	case Worse:
		m.until = now.Add(worsePause)
		m.worse++
		return
	case Lost:
		p.forgive()
	}
	if now.Before(m.until) {
		return // another session found out the same; that is no second failure
	}
	pause := min(firstPause<<min(m.failed, 16), maxPause)
	m.failed++
	if p.rand != nil { // by up to a quarter less
		pause -= time.Duration(p.rand.Int64N(int64(pause)/4 + 1))
	}
	m.until = now.Add(pause)
}

// forgive clears those that were only no better than what is lost now.
func (p *Pool) forgive() {
	for i := range p.members {
		if m := &p.members[i]; m.worse > 0 {
			*m = member{url: m.url}
		}
	}
}
