package frontend

import (
	"bufio"
	"bytes"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/auth"
	"millrace/internal/geo"
	"millrace/internal/sched"
)

const (
	clusterKey  = "0123456789abcdef-K"
	appSecret   = "0123456789abcdef-S"
	otherSecret = "0123456789abcdef-N"

	north4  = "1.1.0.7"
	south4  = "1.2.0.7"
	north6  = "2400:1::7"
	west6   = "2400:3::7"
	nowhere = "9.9.9.9"

	play = "play.cdn.example.com"
)

// coverage is where the clients of these tests are.
const coverage = `
1.1.0.0/16   north telecom
1.2.0.0/16   south telecom
2400:1::/32  north telecom
2400:3::/32  west  telecom
`

func addresses(list ...string) (out []netip.Addr) {
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

// plan is north with both families and HTTPS, south with IPv4 on the usual port, and
// west with IPv6 alone.
func plan() *sched.Snapshot {
	return &sched.Snapshot{
		Version: 7,
		Regions: []sched.Region{
			{Name: "north", Near: map[string]float64{"south": 50, "west": 50}},
			{Name: "south", Near: map[string]float64{"west": 50}},
			{Name: "west"},
		},
		Nodes: []sched.Node{
			{
				ID: "north-1", Role: "edge", Region: "north", ISPs: []string{"*"}, Capacity: 1 << 30,
				Addresses: addresses("192.0.2.11", "2001:db8:1::11"), HTTPPort: 8080, HTTPSPort: 8443, Host: "north-1.cdn.example.com",
			},
			{ID: "south-1", Role: "edge", Region: "south", ISPs: []string{"*"}, Capacity: 1 << 30, Addresses: addresses("198.51.100.21"), HTTPPort: 80},
			{ID: "west-1", Role: "edge", Region: "west", ISPs: []string{"*"}, Capacity: 1 << 30, Addresses: addresses("2001:db8:3::31"), HTTPPort: 8080, HTTPSPort: 443},
		},
		Domains: []sched.Domain{
			{Name: play, Redirect: true, HTTPDNS: true, Recheck: 20},
			{Name: "quiet.cdn.example.com"},
			{Name: "*.app.cdn.example.com", Redirect: true, HTTPDNS: true},
			{Name: "secure.cdn.example.com", Redirect: true, Scheme: "https"},
			{Name: "bare.cdn.example.com", Redirect: true, Scheme: "http"},
			{Name: "empty.cdn.example.com", Redirect: true, HTTPDNS: true, Groups: []string{"nobody"}},
		},
	}
}

// up is a state in which all nodes of s are up.
func up(s *sched.Snapshot, now time.Time) *sched.State {
	st := &sched.State{At: now}
	for i := range s.Nodes {
		h := sched.Health{Status: sched.Up, At: now, Up: now}
		st.Nodes = append(st.Nodes, sched.NodeState{ID: s.Nodes[i].ID, V4: h, V6: h})
	}
	return st
}

// newDecider returns what decides by s, with all nodes up at now.
func newDecider(t testing.TB, s *sched.Snapshot, now time.Time, change func(*sched.State)) *sched.Scheduler {
	t.Helper()
	c, err := geo.ParseCoverage([]byte(coverage))
	if err != nil {
		t.Fatal(err)
	}
	table, err := geo.NewTable(c, nil, geo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := sched.Compile(s, table.Pairs())
	if err != nil {
		t.Fatal(err)
	}
	state := up(s, now)
	if change != nil {
		change(state)
	}
	d := sched.New()
	d.Swap(sched.NewView(p, table, state))
	return d
}

func newKeys(t testing.TB, keys ...string) *auth.Cluster {
	t.Helper()
	c, err := auth.NewCluster(auth.ClusterConfig{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newHTTP returns an HTTP without a listener, for handle.
func newHTTP(t testing.TB, c *auth.Cluster, change func(*HTTPConfig)) *HTTP {
	t.Helper()
	cfg := DefaultHTTPConfig()
	if change != nil {
		change(&cfg)
	}
	h, err := NewHTTP(cfg, newDecider(t, plan(), time.Now(), nil), c, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// ask gives a raw request to h as if it came from an address.
func ask(t testing.TB, h *HTTP, from, raw string) *fasthttp.Response {
	t.Helper()
	var ctx fasthttp.RequestCtx
	var req fasthttp.Request
	raw = strings.ReplaceAll(raw, "\n", "\r\n")
	if err := req.Read(bufio.NewReaderSize(strings.NewReader(raw), maxHead)); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	ctx.Init(&req, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 1234)), nil)
	h.handle(&ctx)
	var out fasthttp.Response
	ctx.Response.CopyTo(&out)
	return &out
}

// get asks for a URI of a host.
func get(t testing.TB, h *HTTP, from, host, uri string, fields ...string) *fasthttp.Response {
	t.Helper()
	return ask(t, h, from, "GET "+uri+" HTTP/1.1\nHost: "+host+"\n"+strings.Join(append(fields, "\n"), "\n"))
}

// wantRefused checks a refusal: its status, its word, and a sentence with want.
func wantRefused(t testing.TB, r *fasthttp.Response, status int, reason, want string) {
	t.Helper()
	if r.StatusCode() != status || string(r.Header.Peek(reasonField)) != reason || !bytes.Contains(r.Body(), []byte(want)) {
		t.Errorf("status %d, reason %q: %s, want %d %q with %q", r.StatusCode(), r.Header.Peek(reasonField), r.Body(), status, reason, want)
	}
	if len(r.Header.Peek("Location")) > 0 {
		t.Error("a refusal with a Location")
	}
	if cc := r.Header.Peek("Cache-Control"); string(cc) != "no-store" {
		t.Errorf("Cache-Control %q", cc)
	}
}
