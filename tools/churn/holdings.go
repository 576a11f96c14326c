package churn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"millrace/tools/procstat"
)

// Holdings is what a node holds at a moment.
type Holdings struct {
	Descriptors int
	Goroutines  int
	Heap        int64 // live bytes after a collection
	RSS         int64
}

// String is one line.
func (h Holdings) String() string {
	return fmt.Sprintf("%d descriptors, %d goroutines, %.3f MiB of heap, %.1f MiB resident",
		h.Descriptors, h.Goroutines, float64(h.Heap)/(1<<20), float64(h.RSS)/(1<<20))
}

// Within reports whether h is not above base by more than the given share, in any
// of descriptors, goroutines and heap.
func (h Holdings) Within(base Holdings, share float64) bool {
	ok := func(is, was float64) bool { return is <= was*(1+share) }
	return ok(float64(h.Descriptors), float64(base.Descriptors)) &&
		ok(float64(h.Goroutines), float64(base.Goroutines)) && ok(float64(h.Heap), float64(base.Heap))
}

// Least returns the lesser of each.
func (h Holdings) Least(o Holdings) Holdings {
	return Holdings{
		min(h.Descriptors, o.Descriptors), min(h.Goroutines, o.Goroutines), min(h.Heap, o.Heap), min(h.RSS, o.RSS),
	}
}

// restTick is how often Rest looks. It must not divide the time from keyframe to
// keyframe of live/base, with which the log grows and shrinks.
const restTick = 230 * time.Millisecond

// Rest waits until the node is at rest and returns the least that it held meanwhile:
// figures swing while timers and collections run. It returns early when good says so.
func (n Node) Rest(ctx context.Context, settle time.Duration, good func(Holdings) bool) (Holdings, error) {
	var least Holdings
	for end := time.Now().Add(settle); ; {
		h, err := n.Hold(ctx)
		if err != nil {
			return least, err
		}
		if least == (Holdings{}) {
			least = h
		}
		least = least.Least(h)
		if time.Now().After(end) || good != nil && good(least) {
			return least, nil
		}
		select {
		case <-ctx.Done():
			return least, ctx.Err()
		case <-time.After(restTick):
		}
	}
}

// Hold measures the node.
func (n Node) Hold(ctx context.Context) (h Holdings, err error) {
	// Two collections: what a sync.Pool holds outlives the first. The figures come
	// from the metrics because a profile in text form fills a buffer of the node's
	// own that is as big as what it measures.
	for range 2 {
		if _, err := n.get(ctx, "/debug/pprof/heap?gc=1"); err != nil {
			return h, err
		}
	}
	page, err := n.get(ctx, "/metrics")
	if err != nil {
		return h, err
	}
	heap, err := find(page, "go_memstats_heap_alloc_bytes ")
	if err != nil {
		return h, err
	}
	goroutines, err := find(page, "go_goroutines ")
	if err != nil {
		return h, err
	}
	h.Heap, h.Goroutines = int64(heap), int(goroutines)
	m, err := procstat.ReadMemory(n.PID)
	if err != nil {
		return h, err
	}
	h.RSS = m.RSS
	h.Descriptors, err = procstat.Descriptors(n.PID)
	return h, err
}

// get returns a page of the admin listener.
func (n Node) get(ctx context.Context, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.Admin+path, nil)
	if err != nil {
		return "", err
	}
	req.Close = true // no connection of ours stays open at the node
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", errors.New(path + ": " + resp.Status)
	}
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

// find returns the number behind prefix in a page of metrics.
func find(page, prefix string) (float64, error) {
	for line := range strings.Lines(page) {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			return strconv.ParseFloat(strings.TrimSpace(rest), 64)
		}
	}
	return 0, fmt.Errorf("no metric %q", prefix)
}
