package cluster

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millrace/internal/control"
)

// TestSchedulerFiles: what the scheduler is given it can read, and it is about the
// edges where they are reached.
func TestSchedulerFiles(t *testing.T) {
	top, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	var own reservations
	defer own.close()
	ports, err := top.pick(Options{Scheduler: "scheduler", At: map[string]Ports{"edge-1": {HTTP: "127.0.0.9:0"}}}, &own)
	if err != nil {
		t.Fatal(err)
	}
	hosts := map[string]bool{}
	for id, p := range ports {
		host, _, _ := net.SplitHostPort(p.HTTP)
		if strings.HasPrefix(id, "edge") != (host != "127.0.0.1") {
			t.Errorf("%s listens at %s", id, p.HTTP)
		}
		hosts[host] = true
	}
	if s := ports[SchedulerID]; len(hosts) != 4 || s.DNS == "" || s.RTMP != "" || s.Internal == "" {
		t.Errorf("hosts %v, the scheduler is at %+v", hosts, s)
	}
	files, err := top.files(map[string]Ports{
		"edge-1": {HTTP: "localhost:8080"}, "edge-2": {HTTP: "127.0.0.2:81"}, "edge-3": {HTTP: "127.0.0.3:82"},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg := control.FilesConfig{
		Nodes: filepath.Join(dir, "nodes.yaml"), Domains: filepath.Join(dir, "domains.yaml"), Coverage: filepath.Join(dir, "coverage.txt"),
	}
	contents, err := cfg.Load()
	if err != nil {
		t.Fatal(err)
	}
	n := contents.Snapshot.Nodes
	if len(n) != 3 || n[0].Addresses[0] != loopback || n[0].HTTPPort != 8080 || n[1].Region != "south" || n[2].Addresses[0] != loopbackOf(2) {
		t.Errorf("nodes are %+v", n)
	}
	if d := contents.Snapshot.Domains; len(d) != 1 || d[0].Name != "play.test" || !d[0].Redirect {
		t.Errorf("domains are %+v", d)
	}
}

func TestSchedulerIsValid(t *testing.T) {
	const nodes = "nodes: [{id: a, role: edge}]\n"
	f := func(text, want string) {
		t.Helper()
		_, err := Read(strings.NewReader(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	f(nodes+"scheduler: {domain: play.test}", "")
	f(nodes+"scheduler: {domain: play.test, clients: [{prefix: 192.0.2.0/24, region: north}]}", "")
	f(nodes+"scheduler: {domain: ''}", "domain is")
	f(nodes+"scheduler: {domain: 'http://play.test'}", "domain is")
	f(nodes+"scheduler: {domain: play.test, clients: [{prefix: 192.0.2.0/24}]}", "number 1 needs")
	f("nodes: [{id: a, role: center}]\nscheduler: {domain: play.test}", "no edge")
	f("nodes: [{id: scheduler, role: edge}]\nscheduler: {domain: play.test}", "is for the scheduler")
}

func TestClientAddress(t *testing.T) {
	for prefix, want := range map[string]string{
		"192.0.2.0/24": "192.0.2.7", "192.0.2.77/24": "192.0.2.7", "192.0.2.4/30": "192.0.2.7", "192.0.2.1/32": "192.0.2.1", "2001:db8::/32": "2001:db8::7",
	} {
		if got := (Client{Prefix: netip.MustParsePrefix(prefix)}).Address().String(); got != want {
			t.Errorf("of %s: %s, want %s", prefix, got, want)
		}
	}
}

// TestScheduler: it is started, seen, killed and started again like a node.
func TestScheduler(t *testing.T) {
	top := small()
	top.Scheduler = &Scheduler{Domain: "play.test"}
	t.Setenv(fake, "1")
	c, err := Start(t.Context(), top, Options{Program: os.Args[0], Scheduler: os.Args[0], Logs: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	seen := func() NodeState {
		s := c.Observe(t.Context())
		return s.Nodes[len(s.Nodes)-1]
	}
	if s := seen(); s.ID != SchedulerID || s.Role != SchedulerID || s.State != Running || s.Silent || s.Ports.DNS == "" {
		t.Errorf("it runs as %+v", s)
	}
	do(t, c, "kill scheduler")
	if s := seen(); s.State != Killed {
		t.Errorf("killed it is %+v", s)
	}
	do(t, c, "restart scheduler")
	if s := seen(); s.State != Running || s.Silent {
		t.Errorf("started again it is %+v", s)
	}
	if _, err := top.Parse("slow scheduler"); err == nil {
		t.Error("it can be made slow, which nobody would feel")
	}
	top.Scheduler = nil
	if _, err := top.Parse("kill scheduler"); err == nil {
		t.Error("a scheduler can be killed where there is none")
	}
}
