package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// unboundConfig is a resolver that tells name servers the networks of its clients, and
// takes them from clients that tell their own.
const unboundConfig = `server:
  interface: 127.0.0.1@%[1]s
  port: %[1]s
  do-daemonize: no
  username: ""
  chroot: ""
  directory: "%[2]s"
  pidfile: ""
  logfile: ""
  use-syslog: no
  verbosity: 1
  module-config: "subnetcache iterator"
  send-client-subnet: 127.0.0.1
  client-subnet-always-forward: yes
  max-client-subnet-ipv4: 24
  do-not-query-localhost: no
  access-control: 127.0.0.0/8 allow
  local-zone: "live.example." nodefault
  qname-minimisation: no
  use-caps-for-id: yes
  cache-min-ttl: 60
remote-control:
  control-enable: no
stub-zone:
  name: "live.example"
  stub-addr: 127.0.0.1@%[3]s
`

// freePort returns a port of 127.0.0.1 that nobody listens on, over UDP or TCP.
func freePort(t *testing.T) string {
	t.Helper()
	for range 20 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := ln.Addr().(*net.TCPAddr)
		c, err := net.ListenUDP("udp", &net.UDPAddr{IP: addr.IP, Port: addr.Port})
		ln.Close()
		if err == nil {
			c.Close()
			return strconv.Itoa(addr.Port)
		}
	}
	t.Fatal("no port is free over UDP and TCP")
	return ""
}

// TestSchedulerBehindResolver has unbound between clients and scheduler: clients of
// two networks get their own edges, and what the resolver has kept it gives to clients
// of the same network alone.
func TestSchedulerBehindResolver(t *testing.T) {
	unbound := Program(t, "unbound")
	Program(t, "dig")
	p := place(t)
	dir, port := t.TempDir(), freePort(t)
	_, dnsPort, _ := net.SplitHostPort(p.Addr("dns"))
	conf := filepath.Join(dir, "unbound.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, unboundConfig, port, dir, dnsPort), 0o600); err != nil {
		t.Fatal(err)
	}
	resolver := Start(t, nil, unbound, "-d", "-c", conf)
	resolver.AwaitText(t, "start of service")

	from := func(client string) string {
		t.Helper()
		return strings.TrimSpace(dig(t, "127.0.0.1:"+port, domain, "A", "+short", "+subnet="+client))
	}
	asked := func() int {
		t.Helper()
		_, metrics := get(t, p.URL("admin", "/metrics"))
		for line := range strings.Lines(metrics) {
			if count, ok := strings.CutPrefix(line, `millrace_dns_client_subnets_total{use="used"} `); ok {
				n, err := strconv.Atoi(strings.TrimSpace(count))
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
		}
		return 0
	}
	for _, c := range []struct {
		client, edge string
		asks         bool // the resolver asks for it
	}{
		{northern + "/32", "127.0.0.1", true},
		{southern + "/32", "127.0.0.2", true},
		{"203.0.113.200/32", "127.0.0.1", false}, // the same /24: kept
		{"198.51.100.9/32", "127.0.0.2", false},
		{northern + "/32", "127.0.0.1", false},
		{"93.184.216.34/32", "", true}, // a network that nobody knows, and so any edge
	} {
		before := asked()
		got := from(c.client)
		if c.edge != "" && got != c.edge || !strings.HasPrefix(got, "127.0.0.") {
			t.Errorf("a client of %s is sent to %q, want %s", c.client, got, c.edge)
		}
		if n := asked() - before; n > 0 != c.asks { // where the answer is late it asks twice
			t.Errorf("for %s the resolver has asked %d times, want it to ask: %v", c.client, n, c.asks)
		}
	}
}
