package upstream

import (
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/faultnet"
	"millrace/internal/httpflv"
)

// figures returns what is told of one upstream that meets cond.
func (n *node) figures(url string, cond func(LinkFigures) bool) (found LinkFigures) {
	n.t.Helper()
	eventually(n.t, "figures of "+url, func() bool {
		for _, f := range n.origin.Links() {
			if f.URL == url && cond(f) {
				found = f
				return true
			}
		}
		return false
	})
	return found
}

func TestLinks(t *testing.T) {
	center := start(t, "center")
	way, err := faultnet.ListenTCP("127.0.0.1:0", strings.TrimPrefix(center.url, "http://"), faultnet.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer way.Close()
	url := "http://" + way.Addr()
	edge := start(t, "edge", pool(url))
	if l := edge.origin.Links(); len(l) != 0 {
		t.Errorf("before anything was pulled there is %+v", l)
	}
	center.publish("live/a")
	r := edge.attach("live/a")
	defer r.detach()
	want(t, r.read(1), "")
	f := edge.figures(url, func(f LinkFigures) bool { return f.Opened > 0 && f.FirstFrame > 0 })
	if f.Connect <= 0 || f.Connect > patience || f.FirstFrame > patience || f.Opened != 1 || f.Failed != 0 || f.Node != "center" {
		t.Errorf("after the first pull: %+v", f)
	}
	f = edge.figures(url, func(f LinkFigures) bool { return f.Rate > 0 && f.RTT > 0 && f.Streams == 1 })
	if f.RTT > patience || f.Over <= 0 || f.Retransmits > 1 || f.Opened != 0 || f.FirstFrame != 0 {
		t.Errorf("while it flows: %+v", f)
	}
	way.Reset()
	if f = edge.figures(url, func(f LinkFigures) bool { return f.Switches > 0 }); f.Failed == 0 {
		t.Errorf("after the connection broke: %+v", f)
	}
}

// An upstream that nobody answers at is told of, one that does not have a stream is well.
func TestLinksOfFailures(t *testing.T) {
	dead, deadURL := listen(t)
	dead.Close()
	center := start(t, "center")
	edge := start(t, "edge", pool(deadURL, center.url))
	r := edge.attach("live/none")
	defer r.detach()
	want(t, r.read(1), "upstream_lost")
	failed := map[string]int{}
	eventually(t, "the dead one is told of", func() bool {
		for _, f := range edge.origin.Links() {
			failed[f.URL] += f.Failed
		}
		return failed[deadURL] > 0
	})
	if failed[center.url] != 0 {
		t.Errorf("who does not have the stream has failed %d times", failed[center.url])
	}
}

// What is told is told once, and of a bounded number of upstreams.
func TestLinkTally(t *testing.T) {
	now := time.Now()
	l := newLinks(now)
	up := target{url: "http://a:1", node: "a"}
	for range 2 * maxSpans {
		l.note(up, func(y *tally) {
			add(&y.connects, time.Millisecond)
			y.sent, y.again, y.bytes = 1000, 10, 4000
		})
	}
	if n := len(l.by[up.url].connects); n != maxSpans {
		t.Errorf("%d times are kept", n)
	}
	f := l.take(now.Add(2 * time.Second))
	if len(f) != 1 || f[0].Retransmits != 0.01 || f[0].Rate != 2000 || f[0].Connect != time.Millisecond || f[0].Node != "a" || f[0].Over != 2*time.Second {
		t.Errorf("they are %+v", f)
	}
	if f := l.take(now.Add(3 * time.Second)); len(f) != 0 {
		t.Errorf("told again: %+v", f)
	}
	again := func(streams int) float64 {
		l.note(up, func(y *tally) { y.streams = streams })
		return l.take(now)[0].Retransmits
	}
	if got := again(1); got != 0 {
		t.Errorf("%v of what another connection had is told again", got)
	}
	l.note(up, func(y *tally) { y.sent, y.again = 1000, 10 })
	if got := []float64{again(1), again(1), again(0), again(1)}; !slices.Equal(got, []float64{0.01, 0.01, 0, 0}) {
		t.Errorf("the shares are %v", got)
	}
	for i := range maxLinkURLs + 10 {
		l.note(target{url: string(rune('a'+i%26)) + time.Duration(i).String()}, func(y *tally) { y.stalls++ })
	}
	if n := len(l.take(now)); n != maxLinkURLs {
		t.Errorf("%d upstreams are kept", n)
	}
}

// What a trunk has carried before a stream is on it is not told again with each stream; a
// connection of a stream's own counts from its beginning.
func TestTrunkTellsNoHistory(t *testing.T) {
	for onTrunk, want := range map[bool]counted{true: {out: 1000, again: 100}, false: {}} {
		f := &feed{onTrunk: onTrunk}
		f.tell(httpflv.Link{Out: 1000, Again: 100})
		f.tell(httpflv.Link{Out: 1500, Again: 100})
		if f.counted != want || f.link.Out != 1500 || !f.linked {
			t.Errorf("on a trunk %v: %+v is counted, want %+v", onTrunk, f.counted, want)
		}
	}
}
