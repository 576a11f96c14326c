package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Bounds of what is done at once.
const (
	maxRescued = 20 // edits of one document that are given new numbers
	maxTries   = 5  // when somebody else changes a document in the middle
)

// look makes the two equal, after Redis has answered or has not.
func (c *Cached) look(ctx context.Context, state map[string]string, err error) {
	defer c.once.Do(func() { close(c.looked) })
	c.syncing <- struct{}{}
	defer func() { <-c.syncing }()
	if err == nil {
		err = c.sync(ctx, state)
	}
	if ctx.Err() != nil {
		return
	}
	was := c.away.Load()
	switch {
	case err != nil && was == nil:
		c.log.Warn("redis is away: documents can be read, not edited, and the last plan stays in use", "error", err)
		c.away.Store(&away{err, time.Now()})
		return
	case err != nil:
		c.away.Store(&away{err, was.since})
		return
	case was != nil:
		c.log.Info("redis is back", "away", time.Since(was.since).Round(time.Millisecond))
		c.away.Store(nil)
	}
	if was != nil || c.last == nil { // it may be another one
		c.checkPolicy(ctx)
	}
	changes(c.last, state, func(ch Change) {
		if ch.Kind != Documents {
			c.local.hub.tell(ch)
		}
	})
	c.last = state
	if err := c.fill(ctx); err != nil {
		c.log.Debug("a history cannot be completed yet", "error", err) // the next look tells why
	}
}

// sync brings over what is new on either side: the newest version of each document, the
// origin, publications. The caller holds syncing.
func (c *Cached) sync(ctx context.Context, state map[string]string) error {
	if err := c.syncOrigin(ctx, state["origin"]); err != nil {
		return err
	}
	if fence, err := parseNumber(state["fence"]); err == nil {
		c.local.seen(Fence(fence))
	}
	heads := map[string]string{}
	numbers := map[string]string{}
	for field, value := range state {
		if key, ok := strings.CutPrefix(field, "d:"); ok {
			heads[key] = value
		} else if kind, ok := strings.CutPrefix(field, "p:"); ok {
			numbers[kind] = value
		}
	}
	newest := c.local.newest()
	for key := range newest {
		if _, ok := heads[key]; !ok {
			heads[key] = "" // Redis does not have it
		}
	}
	for key, theirs := range heads {
		if history := "h:" + key; c.last == nil || state[history] != c.last[history] {
			c.partial[key] = true // at first: this program may have been ended before it had everything
		}
		if headOf(newest[key]).String() != theirs {
			if err := c.syncDocument(ctx, key); err != nil {
				return err
			}
		}
	}
	return c.syncPublished(ctx, numbers)
}

// syncOrigin takes the older of the two origins.
func (c *Cached) syncOrigin(ctx context.Context, theirs string) error {
	mine := c.local.knownOrigin()
	if mine == theirs {
		return nil
	}
	if mine != "" {
		var err error
		if theirs, err = c.remote.join(ctx, mine, true); err != nil {
			return err
		}
	}
	_, err := c.local.adoptOrigin(theirs)
	c.written(err)
	return nil
}

// syncPublished takes the newer of two publications. numbers has those in Redis, by kind.
func (c *Cached) syncPublished(ctx context.Context, numbers map[string]string) error {
	mine := map[string]Published{}
	for _, p := range c.local.allPublished() {
		mine[p.Kind] = p
		if _, ok := numbers[p.Kind]; !ok {
			numbers[p.Kind] = "0"
		}
	}
	for kind, s := range numbers {
		theirs, err := parseNumber(s)
		if err != nil {
			return c.remote.strange("publication " + kind)
		}
		switch p := mine[kind]; {
		case theirs > p.Number:
			p, err := c.remote.Published(ctx, kind)
			if err != nil && !errors.Is(err, ErrNotFound) {
				return err
			}
			if err == nil {
				c.local.takePublished(p)
			}
		case theirs < p.Number:
			lost, err := c.remote.restore(ctx, p)
			if err != nil {
				return err
			}
			if lost { // it may have been published since this look
				c.gave("what was published last", "kind", kind, "number", p.Number)
			}
		}
	}
	return nil
}

// syncDocument makes the newest version of a document the same on both sides. The
// caller holds syncing.
func (c *Cached) syncDocument(ctx context.Context, key string) error {
	c.partial[key] = true
	c.unsure(key)
	for range maxTries {
		theirs, forgotten, err := c.remote.history(ctx, key, MaxHistory)
		if err != nil {
			return err
		}
		m := compare(c.local.versions(key), theirs, forgotten)
		var changed *changedError
		switch err := c.settle(ctx, key, m); {
		case errors.As(err, &changed): // another router was faster: look again
		default:
			return err
		}
	}
	return fmt.Errorf("%s: %w: it is changed again and again", key, ErrUnavailable)
}

// unsure makes the next look compare the history of a document, also when Redis is then
// what it was at the last look: it may have been given back an old copy of itself.
func (c *Cached) unsure(key string) { delete(c.last, "h:"+key) }

// settle does what m says. The error is a *changedError when Redis has something else
// by now.
func (c *Cached) settle(ctx context.Context, key string, m match) error {
	switch m.way {
	case wayBehind:
		if err := c.remote.putBack(ctx, m.theirs, c.local.forgotten(key), m.mine); err != nil {
			return err
		}
		c.gave("a document", "document", key, "versions", len(m.mine))
		return nil
	case wayAhead, wayForked:
		newest, err := c.remote.version(ctx, key, m.theirs.number)
		if errors.Is(err, ErrNotFound) || err == nil && newest.ID != m.theirs.id {
			return &changedError{}
		}
		if err != nil {
			return err
		}
		add := []version{newest}
		if m.way == wayForked {
			if add = rescue(m.mine, newest); len(add) > 1 {
				if err := c.remote.put(ctx, m.theirs, add...); err != nil {
					return err
				}
				c.log.Warn("edits that redis had lost are in the history again, and not in use: look whether they are still wanted",
					"document", key, "edits", len(add)-1, "from", add[0].Version, "in_use", add[len(add)-1].Version)
			}
		}
		if m.cut {
			c.written(c.local.cut(key, m.common))
		}
		for _, v := range add {
			c.keep(v)
		}
	}
	return nil
}

// gave tells that Redis has got what this router keeps and Redis had not: it has lost it,
// or, when this router has only begun, may never have had it. The caller holds syncing.
func (c *Cached) gave(what string, args ...any) {
	text := "put back into redis what it had lost: " + what
	if c.last == nil {
		text = "redis did not have what this router keeps, and has it now: " + what
	}
	c.log.Info(text, args...)
}

// keep writes a version to the copy. Redis has it, so it is not lost when that fails.
func (c *Cached) keep(v version) { c.written(c.local.keep(v)) }

// written tells of it, once, when the copy cannot be written.
func (c *Cached) written(err error) {
	if err != nil && !c.failing {
		c.log.Error("the copy of redis cannot be written: what redis loses now, this router does not have", "error", err)
	}
	c.failing = err != nil
}
