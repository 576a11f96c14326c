package store

import (
	"context"
	"errors"
	"time"
)

// Old versions are copied in goes of this size, since other changes wait meanwhile.
const (
	maxFill     = 32 << 20 // bytes
	maxFillTime = 300 * time.Millisecond
)

// budget is what is left of one go.
type budget struct {
	bytes int
	end   time.Time
}

// spent reports whether it is time to let others in.
func (b *budget) spent() bool { return b.bytes <= 0 || time.Now().After(b.end) }

// fill copies old versions, to either side, until all is equal or the go is over. The
// caller holds syncing.
func (c *Cached) fill(ctx context.Context) error {
	b := &budget{maxFill, time.Now().Add(maxFillTime)}
	for _, key := range sortedKeys(c.partial) {
		theirs, forgotten, err := c.remote.history(ctx, key, MaxHistory)
		if err != nil {
			return err
		}
		if compare(c.local.versions(key), theirs, forgotten).way == wayForked {
			if err := c.syncDocument(ctx, key); err != nil {
				return err
			}
			continue // at the next look
		}
		c.local.forget(key, forgotten)
		done, err := c.fillMine(ctx, key, theirs, b)
		if err == nil && done {
			done, err = c.fillTheirs(ctx, key, theirs, forgotten, b)
		}
		if err != nil || !done {
			return err // the rest at the next look
		}
		delete(c.partial, key)
	}
	return nil
}

// fillMine brings what Redis has of a document into the copy, the newest first.
func (c *Cached) fillMine(ctx context.Context, key string, theirs []version, b *budget) (done bool, err error) {
	byNumber, byID := map[uint64]version{}, map[string]version{}
	for _, v := range c.local.versions(key) {
		byNumber[v.Version], byID[v.ID] = v, v
	}
	for _, v := range theirs {
		if byNumber[v.Version].ID == v.ID {
			continue
		}
		if b.spent() {
			return false, nil
		}
		if same, ok := byID[v.ID]; ok {
			v.Body = same.Body
		} else if v, err = c.remote.version(ctx, key, v.Version); errors.Is(err, ErrNotFound) {
			continue // forgotten meanwhile
		} else if err != nil {
			return false, err
		}
		c.keep(v)
		b.bytes -= len(v.Body)
	}
	return true, nil
}

// fillTheirs puts back into Redis what it lacks below its newest version, and has not
// forgotten on purpose.
func (c *Cached) fillTheirs(ctx context.Context, key string, theirs []version, forgotten uint64, b *budget) (done bool, err error) {
	if len(theirs) == 0 {
		return true, nil
	}
	newest := headOf(theirs[0])
	known := map[uint64]bool{}
	for _, v := range theirs {
		known[v.Version] = true
	}
	mine := c.local.versions(key)
	for i := len(mine) - 1; i >= 0; i-- {
		v := mine[i]
		if known[v.Version] || v.Version > newest.number || v.Version <= forgotten {
			continue
		}
		if b.spent() {
			return false, nil
		}
		c.unsure(key)
		var changed *changedError
		if err := c.remote.put(ctx, newest, v); errors.As(err, &changed) {
			return false, nil
		} else if err != nil {
			return false, err
		}
		b.bytes -= len(v.Body)
	}
	return true, nil
}
