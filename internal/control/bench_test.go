package control

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/sched"
	"millrace/internal/stream"
)

// national is a snapshot of a big country: 5,000 edges in 250 datacenters of 34 regions,
// with both families, 50 domains and 20,000 rows of quality.
func national() *sched.Snapshot {
	r := rand.New(rand.NewPCG(1, 2))
	isps := []string{"telecom", "unicom", "mobile", "education"}
	s := &sched.Snapshot{
		Costs: sched.DefaultCosts(), Health: sched.DefaultHealth(),
		Zones: []sched.Zone{{Name: "cdn.example.com", NS: []sched.NameServer{{Host: "ns1.cdn.example.com"}}}},
	}
	for i := range 34 {
		lat, lon := 20+25*r.Float64(), 80+50*r.Float64()
		s.Regions = append(s.Regions, sched.Region{Name: fmt.Sprintf("region-%d", i), Lat: &lat, Lon: &lon})
	}
	for i := range 5000 {
		dc := i / 20
		v6 := netip.MustParseAddr("2001:db8::").As16()
		v6[6], v6[14], v6[15] = byte(dc), byte(i>>8), byte(i)
		n := sched.Node{
			ID: fmt.Sprintf("edge-%d-%d", dc, i%20), Role: "edge", Datacenter: fmt.Sprintf("dc-%d", dc), Region: fmt.Sprintf("region-%d", dc%34),
			ISPs: []string{isps[dc%4]}, Addresses: []netip.Addr{netip.AddrFrom4([4]byte{byte(11 + dc%90), byte(r.Uint32()), byte(r.Uint32()), byte(i)}), netip.AddrFrom16(v6)},
			HTTPPort: 80, HTTPSPort: 443, Host: fmt.Sprintf("edge-%d-%d.cdn.example.com", dc, i%20), Capacity: int64(1+r.IntN(4)) * 1_250_000_000,
		}
		if dc%10 == 0 {
			n.ISPs, n.Groups = []string{"*"}, []string{"backbone"}
		}
		s.Nodes = append(s.Nodes, n)
	}
	for i := range 50 {
		s.Domains = append(s.Domains, sched.Domain{Name: fmt.Sprintf("play-%d.cdn.example.com", i), ECS: true, Redirect: true, HTTPDNS: true, Recheck: 20})
	}
	for i := range 20_000 {
		s.Quality = append(s.Quality, sched.Quality{
			Region: fmt.Sprintf("region-%d", i%34), ISP: isps[i/34%4], Datacenter: fmt.Sprintf("dc-%d", i/136%250),
			FirstFrame: float64(100 + r.IntN(900)), Stalls: float64(r.IntN(100)) / 100, Delay: float64(r.IntN(80)), Samples: r.IntN(1000),
			At: time.Unix(1_700_000_000+int64(r.IntN(600)), 0).UTC(),
		})
	}
	return s
}

