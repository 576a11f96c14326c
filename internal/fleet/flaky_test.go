package fleet

import (
	"context"
	"sync/atomic"
	"time"

	"millrace/internal/store"
)

// flaky is a store that can be away, for all or for one router.
type flaky struct {
	store.Store
	away    atomic.Bool
	silence atomic.Pointer[string] // a router that cannot reach it
}

var errAway = store.ErrUnavailable

func (s *flaky) fault(who string) error {
	if one := s.silence.Load(); s.away.Load() || one != nil && *one == who {
		return errAway
	}
	return nil
}

func (s *flaky) Announce(ctx context.Context, list ...store.Entry) error {
	if err := s.fault(list[0].Key); err != nil {
		return err
	}
	return s.Store.Announce(ctx, list...)
}

func (s *flaky) Entries(ctx context.Context, kind string) ([]store.Entry, error) {
	if s.away.Load() {
		return nil, errAway
	}
	return s.Store.Entries(ctx, kind)
}

func (s *flaky) Lease(ctx context.Context, who string, ttl time.Duration) (store.Fence, bool, error) {
	if err := s.fault(who); err != nil {
		return 0, false, err
	}
	return s.Store.Lease(ctx, who, ttl)
}

func (s *flaky) Publish(ctx context.Context, fence store.Fence, kind string, body []byte) (store.Published, error) {
	if s.away.Load() {
		return store.Published{}, errAway
	}
	return s.Store.Publish(ctx, fence, kind, body)
}

func (s *flaky) Current(ctx context.Context, key string) (store.Document, error) {
	if s.away.Load() {
		return store.Document{}, errAway
	}
	return s.Store.Current(ctx, key)
}

func (s *flaky) Edit(ctx context.Context, key string, based uint64, body []byte, who store.Author) (store.Document, error) {
	if s.away.Load() {
		return store.Document{}, errAway
	}
	return s.Store.Edit(ctx, key, based, body, who)
}
