package e2e

import (
	"testing"

	"golang.org/x/sync/semaphore"

	"millrace/tools/drill"
)

// TestTreeFailover runs one seed of each case of bench/failover, some at a time, and
// leaves them slack times as long as is promised.
func TestTreeFailover(t *testing.T) {
	const processes = 20
	opt := drill.Options{Program: Build(t, "cmd/node"), Short: true, Slack: slack}
	type outcome struct {
		drill.Result
		err error
	}
	room := semaphore.NewWeighted(processes)
	results := map[string]chan outcome{}
	for _, c := range drill.Cases() {
		if c.Apart {
			continue
		}
		done := make(chan outcome, 1)
		results[c.Name] = done
		go func() { // each is waited for below
			if err := room.Acquire(t.Context(), int64(c.Nodes)); err != nil {
				done <- outcome{err: err}
				return
			}
			defer room.Release(int64(c.Nodes))
			r, err := drill.Run(t.Context(), c, 1, opt)
			done <- outcome{r, err}
		}()
	}
	for _, c := range drill.Cases() {
		if c.Apart {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			r := <-results[c.Name]
			if r.err != nil {
				t.Fatal(r.err)
			}
			for _, b := range r.Broken {
				t.Error(b)
			}
			if err := c.GapIn(r.Result, slack); err != nil {
				t.Error(err)
			}
			if t.Failed() {
				t.Log(r.Explain())
			}
			t.Logf("%.1f s, %d viewers, figures %v", r.Seconds, len(r.Views), r.Figures)
		})
	}
}
