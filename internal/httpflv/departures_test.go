package httpflv

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"millrace/internal/auth"
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

// A viewer who has begun when the shards end, and has yet to be handed to one, is told of
// as all others are.
func TestDepartureBehindTheEnd(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	n.publish("live/a").frames(5, 300)
	n.stop()
	var out strings.Builder
	n.fan.log = slog.New(slog.NewTextHandler(&out, nil))
	client, c := pair(t)
	n.server.takeOver(play{name: "live/a", framing: chunked, info: session.Info{Stream: "live/a", Action: session.Play}}, c)
	respond(t, client).wantFrames(0, 4)
	if n.ended(session.Draining) != 1 || !strings.Contains(out.String(), "\"viewer left\"") {
		t.Errorf("%d ended by draining, and the log says %q", n.ended(session.Draining), &out)
	}
}
