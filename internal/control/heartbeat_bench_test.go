package control

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"

	"millrace/internal/plan"
	"millrace/internal/stream"
)

// busyHeartbeat is of a node that has 500 streams, of which it tells some, and measures
// eight links.
func busyHeartbeat(node string, now time.Time, told int, full bool) *Heartbeat {
	h := goodHeartbeat(now)
	h.Node, h.Players, h.Events, h.Rechecks = node, nil, nil, nil
	h.Streams, h.Samples = Carrying{Based: 2}, nil
	if full {
		h.Identity.ID, h.Streams.Based = node, 0
	} else {
		h.Identity = nil
	}
	for i := range told {
		h.Streams.Set = append(h.Streams.Set, Carried{
			Name: stream.Name(fmt.Sprintf("live/room-%d", 1000+i*7)), Epoch: 1_700_000_000_000 + int64(i)*977, From: fmt.Sprint("relay-", i%3),
			Bitrate: 250_000 + int64(i)*131, Viewers: i * i % 97, Delay: float64(i%40) + 0.5,
		})
	}
	for i := range 8 {
		h.Samples = append(h.Samples, plan.Sample{
			From: fmt.Sprint("relay-", i), To: node, At: now.UTC(), RTT: time.Duration(3+i) * time.Millisecond, Delay: 40 * time.Millisecond,
			Loss: 0.001 * float64(i), Rate: 1_000_000, OK: true, Pulled: true, Probes: 10,
		})
	}
	return h
}

// heartbeats that nodes with 500 streams send.
var benched = []struct {
	name string
	told int
	full bool
}{{"nothing changed", 0, false}, {"40 streams changed", 40, false}, {"all 500 streams", 500, true}}

func BenchmarkParseHeartbeat(b *testing.B) {
	for _, c := range benched {
		b.Run(c.name, func(b *testing.B) {
			text := mustJSON(busyHeartbeat("e1", noon, c.told, c.full))
			b.ReportAllocs()
			defer computing(b)()
			for b.Loop() {
				h, err := ParseHeartbeat(text)
				if err == nil {
					err = h.Validate(noon)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(text)), "bytes")
			b.ReportMetric(float64(len(compressed(zstandard, text))), "packed-bytes")
		})
	}
}

func BenchmarkComposeHeartbeat(b *testing.B) {
	node := newNode()
	node.streams = busyHeartbeat("e1", noon, 500, true).Streams.Set
	cfg := DefaultBeatConfig()
	cfg.Servers = []string{"http://r1:80"}
	for _, c := range []struct {
		name string
		full bool
	}{{"nothing changed", false}, {"all 500 streams", true}} {
		b.Run(c.name, func(b *testing.B) {
			beat, err := NewBeat(cfg, node, "e1", newCluster(b, clusterKey), nil, nil, silent)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			defer computing(b)()
			for b.Loop() {
				if c.full {
					beat.taken = taken{}
				}
				h := beat.compose(noon, "http://r1:80")
				beat.pack(mustJSON(h))
				beat.remember(h, "http://r1:80", &Ack{})
			}
		})
	}
}

// processor returns how long this process has computed: other programs on the machine
// do not count.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// computing returns what reports how long each round of b computes from now on.
func computing(b *testing.B) func() {
	begun := processor()
	return func() { b.ReportMetric(float64(processor()-begun)/float64(b.N), "cpu-ns/op") }
}

// envelope is a heartbeat ready to be handled.
type envelope struct {
	node, nonce, signature string
	body                   []byte
}

func envelopeOf(packer *zstd.Encoder, h *Heartbeat) envelope {
	return envelope{node: h.Node, nonce: "ABCDEFGHIJKLMNOPQRSTUVWXYZ", body: packer.EncodeAll(mustJSON(h), nil)}
}

func (e *envelope) sign(s *Server) {
	sum := sha256.Sum256(e.body)
	q := question{node: e.node, nonce: e.nonce, method: "POST", target: heartbeatPath, encoding: "zstd", sum: &sum}
	e.signature = q.sign(s.cluster, time.Now())
}

func newPacker(tb testing.TB) *zstd.Encoder {
	tb.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

// handle has s answer the heartbeat, and returns the status and what was answered.
func (e *envelope) handle(s *Server, ctx *fasthttp.RequestCtx) int {
	ctx.Request.Reset()
	ctx.Response.Reset()
	h := &ctx.Request.Header
	h.SetMethod("POST")
	h.SetRequestURI(heartbeatPath)
	h.Set(nodeField, e.node)
	h.Set(nonceField, e.nonce)
	h.Set(signatureField, e.signature)
	h.Set("Content-Encoding", "zstd")
	ctx.Request.SetBodyRaw(e.body)
	s.Handle(ctx)
	return ctx.Response.StatusCode()
}

// BenchmarkHeartbeat is all that a heartbeat costs a router beside the connection and
// what its backend does: signatures both ways, unpacking, reading, checking.
func BenchmarkHeartbeat(b *testing.B) {
	for _, c := range benched {
		b.Run(c.name, func(b *testing.B) {
			s, fleet := newRouter(b, "r1", clusterKey)
			now := time.Now()
			e := envelopeOf(newPacker(b), busyHeartbeat("e1", now, c.told, c.full))
			e.sign(s)
			var ctx fasthttp.RequestCtx
			ctx.Init2(nil, nil, false)
			b.ReportAllocs()
			defer computing(b)()
			for b.Loop() {
				if status := e.handle(s, &ctx); status != 200 {
					b.Fatalf("%d: %s", status, ctx.Response.Body())
				}
				fleet.heard = fleet.heard[:0]
			}
		})
	}
}

// BenchmarkHerd is ten thousand nodes with 500 streams that come back in one instant,
// each with all it has. Those that are refused come back as they are told.
func BenchmarkHerd(b *testing.B) {
	const nodes = 10_000
	s, fleet := newRouter(b, "r1", clusterKey)
	now := time.Now()
	text, packer := make([]envelope, nodes), newPacker(b)
	for i := range text {
		text[i] = envelopeOf(packer, busyHeartbeat(fmt.Sprint("e", i), now, 500, true))
	}
	defer computing(b)()
	var all, took time.Duration
	var refused atomic.Int64
	for b.Loop() {
		begun := time.Now()
		times := make([]time.Duration, nodes)
		var wg sync.WaitGroup
		for i := range text {
			wg.Go(func() {
				var ctx fasthttp.RequestCtx
				ctx.Init2(nil, nil, false)
				for text[i].sign(s); text[i].handle(s, &ctx) != 200; text[i].sign(s) {
					refused.Add(1)
					rest, err := time.ParseDuration(string(ctx.Response.Header.Peek("Retry-After")) + "s")
					if err != nil {
						b.Errorf("%s", ctx.Response.Body())
						return
					}
					<-time.After(rest + jitter(rest))
				}
				times[i] = time.Since(begun)
			})
		}
		wg.Wait()
		all += time.Since(begun)
		slices.Sort(times)
		took += times[nodes/2]
		fleet.heartbeats()
	}
	b.ReportMetric(all.Seconds()/float64(b.N), "s/all")
	b.ReportMetric(took.Seconds()/float64(b.N), "s/half")
	b.ReportMetric(float64(refused.Load())/float64(b.N), "refused")
}
