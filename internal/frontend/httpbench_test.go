//go:build !race

package frontend

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/sched"
)

// Not under the race detector, which has pools forget at random.

// bigPlan is n edges more, in ten regions at different distances.
func bigPlan(n int) *sched.Snapshot {
	s := plan()
	for i := range 10 {
		near := map[string]float64{"north": 20 + float64(3*i), "south": 50 - float64(3*i)}
		s.Regions = append(s.Regions, sched.Region{Name: fmt.Sprintf("r%d", i), Near: near})
	}
	for i := range n {
		s.Nodes = append(s.Nodes, sched.Node{
			ID: fmt.Sprintf("e-%d", i), Role: "edge", Region: fmt.Sprintf("r%d", i%10), ISPs: []string{"telecom"}, Capacity: 1 << 30,
			Addresses: []netip.Addr{netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)})}, HTTPPort: 80,
		})
	}
	return s
}

// request returns a context that holds a request, for h.handle to answer again and again.
func request(tb testing.TB, uri string) *fasthttp.RequestCtx {
	tb.Helper()
	var req fasthttp.Request
	raw := "GET " + uri + " HTTP/1.1\r\nHost: " + play + "\r\nOrigin: https://site.example\r\nUser-Agent: player\r\nAccept: */*\r\n\r\n"
	if err := req.Read(bufio.NewReader(strings.NewReader(raw))); err != nil {
		tb.Fatal(err)
	}
	ctx := new(fasthttp.RequestCtx)
	ctx.Init(&req, &net.TCPAddr{IP: net.IPv4(1, 1, 0, 7)}, nil)
	return ctx
}

const (
	redirectURI = "/live/room.flv?token=0123456789abcdef&uid=1234567"
	resolveURI  = "/v1/resolve?domain=" + play + "&stream=live/room&ip=1.2.0.7&n=3"
	plainURI    = "/d?dn=" + play + "&ip=1.2.0.7&ttl=1"
)

func newBenched(tb testing.TB) *HTTP {
	h := newHTTP(tb, newKeys(tb, clusterKey), func(c *HTTPConfig) { c.Resolve.Rate = 10_000; c.Resolve.Burst = maxBurst })
	h.decider = newDecider(tb, bigPlan(1000), time.Now(), nil)
	return h
}

// What an answer allocates: the name of the stream, and the address as text.
func TestAnswersAllocate(t *testing.T) {
	h := newBenched(t)
	f := func(uri string, most float64) {
		t.Helper()
		ctx := request(t, uri)
		n := testing.AllocsPerRun(2000, func() {
			ctx.Response.Reset()
			h.handle(ctx)
		})
		if n > most {
			t.Errorf("%s: %v allocations, want at most %v", uri, n, most)
		}
		t.Logf("%s: %v", uri, n)
	}
	f(redirectURI, 1)
	f(resolveURI, 2)
	f(plainURI, 1)
}

// A player that is served where it came costs nothing.
func TestElsewhereAllocates(t *testing.T) {
	r := newRecheck(t, "north-1", newDecider(t, bigPlan(1000), t0, nil), newKeys(t, clusterKey), nil)
	client := netip.MustParseAddr(north4)
	if n := testing.AllocsPerRun(2000, func() {
		if _, ok := r.Elsewhere(t0, client, play, false, "live/room", redirectURI); ok {
			t.Fatal("sent on")
		}
	}); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}

func benchmark(b *testing.B, uri string, status int) {
	h, ctx := newBenched(b), request(b, uri)
	h.limit = newRateLimiter(askers)
	b.ReportAllocs()
	for b.Loop() {
		ctx.Response.Reset()
		h.handle(ctx)
	}
	if got := ctx.Response.StatusCode(); got != status && got != 429 {
		b.Errorf("%s: %d %s", uri, got, ctx.Response.Body())
	}
}

func BenchmarkRedirect(b *testing.B) { benchmark(b, redirectURI, 302) }

func BenchmarkResolve(b *testing.B) { benchmark(b, resolveURI, 200) }

func BenchmarkPlain(b *testing.B) { benchmark(b, plainURI, 200) }

func BenchmarkElsewhere(b *testing.B) {
	d := newDecider(b, bigPlan(1000), t0, nil)
	client := netip.MustParseAddr(north4)
	for _, self := range []string{"north-1", "south-1"} {
		b.Run(self, func(b *testing.B) {
			r := newRecheck(b, self, d, newKeys(b, clusterKey), nil)
			b.ReportAllocs()
			for b.Loop() {
				r.Elsewhere(t0, client, play, false, "live/room", redirectURI)
			}
		})
	}
}
