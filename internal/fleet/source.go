package fleet

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"millrace/internal/control"
	"millrace/internal/store"
)

// bundles are what was published for schedulers.
type bundles struct {
	in   atomic.Pointer[bundleIn]
	news broadcast

	adopting sync.Mutex // held while in is replaced
}

// bundleIn is the bundle in force.
type bundleIn struct {
	bundle *control.Bundle
	plain  []byte // as it was published, unpacked
	number uint64
	fence  store.Fence
}

// broadcast tells all who wait.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{} // closed by Broadcast, and made anew
}

// Wait returns a channel that is closed by the next Broadcast.
func (b *broadcast) Wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

// Broadcast wakes all who wait.
func (b *broadcast) Broadcast() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// source gives the bundles that were published to a Keeper.
type source struct{ f *Fleet }

// Source returns the bundles that were published, for a [control.Keeper]. Its Next waits
// for the first one for as long as it takes.
func (f *Fleet) Source() control.Source { return source{f} }

// Next returns a bundle that is not have, when there is one. One that cannot be compiled
// is told of once, and passed over.
func (s source) Next(ctx context.Context, have *control.Bundle) (*control.Bundle, error) {
	faulty := ""
	for {
		news := s.f.bundles.news.Wait()
		if in := s.f.bundles.in.Load(); in != nil && in.bundle.Version.Token != faulty && (have == nil || in.bundle.Version.Token != have.Version.Token) {
			_, err := in.bundle.Compile(have)
			if err == nil {
				return in.bundle, nil
			}
			faulty = in.bundle.Version.Token
			s.f.log.Error("the snapshot for schedulers cannot be used here, the one before stays", "version", in.bundle.Version, "err", err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-news:
		}
	}
}

// Status says which bundle was published last.
func (s source) Status() control.SourceStatus {
	out := control.SourceStatus{Kind: "router", From: s.f.cfg.Router}
	if in := s.f.bundles.in.Load(); in != nil {
		out.Version, out.At = in.bundle.Version, in.bundle.Made
	}
	if fr := s.f.frame.Load(); fr != nil && !fr.store {
		out.At, out.Error = fr.at, "the store cannot be reached"
	}
	return out
}

// Report returns what the heartbeats tell of the edges, as schedulers and edges take it.
func (f *Fleet) Report(now time.Time) *control.Report {
	r := &control.Report{Observer: f.cfg.Router, At: now}
	if fr := f.frame.Load(); fr != nil {
		r.Observations = f.observations(fr)
	}
	return r
}
