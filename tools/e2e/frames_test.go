package e2e

import (
	"context"
	"os"
	"testing"
	"time"

	"millrace/tools/pull"
)

// publishFrames starts flvgen on live/NAME.
func publishFrames(t *testing.T, n *Node, name string, args ...string) *Process {
	t.Helper()
	return Start(t, nil, Build(t, "tools/flvgen"), append([]string{"--url", n.URL("rtmp", "/live/"+name), "--quiet"}, args...)...)
}

// awaitFrames returns when the stream plays.
func awaitFrames(t *testing.T, n *Node, name string) {
	t.Helper()
	cfg := pull.DefaultConfig()
	cfg.URLs = []string{n.URL("http", "/live/"+name+".flv")}
	cfg.Warmup, cfg.Duration = 0, 200*time.Millisecond
	for end := time.Now().Add(patience); ; {
		r, err := pull.Run(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if r.OK() {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("live/%s does not play: %v", name, r.Errors)
		}
	}
}

// TestEveryFrameOnceAndInOrder lets viewers join while the publisher goes and comes
// back, on a clock near the end of 32 bits, and checks every frame of every viewer.
func TestEveryFrameOnceAndInOrder(t *testing.T) {
	for name, http10 := range map[string]bool{"HTTP/1.1": false, "HTTP/1.0": true} {
		t.Run(name, func(t *testing.T) {
			n := StartNode(t)
			gen := publishFrames(t, n, "a", "--start-ts", "4294962296", "--gop", "1s", "--bframes") // wraps after five seconds
			awaitFrames(t, n, "a")

			cfg := pull.DefaultConfig()
			cfg.URLs = []string{n.URL("http", "/live/a.flv")}
			cfg.Viewers, cfg.Rate, cfg.HTTP10, cfg.Verify = 40, 20, http10, 40
			cfg.Duration = 12 * time.Second
			type outcome struct {
				r   *pull.Report
				err error
			}
			done := make(chan outcome, 1) // capacity 1: one outcome
			go func() {
				r, err := pull.Run(context.Background(), cfg)
				done <- outcome{r, err}
			}()
			// All have joined after two seconds; then the publisher restarts, and has time for it.
			timer := time.NewTimer(4 * time.Second)
			defer timer.Stop()
			<-timer.C
			gen.Signal(t, os.Interrupt)
			if code := gen.Exit(t); code != 0 {
				t.Errorf("flvgen exits with %d", code)
			}
			publishFrames(t, n, "a", "--start-ts", "7000", "--gop", "1s")

			o := <-done
			if o.err != nil {
				t.Fatal(o.err)
			}
			if g := o.r.Normal; !o.r.OK() || g.Skips > 0 || g.Epochs != 40 {
				t.Errorf("faults %v, errors %v, %d of 40 got a first frame, %d closed, %d skips, %d saw the publisher again",
					o.r.Faults, o.r.Errors, g.FirstFrames, g.Closed, g.Skips, g.Epochs)
			}
		})
	}
}

// TestFrozenViewerComesBackToLive freezes viewers for longer than the limit, and wants
// them near live soon after they read again; the others notice nothing.
func TestFrozenViewerComesBackToLive(t *testing.T) {
	n := StartNode(t)
	publishFrames(t, n, "b")
	awaitFrames(t, n, "b")
	cfg := pull.DefaultConfig()
	cfg.URLs = []string{n.URL("http", "/live/b.flv")}
	cfg.Viewers, cfg.Frozen, cfg.Thaw, cfg.Duration = 20, 0.3, 8*time.Second, 16*time.Second
	r, err := pull.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK() || r.Normal.Skips > 0 {
		t.Errorf("faults %v, errors %v, %d of the others skip", r.Faults, r.Errors, r.Normal.Skips)
	}
	if r.Recovered.Count != uint64(r.Frozen.Viewers) || r.Recovered.Max > float64(promised(2*time.Second).Milliseconds()) {
		t.Errorf("%d of %d frozen viewers are near live again, after at most %.0f ms", r.Recovered.Count, r.Frozen.Viewers, r.Recovered.Max)
	}
	if r.Frozen.Skips < uint64(r.Frozen.Viewers) {
		t.Errorf("%d frozen viewers skipped %d times", r.Frozen.Viewers, r.Frozen.Skips)
	}
}
