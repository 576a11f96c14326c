package e2e

import (
	"math"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// reported returns a figure of the node's metrics, NaN when it is not there.
func reported(t *testing.T, n *Node, series string) float64 {
	t.Helper()
	_, text := get(t, n.URL("admin", "/metrics"))
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindStringSubmatch(text)
	if m == nil {
		return math.NaN()
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestWatchReports: the page tells the node how playing went, a stop of the publisher
// and the end included.
func TestWatchReports(t *testing.T) {
	tab := browser(t)
	n := StartNode(t)
	stop := publishClip(t, n.URL("rtmp", "/live/demo"))
	p := open(t, tab, n.URL("http", "/watch/live/demo"))
	p.awaitState("playing")
	p.awaitPictures(60)
	stop()
	p.awaitState("silent")
	publishClip(t, n.URL("rtmp", "/live/demo"))
	p.awaitState("playing")
	p.awaitPictures(60)
	p.leave()

	accepted := func() float64 { return reported(t, n, `millrace_quality_reports_total{outcome="accepted"}`) }
	for end := time.Now().Add(patience); !(accepted() >= 1); {
		if time.Now().After(end) {
			t.Fatal("the page that is left has not reported")
		}
	}
	f := func(series string, low, high float64) {
		t.Helper()
		if got := reported(t, n, series); !(got >= low && got <= high) {
			t.Errorf("%s is %v, want %v to %v", series, got, low, high)
		}
	}
	f("millrace_quality_first_frames_total", 1, 1)
	f("millrace_quality_first_frame_seconds_total", 0.001, 60)
	f("millrace_quality_played_seconds_total", 2, 300)
	f("millrace_quality_stalls_total", 1, 200)
	f("millrace_quality_stalled_seconds_total", 0.3, 300)
	for _, refused := range []string{"too_big", "malformed", "absurd", "too_many"} {
		f(`millrace_quality_reports_total{outcome="`+refused+`"}`, 0, 0)
	}
}

// TestReportMeter: how the page tells playing from standing still.
func TestReportMeter(t *testing.T) {
	p := open(t, browser(t), StartNode(t).URL("http", "/"))
	f := func(what, steps, want string) {
		t.Helper()
		eval[bool](p, `(window.got = "", import("/watch/report.js").then(({Meter}) => {
			const m = new Meter(); `+steps+`
			window.got = [m.stalls, m.stalled, m.played].join(" ");
		}), true)`)
		p.await(what, `window.got !== ""`)
		if got := eval[string](p, "window.got"); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	f("play", `m.go("playing", 1000); m.settle(4000)`, "0 0 3000")
	f("a hitch", `m.go("playing", 0); m.go("stalled", 1000); m.go("playing", 1050); m.settle(2000)`, "0 0 1950")
	f("a stall", `m.go("playing", 0); m.go("stalled", 1000); m.go("playing", 1500); m.settle(2000)`, "1 500 1500")
	f("told in the middle", `m.go("playing", 0); m.go("stalled", 1000); m.settle(1050); m.settle(1500); m.settle(2500); m.go("playing", 3000)`, "1 2000 1000")
	f("told twice", `m.go("playing", 0); m.go("stalled", 1000); m.take(3000); m.settle(4000)`, "0 1000 0")
	f("a pause of the publisher", `m.go("playing", 0); m.go("stalled", 1000); m.settle(5000); m.settle(60000); m.go("playing", 90000)`, "1 10000 1000")
	f("nothing", `m.settle(9000); m.go("off", 10000)`, "0 0 0")
}
