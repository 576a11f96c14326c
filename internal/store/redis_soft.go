package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Announce is that of a [Store].
func (r *Redis) Announce(ctx context.Context, entries ...Entry) error {
	bytes := 0
	for _, e := range entries {
		if err := checkEntry(e); err != nil {
			return err
		}
		bytes += len(e.Body)
	}
	if len(entries) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout+bodyTime(bytes))
	defer cancel()
	_, err := r.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for _, e := range entries {
			p.Set(ctx, r.key("entry", e.Kind, e.Key), e.Body, e.TTL)
			p.SAdd(ctx, r.key("entries", e.Kind), e.Key)
			p.HIncrBy(ctx, r.key("state"), "e:"+e.Kind, 1)
		}
		p.Publish(ctx, r.key("changed"), "")
		return nil
	})
	if err != nil {
		return r.fault("announce", err)
	}
	return nil
}

// Entries is that of a [Store].
func (r *Redis) Entries(ctx context.Context, kind string) ([]Entry, error) {
	out, err := r.ask(ctx, maxSoft, scriptEntries, []string{r.key("entries", kind)}, r.key("entry", kind, ""), maxSoft).Slice()
	if err != nil {
		return nil, r.fault("entries of "+kind, err)
	}
	if len(out)%3 != 0 {
		return nil, r.strange("entries of " + kind)
	}
	entries := make([]Entry, 0, len(out)/3)
	for i := 0; i < len(out); i += 3 {
		key, left, body, ok := three(out[i : i+3])
		ms, err := strconv.ParseInt(left, 10, 64)
		e := Entry{Kind: kind, Key: key, Body: []byte(body), TTL: time.Duration(ms) * time.Millisecond}
		if !ok || err != nil || ms > maxTTL.Milliseconds() || checkEntry(e) != nil {
			return nil, r.strange("entries of " + kind)
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Key, b.Key) })
	return entries, nil
}

// take is the Lease of a [Store], for one who has seen a fence.
func (r *Redis) take(ctx context.Context, who string, ttl time.Duration, seen Fence) (Fence, bool, error) {
	if err := checkLease(who, ttl); err != nil {
		return 0, false, err
	}
	out, err := r.ask(ctx, 0, scriptLease, []string{r.key("state"), r.key("lease")}, who, ttl.Milliseconds(), uint64(seen)).Slice()
	if err != nil {
		return 0, false, r.fault("lease", err)
	}
	if len(out) != 2 {
		return 0, false, r.strange("lease")
	}
	text, _ := out[0].(string)
	fence, err := parseNumber(text)
	if err != nil {
		return 0, false, r.strange("lease")
	}
	return Fence(fence), out[1] == int64(1), nil
}

// Release is that of a [Store].
func (r *Redis) Release(ctx context.Context, who string) error {
	if err := r.ask(ctx, 0, scriptRelease, []string{r.key("lease")}, who).Err(); err != nil {
		return r.fault("release", err)
	}
	return nil
}

// publish is the Publish of a [Store], for one who has seen a number.
func (r *Redis) publish(ctx context.Context, fence Fence, kind string, body []byte, seen uint64) (Published, error) {
	if err := checkPublish(kind, body); err != nil {
		return Published{}, err
	}
	p := Published{Kind: kind, Fence: fence, At: time.Now().UTC(), Body: slices.Clone(body)}
	out, err := r.ask(ctx, len(body), scriptPublish, r.pubKeys(kind),
		kind, uint64(fence), p.At.Format(time.RFC3339Nano), body, seen).Text()
	if err != nil {
		return Published{}, r.fault("publish "+kind, err)
	}
	if out == "0" {
		return Published{}, fenced(kind, fence)
	}
	if p.Number, err = parseNumber(out); err != nil {
		return Published{}, r.strange("publish " + kind)
	}
	return p, nil
}

func (r *Redis) pubKeys(kind string) []string {
	return []string{r.key("state"), r.key("pub", kind), r.key("changed")}
}

// restore puts back what was published, if Redis has an older one or none, and reports
// whether it was so.
func (r *Redis) restore(ctx context.Context, p Published) (lost bool, err error) {
	done, err := r.ask(ctx, len(p.Body), scriptRestore, r.pubKeys(p.Kind),
		p.Kind, p.Number, uint64(p.Fence), p.At.Format(time.RFC3339Nano), p.Body).Int()
	if err != nil {
		return false, r.fault("put back "+p.Kind, err)
	}
	return done == 1, nil
}

// Published is that of a [Store].
func (r *Redis) Published(ctx context.Context, kind string) (Published, error) {
	what := "publication " + kind
	out, err := r.ask(ctx, MaxBody, scriptPublished, []string{r.key("pub", kind)}, MaxBody).StringSlice()
	if err != nil {
		return Published{}, r.fault(what, err)
	}
	if len(out) == 0 {
		return Published{}, fmt.Errorf("%s: %w", what, ErrNotFound)
	}
	if len(out) != 4 {
		return Published{}, r.strange(what)
	}
	p := Published{Kind: kind, Body: []byte(out[3])}
	number, err1 := parseNumber(out[0])
	fence, err2 := parseNumber(out[1])
	at, err3 := time.Parse(time.RFC3339Nano, out[2])
	if errors.Join(err1, err2, err3) != nil {
		return Published{}, r.strange(what)
	}
	p.Number, p.Fence, p.At = number, Fence(fence), at
	return p, nil
}
