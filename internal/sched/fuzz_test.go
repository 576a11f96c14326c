package sched

import (
	"encoding/json"
	"math/rand/v2"
	"net/netip"
	"testing"

	"millrace/internal/stream"
)

// FuzzDecide decides in worlds made of the fuzzer's bytes, in the quick way and in the
// plain one: no panic, and no empty answer where an edge could serve.
func FuzzDecide(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 8 {
		seed := make([]byte, 100*n)
		for i := range seed {
			seed[i] = byte(r.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d := fromBytes(b[:min(len(b), 4096)])
		w := anyWorld(t, d)
		v := w.view()
		for range 3 {
			q := w.anyQuery(d)
			var a Answer
			v.Decide(start, &q, &a)
			if want, _ := reference(v, q, &a); len(want) != a.N {
				t.Fatalf("%+v: %d candidates, want %v", q, a.N, want)
			}
			if a.Bits < 0 || a.Bits > q.Client.Bits() {
				t.Fatalf("%v: %d bits", q.Client, a.Bits)
			}
		}
	})
}

// FuzzSnapshot reads snapshots from bytes and decides from those that are valid,
// whatever is asked.
func FuzzSnapshot(f *testing.F) {
	b, err := json.Marshal(full())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, "a.live.example.com", "live/show", "beijing", "telecom", []byte{203, 0, 113, 1}, 24, 3, 3)
	f.Add([]byte(`{"nodes":[{"id":"a","role":"edge","region":"r","addresses":["::1"],"http_port":1,"capacity":1}],"domains":[{"name":"x.y"}]}`),
		"X.y.", "", "", "", make([]byte, 16), 128, 2, -1)
	f.Add([]byte(`{}`), "", "", "", "", []byte{}, -1, 200, 200)
	f.Fuzz(func(t *testing.T, b []byte, domain, name, region, isp string, addr []byte, bits, families, want int) {
		s, err := ParseSnapshot(b)
		if err != nil {
			return
		}
		p, err := Compile(s, nil)
		if err != nil {
			return
		}
		state := &State{At: start}
		for i := range s.Nodes {
			up := Health{Status: Status(i % 3), At: start}
			state.Nodes = append(state.Nodes, NodeState{ID: s.Nodes[i].ID, Load: int64(i-1) * 1e8, V4: up, V6: up, Streams: streams(i % 3)})
		}
		v := NewView(p, nil, state)
		a, _ := netip.AddrFromSlice(addr)
		q := Query{
			Client: netip.PrefixFrom(a, bits), Domain: domain, Stream: stream.Name(name), Region: region, ISP: isp,
			Families: Families(families), Want: want, Access: Access(families), Self: "a",
		}
		var got Answer
		v.Decide(start, &q, &got)
		e := v.Explain(start, &q)
		if len(e.Candidates) != got.N {
			t.Errorf("explained %+v, decided %s", e, told(&got))
		}
		if _, err := json.Marshal(e); err != nil {
			t.Errorf("an explanation that is no JSON: %v", err)
		}
	})
}
