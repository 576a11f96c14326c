package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// clusterKey is what the programs of these tests sign with.
const clusterKey = "a-key-that-all-nodes-share"

// probeEvery is how often the schedulers of these tests look at an edge.
const probeEvery = 500 * time.Millisecond

// placing is a scheduler in front of two edges, with its files. Players of
// 203.0.113.0/24 and 127.0.0.1 are in the north, those of 198.51.100.0/24 in the south.
type placing struct {
	*Scheduler
	north, south *Node
	dir          string
}

// The places of the clients in these tests.
const (
	northern = "203.0.113.7"
	southern = "198.51.100.7"
	domain   = "play.live.example"
)

// place starts two edges, each on an address of its own, and a scheduler in front of
// them, with further flags. It returns when both edges are offered.
func place(t *testing.T, args ...string) *placing {
	t.Helper()
	edge := func(id, addr string) *Node {
		return StartNode(t, "--role", "edge", "--id", id, "--http", addr, "--cluster-key", clusterKey)
	}
	p := &placing{north: edge("north", ":0"), south: edge("south", "127.0.0.2:0"), dir: t.TempDir()}
	port := func(n *Node) string {
		_, port, _ := net.SplitHostPort(n.Addr("http"))
		return port
	}
	p.write(t, "nodes.yaml", fmt.Sprintf(`nodes:
  - {id: north, role: edge, region: north, isps: ["*"], addresses: [127.0.0.1, "::1"], http_port: %s, capacity: 125MB}
  - {id: south, role: edge, region: south, isps: ["*"], addresses: [127.0.0.2], http_port: %s, capacity: 125MB}
regions:
  - {name: north, near: {south: 40}}
  - {name: south}
`, port(p.north), port(p.south)))
	p.write(t, "domains.yaml", domainsOf("60s"))
	p.write(t, "coverage.txt", "203.0.113.0/24 north *\n127.0.0.1/32 north *\n198.51.100.0/24 south *\n")
	p.Scheduler = StartScheduler(t, append([]string{
		"--nodes", p.file("nodes.yaml"), "--domains", p.file("domains.yaml"), "--coverage", p.file("coverage.txt"),
		"--cluster-key", clusterKey, "--set", "http.default_domain=" + domain, "--set", "http.trusted_proxies=127.0.0.1",
		"--set", "probe.interval=" + probeEvery.String(), "--set", "probe.timeout=5s",
	}, args...)...)
	p.AwaitMessage(t, "edge is up", "node", "north", "family", "v4")
	p.AwaitMessage(t, "edge is up", "node", "south", "family", "v4")
	for network, addr := range map[string]string{northern: "127.0.0.1", southern: "127.0.0.2"} { // in the next view
		p.awaitAnswer(t, addr, domain, "A", "+subnet="+network+"/32")
	}
	return p
}

// domainsOf is the file of domains, with a TTL for their answers.
func domainsOf(ttl string) string {
	return `zones:
  - name: live.example
    ns: [{host: ns1.live.example, addresses: [127.0.0.1]}]
    caa: ["0 issue letsencrypt.org"]
domains:
  - {name: ` + domain + `, zone: live.example, ttl: ` + ttl + `, degraded_ttl: 3s, answers: 1, ecs: true, redirect: true, httpdns: true, recheck: 10}
`
}

func (p *placing) file(name string) string { return filepath.Join(p.dir, name) }

// write replaces a file as operators should: whoever reads it sees the old one or the
// new one.
func (p *placing) write(t *testing.T, name, text string) {
	t.Helper()
	fresh := p.file(name + ".new")
	if err := os.WriteFile(fresh, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, p.file(name)); err != nil {
		t.Fatal(err)
	}
}

// dig asks the scheduler as resolvers do.
func (p *placing) dig(t *testing.T, args ...string) string {
	t.Helper()
	return dig(t, p.Addr("dns"), args...)
}

// dig asks a name server at HOST:PORT.
func dig(t *testing.T, server string, args ...string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		t.Fatal(err)
	}
	return output(t, "dig", append([]string{"@" + host, "-p", port, "+time=10", "+tries=5"}, args...)...)
}

// short is the first line of what dig answers in short.
func (p *placing) short(t *testing.T, args ...string) string {
	t.Helper()
	first, _, _ := strings.Cut(p.dig(t, append(args, "+short")...), "\n")
	return first
}

// awaitAnswer asks again and again until the answer is the one that is wanted, and
// returns how long that took.
func (p *placing) awaitAnswer(t *testing.T, want string, args ...string) time.Duration {
	t.Helper()
	began, got := time.Now(), ""
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for time.Since(began) < patience {
		if got = p.short(t, args...); got == want {
			return time.Since(began)
		}
		<-look.C
	}
	t.Fatalf("dig %v answers %q after %v, want %q", args, got, patience, want)
	return 0
}