func nationalBundle(tb testing.TB) *Bundle {
	tb.Helper()
	b, err := NewBundle("router", 1, time.Unix(1_700_000_000, 0), Contents{Snapshot: national()})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func BenchmarkEncode(b *testing.B) {
	s, document := national(), nationalBundle(b).document
	b.Run("json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := NewBundle("router", 1, time.Unix(1_700_000_000, 0), Contents{Snapshot: s}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(document)), "bytes")
	})
	for e := gzipped; e < encodings; e++ {
		b.Run(e.String(), func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n = len(compressed(e, document))
			}
			b.ReportMetric(float64(n), "bytes")
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	packed := compressed(zstandard, nationalBundle(b).document)
	b.ReportAllocs()
	for b.Loop() {
		document, err := unpack("zstd", packed, MaxSnapshot)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := ParseBundle(document); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	document := nationalBundle(b).document
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		bundle, err := ParseBundle(document)
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if _, err := bundle.Compile(nil); err != nil {
			b.Fatal(err)
		}
	}
}

// nationalReport is what a scheduler saw of 5,000 edges, with 100 streams on each.
func nationalReport() *Report {
	r := rand.New(rand.NewPCG(1, 2))
	now := time.Unix(1_700_000_000, 0)
	out := &Report{Observer: "s1", At: now}
	for i := range 5000 {
		f := &sched.Figures{Load: r.Int64N(1_250_000_000), Viewers: r.IntN(10_000), Refused: uint64(r.IntN(1000))}
		for range 100 {
			f.Streams = append(f.Streams, stream.Name(fmt.Sprintf("live/room-%d", int(float64(10_000)*r.Float64()*r.Float64()))))
		}
		for _, family := range []sched.Families{sched.V4, sched.V6} {
			out.Observations = append(out.Observations, sched.Observation{
				Observer: "s1", Node: fmt.Sprintf("edge-%d-%d", i/20, i%20), Family: family, At: now.Add(-time.Duration(r.IntN(2000)) * time.Millisecond),
				Up: true, RTT: sched.Duration(time.Duration(r.IntN(60)) * time.Millisecond), Figures: f,
			})
		}
	}
	return out
}

func BenchmarkReport(b *testing.B) {
	r := nationalReport()
	text := r.encode(true)
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.encode(true)
		}
		b.ReportMetric(float64(len(text)), "bytes")
		b.ReportMetric(float64(len(compressed(zstandard, text))), "packed-bytes")
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := ParseReport(text); err != nil {
				b.Fatal(err)
			}
		}
	})
	bare := r.encode(false)
	b.Run("encode without streams", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.encode(false)
		}
		b.ReportMetric(float64(len(bare)), "bytes")
		b.ReportMetric(float64(len(compressed(zstandard, bare))), "packed-bytes")
	})
	b.Run("decode without streams", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := ParseReport(bare); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkKeeperView(b *testing.B) {
	k, err := NewKeeper(DefaultKeeperConfig(), &scripted{}, sched.New(), silent)
	if err != nil {
		b.Fatal(err)
	}
	k.use(nationalBundle(b))
	obs := nationalReport().Observations
	now := time.Unix(1_700_000_000, 0)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Second)
		for i := range obs {
			obs[i].At = now
		}
		k.Observe(obs)
		k.view(now)
	}
}

// BenchmarkAnswer is one of many that get the same snapshot: what each costs beyond the
// sending.
func BenchmarkAnswer(b *testing.B) {
	s := newServer(b, newCluster(b, clusterKey))
	s.Bundle(nationalBundle(b))
	q := question{node: "e1", nonce: "nonce", method: "GET", target: snapshotPath}
	signature := q.sign(s.cluster, time.Now())
	b.ReportAllocs()
	for b.Loop() {
		var ctx fasthttp.RequestCtx
		ctx.Request.SetRequestURI(snapshotPath)
		ctx.Request.Header.Set(nodeField, q.node)
		ctx.Request.Header.Set(nonceField, q.nonce)
		ctx.Request.Header.Set(signatureField, signature)
		ctx.Request.Header.Set("Accept-Encoding", "zstd")
		if !s.Handle(&ctx) || ctx.Response.StatusCode() != 200 {
			b.Fatalf("status %d", ctx.Response.StatusCode())
		}
	}
}

// BenchmarkWaiting keeps followers waiting on loopback and reports what each costs the
// server. The followers are bare sockets in the same process: their memory is the
// kernel's.
func BenchmarkWaiting(b *testing.B) {
	bundle := nationalBundle(b)
	const many = 9000 // two descriptors each
	for b.Loop() {
		wait(b, bundle, many)
	}
}

func wait(b *testing.B, bundle *Bundle, many int) {
	s := newServer(b, newCluster(b))
	s.Bundle(bundle)
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	srv := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) { s.Handle(ctx) }, ReduceMemoryUsage: true}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(ln)
	}()
	conns := make([]net.Conn, 0, many)
	defer func() {
		for _, c := range conns {
			c.Close()
		}
		s.Close()
		if err := srv.Shutdown(); err != nil {
			b.Error(err)
		}
		<-served
	}()
	before := memory()
	for i := range many {
		conn, err := net.Dial("tcp4", ln.Addr().String())
		if err != nil {
			b.Skipf("connection %d of %d: %v", i, many, err)
		}
		conns = append(conns, conn)
		fmt.Fprintf(conn, "GET %s?have=%s&wait=30s HTTP/1.1\r\nHost: s1\r\nMillrace-Node: e%d\r\n\r\n", snapshotPath, bundle.Version.Token, i)
	}
	for s.Stats().Waiting < many {
		select {
		case <-served: // it has run out of descriptors
			b.Skipf("%d of %d wait", s.Stats().Waiting, many)
		default:
			runtime.Gosched()
		}
	}
	b.ReportMetric(float64(memory()-before)/float64(many), "bytes/follower")
}

func memory() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
