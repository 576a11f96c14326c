package sched

import (
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

// full is a snapshot that uses every field.
func full() *Snapshot {
	lat, lon := 39.9, 116.4
	addr := netip.MustParseAddr
	return &Snapshot{
		Version: 7,
		Regions: []Region{{Name: "beijing", Lat: &lat, Lon: &lon, Near: map[string]float64{"tianjin": 3}}, {Name: "tianjin"}},
		Nodes: []Node{{
			ID: "bj-1", Role: "edge", Datacenter: "bj", Region: "beijing", ISPs: []string{"telecom", "*"},
			Addresses: []netip.Addr{addr("192.0.2.1"), addr("2001:db8::1")}, HTTPPort: 80, HTTPSPort: 443, Host: "bj-1.example.net",
			Capacity: 1.25e9, Weight: 1.5, Groups: []string{"live"}, Drain: true, UnderAttack: true, Probe: "http://192.0.2.1:8080",
		}, {ID: "bj-0", Role: "center", Region: "beijing", Capacity: 1}},
		Zones: []Zone{{
			Name: "example.com", NS: []NameServer{{Host: "ns1.example.com", Addresses: []netip.Addr{addr("192.0.2.53")}}},
			Mbox: "admin@example.com", Serial: 3, Refresh: Duration(time.Hour), Retry: Duration(time.Minute), Expire: Duration(24 * time.Hour),
			Minimum: Duration(30 * time.Second), TTL: Duration(time.Hour), CAA: []string{"0 issue letsencrypt.org"},
		}},
		Domains: []Domain{{
			Name: "*.live.example.com", Zone: "example.com", Groups: []string{"live"}, TTL: Duration(30 * time.Second),
			DegradedTTL: Duration(2 * time.Second), Answers: 2, ECS: true, Spread4: 20, Spread6: 48, Redirect: true, HTTPDNS: true,
			Recheck: 15, Scheme: "https",
		}},
		Overrides: []Override{{
			ID: "o1", Pin: []string{"bj-1"}, Ban: []string{"dc:bj"}, Until: start, Comment: "while the line is bad", Author: "li",
			When: When{
				Domain: "*.live.example.com", Stream: "live/show", Region: "beijing", ISP: "telecom", Access: AccessMobile,
				Prefix: netip.MustParsePrefix("203.0.113.0/24"),
			},
		}},
		Quality: []Quality{{
			Region: "beijing", ISP: "telecom", Access: AccessFixed, Node: "bj-1", FirstFrame: 300, Delay: 12, Stalls: 0.1,
			Loss: 0.01, Samples: 40, At: start,
		}, {Region: "beijing", Datacenter: "bj", Samples: 1, At: start}},
		Costs: DefaultCosts(), Health: DefaultHealth(),
	}
}

// TestSnapshotJSON wants a snapshot to come back from JSON as it was, in snake case.
func TestSnapshotJSON(t *testing.T) {
	want := full()
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseSnapshot(b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	for key := range keys(b) {
		if strings.ToLower(key) != key || strings.Contains(key, "-") {
			t.Errorf("the key %q is not in snake case", key)
		}
	}
	var none Snapshot
	if b, err = json.Marshal(&none); err != nil || string(b) != `{"version":0,"nodes":null}` {
		t.Errorf("an empty snapshot is %s, %v", b, err)
	}
}

// keys returns the keys of all objects in JSON.
func keys(b []byte) map[string]bool {
	out := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				out[k] = true
				walk(x)
			}
		case []any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	var v any
	_ = json.Unmarshal(b, &v) // what is not JSON has no keys
	walk(v)
	return out
}

func TestParseSnapshotRefuses(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		if _, err := ParseSnapshot([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", in, err, want)
		}
	}
	f(``, "EOF")
	f(`{`, "EOF")
	f(`[]`, "cannot unmarshal array")
	f(`{"nodes":[]} {}`, "more follows")
	f(`{"nodez":[]}`, `unknown field "nodez"`)
	f(`{"nodes":[{"ID2":1}]}`, `unknown field "ID2"`)
	f(`{"costs":{"lod":1}}`, `unknown field "lod"`)
	f(`{"health":{"freshness":"1s"}}`, `unknown field "freshness"`)
	f(`{"health":{"fresh":"soon"}}`, "is not a duration; write for example")
	f(`{"health":{"fresh":10}}`, "cannot unmarshal number")
	f(`{"quality":[{"access":"carrier pigeon"}]}`, "is not a kind of access: use unknown, fixed, mobile")
	f(`{"nodes":[{"addresses":["1.2.3"]}]}`, "IPv4 address too short")
	f(`{"overrides":[{"when":{"prefix":"10.0.0.0"}}]}`, "no '/'")
	f(`{"version":-1}`, "cannot unmarshal number")
	f(`{"nodes":[{"id":"a"}]}`, "nodes[0] a: role")
}

// TestPartOfCosts wants figures that are left out to have their defaults.
func TestPartOfCosts(t *testing.T) {
	s, err := ParseSnapshot([]byte(`{"nodes":[],"costs":{"isp_any":0,"margin":2},"health":{"evict_share":0}}`))
	if err != nil {
		t.Fatal(err)
	}
	c, h := DefaultCosts(), DefaultHealth()
	c.ISPAny, c.Margin, h.EvictShare = 0, 2, 0
	if s.Costs != c || s.Health != h {
		t.Errorf("got %+v and %+v", s.Costs, s.Health)
	}
}

// TestValidate wants each fault found, told where, and with what to do.
func TestValidate(t *testing.T) {
	if err := full().Validate(); err != nil {
		t.Fatal(err)
	}
	f := func(want string, break_ func(s *Snapshot)) {
		t.Helper()
		s := full()
		break_(s)
		err := s.Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
		if _, err := Compile(s, nil); err == nil {
			t.Errorf("%s: compiled", want)
		}
	}
	node := func(change func(n *Node)) func(s *Snapshot) { return func(s *Snapshot) { change(&s.Nodes[0]) } }
	f("nodes[0] : id: is empty", node(func(n *Node) { n.ID = "" }))
	f("nodes[1] bj-1: the id is taken", func(s *Snapshot) { s.Nodes[1].ID = "bj-1" })
	f("must not begin with \"dc:\"", node(func(n *Node) { n.ID = "dc:1" }))
	f("blanks, commas", node(func(n *Node) { n.ID = "bj 1" }))
	f("blanks, commas", node(func(n *Node) { n.Groups = []string{"a\nb"} }))
	f("is longer than 64 bytes", node(func(n *Node) { n.Datacenter = strings.Repeat("x", 65) }))
	f("nodes[0] bj-1: role: \"\" is not a role: use center, relay or edge", node(func(n *Node) { n.Role = "" }))
	f("region: there is no region \"beijin\": declare it", node(func(n *Node) { n.Region = "beijin" }))
	f("isps: telecom is there twice", node(func(n *Node) { n.ISPs = []string{"telecom", "telecom"} }))
	f("an edge needs one at least", node(func(n *Node) { n.Addresses = nil }))
	f("addresses: 192.0.2.1 is there twice", node(func(n *Node) { n.Addresses = append(n.Addresses, n.Addresses[0]) }))
	f("cannot be given to players", node(func(n *Node) { n.Addresses[0] = netip.IPv4Unspecified() }))
	f("cannot be given to players", node(func(n *Node) { n.Addresses[0] = netip.MustParseAddr("fe80::1%eth0") }))
	f("cannot be given to players", node(func(n *Node) { n.Addresses[0] = netip.MustParseAddr("::ffff:192.0.2.1") }))
	f("an address is empty", node(func(n *Node) { n.Addresses[0] = netip.Addr{} }))
	f("needs an http_port or an https_port", node(func(n *Node) { n.HTTPPort, n.HTTPSPort = 0, 0 }))
	f("capacity: 0 must be above 0", node(func(n *Node) { n.Capacity = 0 }))
	f("weight: NaN must be between", node(func(n *Node) { n.Weight = math.NaN() }))
	f("is not a DNS name", node(func(n *Node) { n.Host = "a..b" }))
	f("is not a URL: use one such as", node(func(n *Node) { n.Probe = "192.0.2.1:80" }))

	f("regions[1] beijing: is there twice", func(s *Snapshot) { s.Regions[1].Name = "beijing" })
	f("has only one of lat and lon", func(s *Snapshot) { s.Regions[0].Lat = nil })
	f("lat: 91 must be between -90 and 90", func(s *Snapshot) { v := 91.; s.Regions[0].Lat = &v })
	f("near: there is no region \"mars\"", func(s *Snapshot) { s.Regions[0].Near["mars"] = 1 })
	f("near: tianjin: -1 must be between", func(s *Snapshot) { s.Regions[0].Near["tianjin"] = -1 })

	f("zones[1] example.com.: is there twice", func(s *Snapshot) { s.Zones = append(s.Zones, s.Zones[0]); s.Zones[1].Name = "example.com." })
	f("a zone needs one name server", func(s *Snapshot) { s.Zones[0].NS = nil })
	f("ns[0]: host: \"-\" is not a DNS name", func(s *Snapshot) { s.Zones[0].NS[0].Host = "-" })
	f("caa: \"issue x\": write FLAG TAG VALUE", func(s *Snapshot) { s.Zones[0].CAA[0] = "issue x" })
	f("ttl: -1s must be between", func(s *Snapshot) { s.Zones[0].TTL = Duration(-time.Second) })
	f("domains[0] live.*.com: name: \"live.*.com\" is not a DNS name", func(s *Snapshot) { s.Domains[0].Name = "live.*.com" })
	f("domains[1] *.LIVE.example.com.: is there twice", func(s *Snapshot) { s.Domains = append(s.Domains, Domain{Name: "*.LIVE.example.com."}) })
	f("there is no zone \"example.org\"", func(s *Snapshot) { s.Domains[0].Zone = "example.org" })
	f("the name is not in example.com", func(s *Snapshot) { s.Domains = append(s.Domains, Domain{Name: "badexample.com", Zone: "example.com"}) })
	f("answers: 9 must be between 0 and 8", func(s *Snapshot) { s.Domains[0].Answers = 9 })
	f("spread4: 33 must be", func(s *Snapshot) { s.Domains[0].Spread4 = 33 })
	f("scheme: \"rtmp\": use http or https", func(s *Snapshot) { s.Domains[0].Scheme = "rtmp" })

	override := func(change func(o *Override)) func(s *Snapshot) {
		return func(s *Snapshot) { change(&s.Overrides[0]) }
	}
	f("overrides[0] o1: does nothing", override(func(o *Override) { o.Pin, o.Ban = nil, nil }))
	f("pin: there is no node \"bj-9\"; a datacenter is written dc:NAME", override(func(o *Override) { o.Pin[0] = "bj-9" }))
	f("ban: no node is in a datacenter \"sh\"", override(func(o *Override) { o.Ban[0] = "dc:sh" }))
	f("there is no domain \"x.com\"", override(func(o *Override) { o.When.Domain = "x.com" }))
	f("write APP/NAME", override(func(o *Override) { o.When.Stream = "/live//show" }))
	f("is not a CIDR: write it as 203.0.113.0/24", override(func(o *Override) { o.When.Prefix = netip.MustParsePrefix("203.0.113.9/24") }))
	f("leave region or isp out", override(func(o *Override) { o.When.ISP = "*" }))
	f("the id is taken", func(s *Snapshot) { s.Overrides = append(s.Overrides, s.Overrides[0]) })

	quality := func(change func(q *Quality)) func(s *Snapshot) {
		return func(s *Snapshot) { change(&s.Quality[0]) }
	}
	f("quality[0] beijing telecom: must be of a node or of a datacenter", quality(func(q *Quality) { q.Datacenter = "bj" }))
	f("loss: 1.5 must be between 0 and 1", quality(func(q *Quality) { q.Loss = 1.5 }))
	f("delay: NaN", quality(func(q *Quality) { q.Delay = math.NaN() }))
	f("samples: -1", quality(func(q *Quality) { q.Samples = -1 }))
	f("two rows for beijing  bj", func(s *Snapshot) { s.Quality = append(s.Quality, s.Quality[1]) })
	f("costs: margin: 0 must be between", func(s *Snapshot) { s.Costs.Margin = 0 })
	f("costs: load: +Inf", func(s *Snapshot) { s.Costs.Load = math.Inf(1) })
	f("health: fresh: 0s must be between", func(s *Snapshot) { s.Health.Fresh = 0 })
	f("health: rise: 0 must be between", func(s *Snapshot) { s.Health.Rise = 0 })
	f("names of regions: 4097 of them", func(s *Snapshot) {
		for i := range MaxNames {
			s.Quality = append(s.Quality, Quality{Region: fmt.Sprint("r", i), Node: "bj-1"})
		}
	})
	f("names of ISPs: 258 of them", func(s *Snapshot) {
		for i := range MaxISPs {
			s.Quality = append(s.Quality, Quality{Region: "beijing", ISP: fmt.Sprint("i", i), Node: "bj-1"})
		}
	})
	f("overrides: 1025 of them, at most 1024", func(s *Snapshot) { s.Overrides = make([]Override, MaxOverrides+1) })
	f("and 60 faults more", func(s *Snapshot) {
		s.Nodes = nil
		s.Overrides, s.Quality = nil, nil
		for i := range 80 {
			s.Nodes = append(s.Nodes, Node{ID: fmt.Sprint(i), Role: "relay", Region: "beijing"})
		}
	})
}
