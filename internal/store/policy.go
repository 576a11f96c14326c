package store

import (
	"context"
	"errors"
	"strings"
)

// keepsAll is the maxmemory-policy of a Redis that throws nothing away when its memory is
// full. With any other documents may be lost, or two routers plan at the same time.
const keepsAll = "noeviction"

// policy returns the maxmemory-policy. INFO says it too, and is allowed in places where
// CONFIG is not.
func (r *Redis) policy(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	text, err := r.client.Info(ctx, "memory").Result()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(text) {
		if policy, ok := strings.CutPrefix(strings.TrimSpace(line), "maxmemory_policy:"); ok {
			return policy, nil
		}
	}
	return "", errors.New("INFO memory does not have maxmemory_policy")
}

// checkPolicy tells of a Redis that does not keep all it has, once as long as it says the
// same. The caller holds syncing.
func (c *Cached) checkPolicy(ctx context.Context) {
	policy, err := c.remote.policy(ctx)
	if ctx.Err() != nil || c.policy != nil && *c.policy == policy {
		return
	}
	c.policy = &policy
	switch {
	case err != nil:
		c.log.Info("redis does not say what it does when its memory is full: see to it that its maxmemory-policy is "+keepsAll, "error", err)
	case policy != keepsAll:
		c.log.Warn("redis throws away what routers keep there when its memory is full: set maxmemory-policy "+keepsAll+
			" in redis.conf, and now with redis-cli CONFIG SET", "maxmemory_policy", policy)
	}
}