// TestSchedulerDNS asks for everything that resolvers and people ask a name server for.
func TestSchedulerDNS(t *testing.T) {
	p := place(t)
	f := func(want string, args ...string) {
		t.Helper()
		if got := p.dig(t, args...); !strings.Contains(got, want) {
			t.Errorf("dig %s: no %q in\n%s", strings.Join(args, " "), want, got)
		}
	}
	not := func(unwanted string, args ...string) {
		t.Helper()
		if got := p.dig(t, args...); strings.Contains(got, unwanted) {
			t.Errorf("dig %s: %q in\n%s", strings.Join(args, " "), unwanted, got)
		}
	}
	answer := func(name, rest string) string { return name + ".\t60\tIN\t" + rest }

	f(answer(domain, "A\t127.0.0.1"), domain, "A", "+noall", "+answer")
	f(answer(domain, "A\t127.0.0.1"), domain, "A", "+noall", "+answer", "+tcp")
	f(answer(domain, "A\t127.0.0.1"), domain, "A", "+noall", "+answer", "+noedns")
	f("flags: qr aa rd;", domain, "A")
	f("status: NOERROR", domain, "TXT")
	f("ANSWER: 0, AUTHORITY: 1", domain, "TXT")
	f("status: NOERROR", domain, "HTTPS")
	f("ns1.live.example. hostmaster.live.example.", "live.example", "SOA", "+short")
	f("ns1.live.example.", "live.example", "NS", "+short")
	f(`0 issue "letsencrypt.org"`, "live.example", "CAA", "+short")
	f("127.0.0.1", "ns1.live.example", "A", "+short")
	f("status: NXDOMAIN", "nobody.live.example", "A")
	f("status: REFUSED", "www.example.org", "A")
	f("status: BADVERS", domain, "A", "+edns=1", "+noednsnegotiation")
	not("\tA\t", "live.example", "AXFR")

	// As it was asked for, letter by letter, so that forged answers are noticed.
	f(answer("PlAy.LiVe.eXaMpLe", "A\t127.0.0.1"), "PlAy.LiVe.eXaMpLe", "A", "+noall", "+answer")

	// By the client's network, and how far the answer is good.
	f("127.0.0.1", domain, "A", "+short", "+subnet="+northern+"/32")
	f("127.0.0.2", domain, "A", "+short", "+subnet="+southern+"/32")
	f("CLIENT-SUBNET: "+southern+"/32/24", domain, "A", "+subnet="+southern+"/32")
	f("CLIENT-SUBNET: 198.51.100.0/24/24", domain, "A", "+subnet=198.51.100.0/24")
	f("CLIENT-SUBNET: 10.0.0.0/8/8", domain, "A", "+subnet=10.0.0.0/8") // no player's: the answer is the resolver's, for nobody else
	f("CLIENT-SUBNET: "+southern+"/32/0", "live.example", "SOA", "+subnet="+southern+"/32")
	not("CLIENT-SUBNET", domain, "A")

	if c, err := net.Dial("tcp6", net.JoinHostPort("::1", strings.TrimPrefix(p.north.Addr("http"), "[::]:"))); err != nil {
		t.Logf("not tested: this machine has no IPv6: %v", err)
	} else {
		c.Close()
		p.awaitAnswer(t, "::1", domain, "AAAA")
		// The nearest edge with IPv6, though another one is nearer.
		f("::1", domain, "AAAA", "+short", "+subnet="+southern+"/32")
	}
	if _, metrics := get(t, p.URL("admin", "/metrics")); !strings.Contains(metrics, `millrace_dns_client_subnets_total{use="used"} `) {
		t.Error("the questions with a client subnet are not counted")
	}
}

