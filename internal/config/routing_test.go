package config

import (
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// wants checks that err has every one of want in it, or is nil without any.
func wants(t *testing.T, err error, want ...string) {
	t.Helper()
	if len(want) == 0 && err != nil {
		t.Error(err)
	}
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("got %v, want %q in it", err, w)
		}
	}
}

func TestRouting(t *testing.T) {
	f := func(name string, change func(*Node), want ...string) {
		t.Run(name, func(t *testing.T) {
			n := DefaultNode()
			n.ID = "edge-1"
			n.Router.Servers = []string{"http://router-1:8070", "https://[2001:db8::1]:8443"}
			change(&n)
			wants(t, n.Validate(), want...)
		})
	}
	f("as it should be", func(n *Node) {
		n.Router.Region, n.Router.ISPs, n.Router.Groups, n.Router.Domain = "south", []string{"*", "isp-1"}, []string{"default"}, "hall-2"
		n.Router.URL, n.Router.Push, n.Router.Probe = "https://edge-1:8443", "rtmp://edge-1", ":8090"
		n.Router.Addresses = []netip.Addr{netip.MustParseAddr("203.0.113.7"), netip.MustParseAddr("2001:db8::7")}
	})
	f("names in any script", func(n *Node) { n.Router.Region, n.Router.ISPs = "华南", []string{"电信"} })
	f("no probes", func(n *Node) { n.Router.Probe = ProbesOff })
	f("an edge without a key", func(n *Node) { n.Role = Edge })
	f("without an id", func(n *Node) { n.ID = "" }, "router.servers needs an id")
	f("nowhere to pull", func(n *Node) { n.Address.HTTP = "" }, "router.servers needs address.http, address.https or address.internal")
	f("without routers nothing is needed", func(n *Node) { n.Router.Servers, n.ID = nil, "" })
	for _, port := range []string{"0", "65536", "99999"} {
		f("a port", func(n *Node) { n.Router.Servers = []string{"http://router:" + port} }, `router: servers: "http://router:`+port+`" has the port `+port+`: use 1 to 65535`)
		f("a port", func(n *Node) { n.Scheduling.From = []string{"https://router:" + port} }, `scheduling: from: "https://router:`+port+`" has the port `+port+`: use 1 to 65535`)
		f("a port", func(n *Node) { n.Router.URL = "http://edge:" + port }, `router: url: "http://edge:`+port+`" has the port `+port+`: use 1 to 65535`)
	}
	f("no host", func(n *Node) { n.Router.Servers = []string{"http://:8082"} }, `router: servers: "http://:8082" is not the URL of a server: write http://`)
	f("no URL", func(n *Node) { n.Router.Servers = []string{"router:8070"} }, `router: servers: "router:8070" is not the URL of a server: write http://`)
	f("too many", func(n *Node) { n.Router.Servers = make([]string, 17) }, "router: servers has 17 URLs")
	f("every", func(n *Node) { n.Router.Every = time.Minute }, "router: every is 1m: use 200ms to 2s")
	f("names", func(n *Node) { n.Router.Region, n.Router.Domain = "a b", strings.Repeat("x", 65) },
		`router: region has "a b": blanks`, "router: domain has \"xxxxxxxxxxxxxxxxxxxx\"…")
	f("lists", func(n *Node) { n.Router.ISPs, n.Router.Groups = []string{"a", "a"}, []string{""} },
		"router: isps has a twice", "router: groups has an empty name")
	f("addresses", func(n *Node) { n.Router.Addresses = []netip.Addr{netip.IPv4Unspecified()} }, "router: addresses: 0.0.0.0 cannot be given to players")
	f("address twice", func(n *Node) {
		n.Router.Addresses = []netip.Addr{netip.MustParseAddr("::1"), netip.MustParseAddr("::1")}
	}, "router: addresses has ::1 twice")
	f("reach", func(n *Node) { n.Router.URL, n.Router.Push = "rtmp://x", "http://x" },
		`router: url is "rtmp://x": write http:// or https://HOST:PORT`, `router: push is "http://x": write rtmp:// or rtmps://HOST:PORT`)
	f("reach with more", func(n *Node) { n.Router.URL = "http://x:80/a?b" }, `router: url is "http://x:80/a?b"`)
	f("ways", func(n *Node) {
		n.Router.Reach = map[string][]string{"a": {"http://[::1]:80", "rtmps://a", "udp://a:80"}, "b": nil}
	})
	f("ways to nowhere", func(n *Node) {
		n.Router.Reach = map[string][]string{"a b": {"ftp://a"}, "c": {"http://c", "https://c"}}
	}, `router: reach has "a b"`, `router: reach of a b is "ftp://a": write http://`, "router: reach of c has two ways")
	f("probe", func(n *Node) { n.Router.Probe = "8090" }, `router: probe is "8090": use host:port`)
	f("figures", func(n *Node) { n.Router.Price, n.Router.Weight = math.NaN(), 0 }, "router: price is NaN", "router: weight is 0: use 0.01 to 1000")
}

func TestFollowing(t *testing.T) {
	f := func(name string, change func(*Scheduler), want ...string) {
		t.Run(name, func(t *testing.T) {
			s := DefaultScheduler()
			s.Router.Servers = []string{"http://router-1:8070"}
			change(&s)
			wants(t, s.Validate(), want...)
		})
	}
	f("a router stands in for files", func(*Scheduler) {})
	f("files and a router", func(s *Scheduler) { s.Files.Nodes, s.Files.Domains = "nodes.yaml", "domains.yaml" },
		"router.servers and files are both set")
	f("coverage and a router", func(s *Scheduler) { s.Files.Coverage = "coverage.txt" }, "router.servers and files are both set")
	f("too many to ask", func(s *Scheduler) {
		s.Peers.Servers = slices.Repeat([]string{"http://scheduler"}, 16)
	}, "peers.servers and router.servers are 17 together")
	f("neither", func(s *Scheduler) { s.Router.Servers = nil }, "or a router that has them, with --router")
	f("no URL", func(s *Scheduler) { s.Router.Servers = []string{"router"} }, `router: servers: "router" is not the URL of a server`)
	f("wait", func(s *Scheduler) { s.Router.Wait = time.Hour }, "router: wait is 1h0m0s: use 1s to 5m")
}
