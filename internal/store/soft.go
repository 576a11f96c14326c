package store

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// maxSoft bounds the bodies of all entries: 20,000 nodes told by three routers, in full.
const maxSoft = 256 << 20

// soft is what a Memory has of entries and the lease. It is not safe for several at
// once; a Memory guards it.
type soft struct {
	entries map[entryKey]entry
	bytes   int // of their bodies

	holder string
	end    time.Time // of the lease
	fence  Fence     // of its newest holder
}

type entryKey struct{ kind, key string }

type entry struct {
	body []byte
	end  time.Time
}

// announce keeps an entry, if there is room.
func (s *soft) announce(e Entry, now time.Time) error {
	k := entryKey{e.Kind, e.Key}
	old, known := s.entries[k]
	if !known && len(s.entries) >= maxEntries || s.bytes-len(old.body)+len(e.Body) > maxSoft {
		s.expire(now)
		old, known = s.entries[k]
	}
	if !known && len(s.entries) >= maxEntries {
		return fmt.Errorf("%d entries and one are %w", maxEntries, ErrTooBig)
	}
	all := s.bytes - len(old.body) + len(e.Body)
	if all > maxSoft {
		return fmt.Errorf("entries of %d bytes in all are %w: %d is the most", all, ErrTooBig, maxSoft)
	}
	s.bytes = all
	s.entries[k] = entry{e.Body, now.Add(e.TTL)}
	return nil
}

// expire forgets the entries whose time is over.
func (s *soft) expire(now time.Time) {
	for k, e := range s.entries {
		if !now.Before(e.end) {
			s.forget(k)
		}
	}
}

func (s *soft) forget(k entryKey) {
	s.bytes -= len(s.entries[k].body)
	delete(s.entries, k)
}

// of returns the entries of a kind in the order of their keys.
func (s *soft) of(kind string, now time.Time) []Entry {
	var out []Entry
	for k, e := range s.entries {
		if k.kind == kind && now.Before(e.end) {
			out = append(out, Entry{Kind: kind, Key: k.key, Body: e.body, TTL: e.end.Sub(now)})
		}
	}
	slices.SortFunc(out, func(a, b Entry) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

// raise makes sure that a fence that was given is not given again.
func (s *soft) raise(f Fence) { s.fence = max(s.fence, f) }

// take gives the lease to who, or prolongs it.
func (s *soft) take(who string, ttl time.Duration, now time.Time) (Fence, bool) {
	free := !now.Before(s.end)
	if !free && s.holder != who {
		return s.fence, false
	}
	if free {
		s.holder = who
		s.fence++
	}
	s.end = now.Add(ttl)
	return s.fence, true
}

// Announce implements Store.
func (m *Memory) Announce(_ context.Context, entries ...Entry) error {
	for _, e := range entries {
		if err := checkEntry(e); err != nil {
			return err
		}
	}
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return errClosed
	}
	for _, e := range entries {
		e.Body = bytes.Clone(e.Body)
		if err := m.soft.announce(e, now); err != nil {
			return err
		}
		m.hub.tell(Change{Kind: e.Kind})
	}
	return nil
}

// merge keeps entries that were read elsewhere, without telling of them.
func (m *Memory) merge(entries []Entry) error {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range entries {
		if err := m.soft.announce(e, now); err != nil {
			return err
		}
	}
	return nil
}

// seen notes a fence that was given elsewhere, and returns the highest.
func (m *Memory) seen(f Fence) Fence {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.soft.raise(f)
	return m.soft.fence
}

// Entries implements Store.
func (m *Memory) Entries(_ context.Context, kind string) ([]Entry, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.soft.of(kind, time.Now()), nil
}

// Lease implements Store.
func (m *Memory) Lease(_ context.Context, who string, ttl time.Duration) (Fence, bool, error) {
	if err := checkLease(who, ttl); err != nil {
		return 0, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return m.soft.fence, false, errClosed
	}
	fence, held := m.soft.take(who, ttl, time.Now())
	return fence, held, nil
}

// Release implements Store.
func (m *Memory) Release(_ context.Context, who string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.soft.holder == who {
		m.soft.end = time.Time{}
	}
	return nil
}