// TestSchedulerFollowsDeath kills an edge: the answers leave it. Then everything dies,
// and there are answers all the same.
func TestSchedulerFollowsDeath(t *testing.T) {
	p := place(t)
	north := []string{domain, "A", "+subnet=" + northern + "/32"}
	if got := p.short(t, north...); got != "127.0.0.1" {
		t.Fatalf("with both edges: %q", got)
	}
	p.north.Cmd.Process.Kill()
	// On a quiet machine: one interval to the first look, a quarter to the second, a view.
	t.Logf("looked at every %v, the answers left the dead edge after %v", probeEvery, p.awaitAnswer(t, "127.0.0.2", north...))
	p.AwaitMessage(t, "edge is down", "node", "north", "reason", "refused")
	// On a machine that stands still for a while the answers leave what nobody has looked at
	// in time, before it is known to be down.
	await(t, "the operator is told", patience, func() bool {
		_, nodes := get(t, p.URL("admin", "/v1/nodes?why=unhealthy"))
		return strings.Contains(nodes, `"id":"north"`)
	})

	// Cut off from everything: no edge, no files. The least bad is the one that lived last.
	p.south.Cmd.Process.Kill()
	p.AwaitMessage(t, "edge is down", "node", "south", "reason", "refused")
	if err := os.RemoveAll(p.dir); err != nil {
		t.Fatal(err)
	}
	p.Signal(t, syscall.SIGHUP)
	p.AwaitMessage(t, "new files refused, the old ones stay in use")
	for range 10 {
		if got := p.dig(t, append(north, "+noall", "+answer")...); !strings.Contains(got, "IN\tA\t127.0.0.") {
			t.Fatalf("cut off, the answer is %q", got)
		}
	}
	if status, body := get(t, p.URL("http", "/v1/resolve?domain="+domain)); status != 200 || !strings.Contains(body, `"v4":"127.0.0.`) {
		t.Errorf("cut off, HTTP-DNS answers %d %s", status, body)
	}
}

// TestSchedulerReload: a broken file is refused, with a word where it is broken, and
// the old one stays; the repaired one is taken up.
func TestSchedulerReload(t *testing.T) {
	p := place(t)
	ttl := func() string { return p.dig(t, domain, "A", "+noall", "+answer") }
	p.write(t, "domains.yaml", strings.Replace(domainsOf("30s"), "redirect", "redrect", 1))
	p.Signal(t, syscall.SIGHUP)
	l := p.AwaitMessage(t, "new files refused, the old ones stay in use")
	for _, want := range []string{p.file("domains.yaml") + ":6", `unknown key "redrect"`, `did you mean "redirect"`} {
		if !strings.Contains(l.Text("err"), want) {
			t.Errorf("it is refused with %q, want %q", l.Text("err"), want)
		}
	}
	if got := ttl(); !strings.Contains(got, "\t60\t") {
		t.Errorf("with a broken file: %s", got)
	}
	if _, metrics := get(t, p.URL("admin", "/metrics")); !strings.Contains(metrics, "\nmillrace_sched_snapshot_refused 1\n") {
		t.Error("that a file is refused is no metric")
	}
	// Without a signal too, when the file is whole.
	p.write(t, "domains.yaml", domainsOf("30s"))
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(patience); !strings.Contains(ttl(), "\t30\t"); <-look.C {
		if time.Now().After(end) {
			t.Fatalf("the new file is not in use after %v: %s", patience, ttl())
		}
	}
	if _, metrics := get(t, p.URL("admin", "/metrics")); !strings.Contains(metrics, "\nmillrace_sched_snapshot_refused 0\n") {
		t.Error("the file is still refused")
	}
}

// TestSchedulerDrain: SIGTERM tells health checks and goes on answering; the exit code
// says that all went well.
func TestSchedulerDrain(t *testing.T) {
	p := place(t)
	p.Signal(t, syscall.SIGTERM)
	p.AwaitMessage(t, "draining: health checks are told, and everybody is answered; a second signal ends at once")
	if status, body := get(t, p.URL("admin", "/healthz")); status != 503 || body != "draining\n" {
		t.Errorf("health checks are told %d %q", status, body)
	}
	if got := p.dig(t, domain, "A", "+noall", "+answer"); !strings.Contains(got, "\t60\tIN\tA\t127.0.0.1") {
		t.Errorf("while draining: %q", got)
	}
	p.AwaitMessage(t, "drained: nobody asks any more")
	if code := p.Exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestSchedulerRefuses: what keeps it from starting is said in a line, and the exit
// code is 2.
func TestSchedulerRefuses(t *testing.T) {
	p := place(t)
	f := func(want string, args ...string) {
		t.Helper()
		cmd := exec.Command(Build(t, "cmd/scheduler"), args...)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v, %s; want exit code 2 and %q", args, err, out, want)
		}
	}
	files := []string{"--nodes", p.file("nodes.yaml"), "--domains", p.file("domains.yaml")}
	_, port, _ := net.SplitHostPort(p.Addr("dns"))
	f("The shortest files that do something")
	f("--dns 127.0.0.1:", append(files, "--dns", "127.0.0.1:"+port, "--http", "", "--admin", "")...)
	f("address already in use", append(files, "--dns", "127.0.0.1:"+port, "--http", "", "--admin", "")...)
	f("coverage.txt", append(files, "--coverage", filepath.Join(p.dir, "no", "coverage.txt"), "--check-config")...)
}
