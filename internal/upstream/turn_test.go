package upstream

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/stream"
)

// However many names are asked for, only so many are looked for at once; those whose
// readers have left meanwhile are not looked for at all.
func TestSearchesWaitTheirTurn(t *testing.T) {
	var asked atomic.Int32
	answer := make(chan struct{})
	above := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		select {
		case <-answer:
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer above.Close()
	edge := start(t, "edge", pool(above.URL), func(c *Config, _ *Options) { c.LocateTime = time.Minute })
	defer edge.stop()
	const more = 50
	readers := make([]*reader, maxSearches+more)
	for i := range readers {
		readers[i] = edge.attach(stream.Name(fmt.Sprintf("live/%d", i)))
	}
	eventually(t, "as many as may be are asked for", func() bool { return asked.Load() >= maxSearches })
	eventually(t, "the others wait", func() bool { return edge.waiting() == more })
	if n := asked.Load(); n > maxSearches {
		t.Errorf("%d are asked for at once, at most %d may be", n, maxSearches)
	}
	peer := edge.attachFor("live/peer", stream.Demand{Peer: true})
	eventually(t, "a node of the datacenter does not wait for them", func() bool { return asked.Load() > maxSearches })
	peer.detach()
	for _, r := range readers {
		r.detach()
	}
	close(answer)
	eventually(t, "all are over", func() bool { return edge.origin.Stats().Sessions == 0 })
	if n := asked.Load(); n > maxSearches+1 {
		t.Errorf("%d were asked for that nobody wanted any more", n-maxSearches-1)
	}
}

// The newest of those who wait is next, and who has left is not waited for.
func TestTurns(t *testing.T) {
	turn := newTurns(1)
	if turn.ask() != nil {
		t.Fatal("the first has to wait")
	}
	first, second, third := turn.ask(), turn.ask(), turn.ask()
	is := func(wait chan struct{}) bool {
		select {
		case <-wait:
			return true
		default:
			return false
		}
	}
	if !turn.leave(second) || turn.leave(second) {
		t.Error("the second cannot leave, or can twice")
	}
	if turn.give(); !is(third) || is(first) {
		t.Error("it is not the turn of the newest")
	}
	if turn.leave(third) {
		t.Error("the third leaves though it has its turn")
	}
	if turn.give(); !is(first) || is(second) {
		t.Error("it is not the turn of the first")
	}
	turn.give()
	if turn.ask() != nil {
		t.Error("the turn is lost")
	}
}

// Those who ask for a stream that there is do not stand behind a flood of names that are
// nowhere.
func TestFloodLetsOthersThrough(t *testing.T) {
	var there, nowhere atomic.Int32
	above := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/live/there.flv" {
			there.Add(1)
		} else {
			nowhere.Add(1)
		}
		<-r.Context().Done()
	}))
	defer above.Close()
	edge := start(t, "edge", pool(above.URL), func(c *Config, _ *Options) { c.LocateTime = time.Minute })
	defer edge.stop()
	readers := make([]*reader, 2*maxSearches)
	for i := range readers {
		readers[i] = edge.attach(stream.Name(fmt.Sprintf("live/%d", i)))
	}
	eventually(t, "half of them wait", func() bool { return edge.waiting() == maxSearches && nowhere.Load() == maxSearches })
	readers = append(readers, edge.attach("live/there"))
	eventually(t, "one more waits", func() bool { return edge.waiting() == maxSearches+1 })
	edge.origin.turns.give()
	eventually(t, "it is looked for", func() bool { return there.Load() > 0 })
	if n := nowhere.Load(); n != maxSearches {
		t.Errorf("%d others are looked for, want %d", n, maxSearches)
	}
	for _, r := range readers {
		r.detach()
	}
	eventually(t, "all are over", func() bool { return edge.origin.Stats().Sessions == 0 })
}
