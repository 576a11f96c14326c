package frontend

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"
	"sync/atomic"
	"time"
)

// Response rate limiting keeps the server from being used to flood somebody whose
// address is written into queries. Each network has a bucket of answers and one of
// errors; when a bucket is empty, every so many replies are short hints instead, so
// that who really asks comes back over TCP, or with a cookie, and has no bucket then.
//
// A bucket is one word: when it will be full again (the generic cell rate algorithm).
// So a bucket that is full is as good as none, its place can be taken without a
// loss, and a table of fixed size does. All workers share the table without a lock.
//
//	tag of the key 16 | Unix time in microseconds, cut to 48 bits, when the bucket is full
type rateLimiter struct {
	// Fixed at construction.
	seed maphash.Seed // so that nobody can choose whom to share a place with

	// Safe from any goroutine.
	table  []bucketSet
	over   atomic.Uint64 // replies over the rate
	newest atomic.Uint64 // network of the newest of them
}

// bucketSet is where a key can be, one cache line.
type bucketSet [8]atomic.Uint64

const (
	tagShift = 48
	timeMask = 1<<tagShift - 1

	// ratePrefix4 and ratePrefix6 are the networks that share a bucket: what one
	// victim, or one resolver with its many senders, has.
	ratePrefix4 = 24
	ratePrefix6 = 56
)

// replyClass is what a reply is counted as.
type replyClass uint8

const (
	classAnswer replyClass = iota // of a name that is served
	classError                    // all else: names that do not exist, refusals, faults
)

// rate is how much a bucket lets through.
type rate struct {
	interval uint64 // microseconds between two replies; 0 for no limit
	burst    uint64 // microseconds worth of replies that may come at once
}

// burstTime is how many seconds worth of replies may come at once: as much as a
// resolver asks again when it has lost its cache.
const burstTime = 2 * time.Second

func perSecond(n int) rate {
	if n == 0 {
		return rate{}
	}
	return rate{interval: max(uint64(time.Second/time.Microsecond)/uint64(n), 1), burst: uint64(burstTime / time.Microsecond)}
}

// newRateLimiter returns a rateLimiter with room for about size networks that are over or
// near their rate at the same time.
func newRateLimiter(size int) *rateLimiter {
	sets := 1
	for sets*len(bucketSet{}) < size {
		sets *= 2
	}
	return &rateLimiter{seed: maphash.MakeSeed(), table: make([]bucketSet, sets)}
}

// rateKey is whose bucket it is.
type rateKey struct {
	network uint64 // its bits, for IPv4 with v4Network
	class   replyClass
}

const v4Network = 1 << 63

func newRateKey(client netip.Addr, class replyClass) rateKey {
	if client.Is4() {
		a := client.As4()
		return rateKey{v4Network | uint64(a[0])<<16 | uint64(a[1])<<8 | uint64(a[2]), class}
	}
	a := client.As16()
	var n uint64
	for _, b := range a[:ratePrefix6/8] {
		n = n<<8 | uint64(b)
	}
	return rateKey{n, class}
}

// prefix is the network of a key.
func (k rateKey) prefix() netip.Prefix {
	var a [16]byte
	if k.network&v4Network != 0 {
		binary.BigEndian.PutUint32(a[:], uint32(k.network)<<(32-ratePrefix4))
		return netip.PrefixFrom(netip.AddrFrom4([4]byte(a[:])), ratePrefix4)
	}
	binary.BigEndian.PutUint64(a[:], k.network<<(64-ratePrefix6))
	return netip.PrefixFrom(netip.AddrFrom16(a), ratePrefix6)
}

// allow takes one reply out of the bucket of key, if it has one.
func (l *rateLimiter) allow(now time.Time, key rateKey, r rate) bool {
	if r.interval == 0 {
		return true
	}
	h := maphash.Comparable(l.seed, key)
	tag := h &^ timeMask
	set := &l.table[h&uint64(len(l.table)-1)]
	at := uint64(now.UnixMicro()) & timeMask
	for {
		slot, word := set.find(tag, at, r.burst)
		full := at
		if word&^timeMask == tag {
			full = fullAt(word, at, r.burst)
		}
		if full += r.interval; full > at+r.burst {
			return false
		}
		if slot.CompareAndSwap(word, tag|full&timeMask) {
			return true
		}
	}
}

// fullAt is when the bucket in word is full: now, if it was already, and if the time
// in it is none that it can have, because the clock was set or 48 bits were over.
func fullAt(word, at, burst uint64) uint64 {
	if full := word & timeMask; full > at && full <= at+burst {
		return full
	}
	return at
}

// find returns the slot of tag. If there is none, it returns the one whose bucket
// is full, or will be first: that one loses the least.
func (s *bucketSet) find(tag, at, burst uint64) (*atomic.Uint64, uint64) {
	var best *atomic.Uint64
	var bestWord uint64
	first := ^uint64(0)
	for i := range s {
		word := s[i].Load()
		if word&^timeMask == tag {
			return &s[i], word
		}
		if full := fullAt(word, at, burst); full < first {
			best, bestWord, first = &s[i], word, full
		}
	}
	return best, bestWord
}

// hint counts a reply over the rate and reports whether it is to be a hint: every so
// many are; with 0 none is.
func (l *rateLimiter) hint(key rateKey, every int) bool {
	l.newest.Store(key.network)
	n := l.over.Add(1)
	return every > 0 && n%uint64(every) == 0
}

// held returns how many replies were over their rate, and of which network the newest
// one was.
func (l *rateLimiter) held() (uint64, netip.Prefix) {
	return l.over.Load(), rateKey{network: l.newest.Load()}.prefix()
}
