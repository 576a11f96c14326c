package console

import (
	"fmt"
	"testing"

	"millrace/internal/fleet"
)

// BenchmarkFrame is what live costs a router each second, however many pages listen: a
// map of 5,000 nodes and as many links, written and compressed.
func BenchmarkFrame(b *testing.B) {
	f := newFake()
	small := f.Network()
	large := &fleet.Network{At: small.At, Router: small.Router, Routers: small.Routers, Datacenters: small.Datacenters}
	for i := range 5000 {
		n, l := small.Nodes[i%len(small.Nodes)], small.Links[i%len(small.Links)]
		n.ID, l.To = fmt.Sprint("node-", i), fmt.Sprint("node-", i)
		n.Load, n.Viewers, l.Cost = int64(i)*7919, i%1009, float64(i)/97
		large.Nodes, large.Links = append(large.Nodes, n), append(large.Links, l)
	}
	l := newLive(nil)
	b.ReportAllocs()
	for b.Loop() {
		l.begin()
		l.event("network", 0, large)
		frame := l.end()
		b.ReportMetric(float64(len(frame.plain)), "bytes")
		b.ReportMetric(float64(len(frame.packed)), "packed-bytes")
	}
}
