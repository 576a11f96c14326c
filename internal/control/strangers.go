package control

import (
	"sync"
	"time"

	"millrace/internal/auth"
)

// strangers remembers of whom the log has told that they are refused: a node that has a
// wrong key asks each second.
type strangers struct {
	mu    sync.Mutex
	since time.Time
	told  map[stranger]bool // since then
}

type stranger struct {
	node, address string
	reason        Refusal
}

const (
	// strangersAgain is when those are told of again that are still refused.
	strangersAgain = 10 * time.Minute
	// maxStrangers bounds the lines in that time: whoever likes may come by any name.
	maxStrangers = 100
)

// news reports whether a refusal is worth a line for operators: somebody has to mend
// something, and has not been told lately.
func (s *strangers) news(now time.Time, node, address string, r Refusal) bool {
	switch r {
	case Unsigned, BadSignature, ClockSkew, TooBig, Absurd, NotYours, IdentityTaken, Replayed, TableFull:
	default:
		return false
	}
	if !auth.ValidNodeID(node) {
		node = ""
	}
	who := stranger{node, address, r}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.since) >= strangersAgain || s.told == nil {
		s.since, s.told = now, map[stranger]bool{}
	}
	if s.told[who] || len(s.told) >= maxStrangers {
		return false
	}
	s.told[who] = true
	return true
}
