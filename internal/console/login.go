package console

import (
	"net/netip"
	"sync"
	"time"
)

// Bounds of log-ins. An address is usually one person; a name is tried by everybody.
const (
	loginBurst    = 10
	loginInterval = 30 * time.Second
	nameBurst     = 20
	nameInterval  = 30 * time.Second
	remembered    = 10_000 // addresses, names, and users at addresses
	// hashing is how many passwords are compared at once: 0.2 s of one core each.
	hashing  = 2
	maxQueue = 32 // that wait for it
)

// logins keeps people from guessing.
type logins struct {
	addresses, names *limiter
	turns            chan struct{} // capacity hashing, never closed
	queue            chan struct{} // capacity hashing and maxQueue, never closed

	// Guarded by mu.
	mu    sync.Mutex
	known recent[struct{}] // a user and an address that belong together
}

func newLogins() *logins {
	return &logins{
		addresses: newLimiter(loginBurst, loginInterval, remembered),
		names:     newLimiter(nameBurst, nameInterval, remembered),
		known:     newRecent[struct{}](remembered),
		turns:     make(chan struct{}, hashing), queue: make(chan struct{}, hashing+maxQueue),
	}
}

// login checks a password.
func (l *logins) login(s *settings, now time.Time, from netip.Addr, name, password string) *refusal {
	if len(s.users) == 0 {
		return refuse(NoUsers, "nobody can log in: the configuration of the router names no user in console.users; make a hash with router hash-password")
	}
	if len(name) > maxName {
		return refuse(BadRequest, "name is longer than %d bytes", maxName)
	}
	address := block(from)
	friend := l.isKnown(name, address)
	if wait := l.addresses.take(now, address); wait > 0 {
		return tooMany("too many log-ins from this address", wait)
	}
	if !friend {
		if wait := l.names.take(now, name); wait > 0 {
			return tooMany("too many log-ins for this name from addresses that it was not used from before", wait)
		}
	}
	right, ok := l.compare(s, name, password)
	if !ok {
		return tooMany("too many log-ins at once", time.Second)
	}
	if !right {
		return refuse(WrongPassword, "name or password is wrong")
	}
	l.addresses.giveBack(address)
	if !friend {
		l.names.giveBack(name)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known.get(pair(name, address))
	return nil
}

// pair is a key of a name from an address. No address has a line end.
func pair(name, address string) string { return address + "\n" + name }

func (l *logins) isKnown(name, address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known.has(pair(name, address))
}

// compare compares a password when it is its turn; ok is false if too many wait.
func (l *logins) compare(s *settings, name, password string) (right, ok bool) {
	select {
	case l.queue <- struct{}{}:
	default:
		return false, false
	}
	defer func() { <-l.queue }()
	l.turns <- struct{}{}
	defer func() { <-l.turns }()
	u := s.users[name]
	if u == nil {
		Matches(s.decoy, password)
		return false, true
	}
	return Matches(u.PasswordHash, password), true
}

func tooMany(what string, wait time.Duration) *refusal {
	seconds := max(1, int((wait+time.Second-1)/time.Second))
	r := refuse(TooMany, "%s: try again in %d s", what, seconds)
	r.more = retry{seconds}
	return r
}

// retry is what a refusal tells of when to come again.
type retry struct {
	RetryAfter int `json:"retry_after"` // seconds
}
