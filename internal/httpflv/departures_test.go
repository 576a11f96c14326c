package httpflv

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"millrace/internal/session"
)

// TestManyDeparturesAreCounted: a storm of viewers that leave writes a few lines a
// second for each reason, and loses none.
func TestManyDeparturesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		f := newFanout(DefaultConfig(), slog.New(slog.NewTextHandler(&out, nil)))
		table := session.NewTable()
		leave := func(n int, r session.Reason) {
			for range n {
				f.logLater(table.Open(session.Info{Stream: "live/a"}, func(session.Reason) {}), r)
				synctest.Wait()
			}
		}
		done := make(chan struct{})
		ended := make(chan struct{})
		go func() {
			f.logDepartures(done)
			close(ended)
		}()
		leave(1000, session.PeerClosed)
		leave(3, session.Stalled)
		close(done)
		<-ended
		for want, n := range map[string]int{
			"\"viewer left\"": freeLines + 3,
			"\"more viewers left\" reason=peer_closed count=995": 1,
			"more viewers left": 1,
			"reason=stalled":    3,
		} {
			if got := strings.Count(out.String(), want); got != n {
				t.Errorf("%q stands there %d times, want %d:\n%s", want, got, n, out.String())
			}
		}
	})
}
