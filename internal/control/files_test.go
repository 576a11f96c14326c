package control

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/sched"
)

const (
	nodesText = `nodes:
  - {id: north-1, role: edge, region: north, isps: [telecom], addresses: [192.0.2.1], http_port: 80, capacity: 1GB}
  - {id: south-1, role: edge, region: south, isps: ["*"], addresses: [192.0.2.2], http_port: 80, capacity: 2GB}
regions:
  - {name: north, near: {south: 30}}
  - name: south
costs:
  carried: 12
`
	domainsText = `domains:
  - name: play.example.com
    recheck: 20
`
)

// folder writes files and returns a config that names them.
func folder(t *testing.T, nodes, domains, coverage string) FilesConfig {
	t.Helper()
	dir := t.TempDir()
	cfg := FilesConfig{Nodes: filepath.Join(dir, "nodes.yaml"), Domains: filepath.Join(dir, "domains.yaml"), Coverage: filepath.Join(dir, "coverage.txt")}
	write(t, cfg.Nodes, nodes)
	write(t, cfg.Domains, domains)
	write(t, cfg.Coverage, coverage)
	return cfg
}

// write replaces a file. Its time is that of the bubble, so that it differs.
func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if now := time.Now(); now.Year() == 2000 {
		if err := os.Chtimes(name, now, now); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLoad(t *testing.T) {
	c, err := folder(t, nodesText, domainsText, coverageText).Load()
	if err != nil {
		t.Fatal(err)
	}
	s := c.Snapshot
	if len(s.Nodes) != 2 || s.Nodes[1].Capacity != 2e9 || s.Regions[0].Near["south"] != 30 || s.Domains[0].Recheck != 20 {
		t.Errorf("got %+v", s)
	}
	if want := sched.DefaultCosts(); s.Costs.Carried != 12 || s.Costs.Load != want.Load || s.Health != sched.DefaultHealth() {
		t.Errorf("what the file leaves out has no default: %+v, %+v", s.Costs, s.Health)
	}
	if text, err := c.Coverage.Data(); err != nil || string(text) != coverageText {
		t.Errorf("coverage is %q, %v", text, err)
	}
}

// TestLoadFaults: each fault is told with its file and line.
func TestLoadFaults(t *testing.T) {
	replace := strings.NewReplacer
	cases := []struct {
		name, nodes, domains, coverage string
		want                           []string
	}{
		{"mistyped", replace("capacity: 2GB", "capacty: 2GB").Replace(nodesText), domainsText, "", []string{
			`nodes.yaml:3: nodes[1]: unknown key "capacty"; did you mean "capacity"?`,
		}},
		{"out of range", replace("capacity: 2GB", "capacity: 0").Replace(nodesText), domainsText, "", []string{
			"nodes.yaml:3: nodes[1] south-1: capacity: 0 must be above 0",
		}},
		{"a region that is missing", replace("region: south", "region: west").Replace(nodesText), domainsText, "", []string{
			`nodes.yaml:3: nodes[1] south-1: region: there is no region "west": declare it under regions`,
		}},
		{"costs", replace("carried: 12", "carried: 1200").Replace(nodesText), domainsText, "", []string{"nodes.yaml:8: costs: carried: 1200"}},
		{"two files", nodesText + "no: 1\n", domainsText + "overrides: 1\n", "hello\n", []string{
			`nodes.yaml:9: unknown key "no"`, "domains.yaml:4: overrides: want a list", "coverage.txt: coverage line 1: has 1 fields",
		}},
		{"a key of the other file", nodesText + "domains: []\n", domainsText, "", []string{`nodes.yaml:9: unknown key "domains"`}},
		{"a domain", nodesText, domainsText + "    answers: 99\n", "", []string{"domains.yaml:4: domains[0] play.example.com: answers: 99"}},
		{"an override", nodesText, domainsText + "overrides:\n  - {id: a, ban: [west-1]}\n", "", []string{
			`domains.yaml:5: overrides[0] a: ban: there is no node "west-1"`,
		}},
		{"coverage", nodesText, domainsText, "192.0.2.0/24 north telecom\n192.0.2.1/24 north telecom\n", []string{"coverage.txt: coverage line 2: 192.0.2.1/24 has bits set"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			cfg := folder(t, tc.nodes, tc.domains, tc.coverage)
			_, err := cfg.Load()
			if err == nil {
				t.Fatal("no error")
			}
			got := strings.ReplaceAll(err.Error(), filepath.Dir(cfg.Nodes)+"/", "")
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("got\n%s\nwant %q in it", got, want)
				}
			}
			if strings.Count(got, "\n")+1 != len(tc.want) {
				t.Errorf("got\n%s\nwant %d lines", got, len(tc.want))
			}
		})
	}
	cfg := folder(t, nodesText, domainsText, "")
	cfg.Coverage, cfg.MMDB = filepath.Dir(cfg.Nodes), []string{cfg.Nodes + ".no"}
	_, err := cfg.Load()
	for _, want := range []string{"is no regular file", "nodes.yaml.no: no such file"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	big := folder(t, nodesText, domainsText, "")
	if err := os.Truncate(big.Nodes, maxYAML+1); err != nil {
		t.Fatal(err)
	}
	if _, err := big.Load(); err == nil || !strings.Contains(err.Error(), "is it the right file?") {
		t.Errorf("a file that is too big: %v", err)
	}
}

// text is a log that is read while it is written.
type text struct {
	mu sync.Mutex
	b  strings.Builder
}

func (t *text) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(b)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

func (t *text) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b.Reset()
}

// TestFilesChange: changes are noticed without a signal, but not while they are made;
// a fault is refused, told once, and what was there stays.
func TestFilesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &text{}
		cfg := folder(t, nodesText, domainsText, coverageText)
		f, err := NewFiles(cfg, "s1", slog.New(slog.NewTextHandler(log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		one, err := f.Next(t.Context(), nil)
		if err != nil || one.Version.Origin != "s1" || one.compiled.Plan == nil {
			t.Fatalf("got %+v, %v", one, err)
		}
		got := make(chan *Bundle, 1)
		wait := func(have *Bundle) {
			go func() {
				b, err := f.Next(t.Context(), have)
				if err != nil && t.Context().Err() == nil {
					t.Error(err)
				}
				got <- b
			}()
		}
		none := func(within time.Duration) {
			t.Helper()
			select {
			case b := <-got:
				t.Fatalf("got %v", b.Version)
			case <-time.After(within):
			}
		}
		wait(one)
		none(time.Minute)
		// A file that is being written for ten seconds, and could be read at any time.
		for i := range 20 {
			write(t, cfg.Domains, domainsText[:len("domains:\n")+i])
			none(500 * time.Millisecond)
		}
		write(t, cfg.Domains, domainsText+"    ttl: 30s\n")
		begun := time.Now()
		two := <-got
		if took := time.Since(begun); took > 3*time.Second || two.Snapshot.Domains[0].TTL != sched.Duration(30*time.Second) {
			t.Errorf("got %+v after %v", two.Snapshot.Domains, took)
		}
		if two.Version.Number <= one.Version.Number || two.compiled.Table != one.compiled.Table {
			t.Errorf("version %v after %v", two.Version, one.Version)
		}
		log.Reset()
		wait(two)
		write(t, cfg.Nodes, "nodes: [")
		none(time.Minute)
		if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "new files refused, the old ones stay in use") {
			t.Errorf("a broken file is %d lines:\n%s", n, log.String())
		}
		if s := f.Status(); s.Version != two.Version || !strings.Contains(s.Error, "nodes.yaml:1: not YAML") {
			t.Errorf("status %+v", s)
		}
		if err := os.Remove(cfg.Coverage); err != nil {
			t.Fatal(err)
		}
		none(time.Minute)
		write(t, cfg.Coverage, coverageText)
		write(t, cfg.Nodes, nodesText) // as it was: nothing has changed
		none(time.Minute)
		if s := f.Status(); s.Error != "" {
			t.Errorf("status %+v", s)
		}
		// Reload says so, and finds what has the old time and size.
		log.Reset()
		f.Reload()
		none(time.Second)
		if !strings.Contains(log.String(), "nothing has changed") {
			t.Errorf("log %s", log.String())
		}
		info, err := os.Stat(cfg.Domains)
		if err != nil {
			t.Fatal(err)
		}
		write(t, cfg.Domains, domainsText+"    ttl: 40s\n")
		if err := os.Chtimes(cfg.Domains, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
		none(time.Minute)
		f.Reload()
		f.Reload()
		if b := <-got; b.Snapshot.Domains[0].TTL != sched.Duration(40*time.Second) {
			t.Errorf("got %+v", b.Snapshot.Domains)
		}
	})
}

// TestFilesEmptied: files that are written in their place are valid now and then while
// little of them is there.
func TestFilesEmptied(t *testing.T) {
	cfg := folder(t, nodesText, domainsText, coverageText)
	f, err := NewFiles(cfg, "s1", silent)
	if err != nil {
		t.Fatal(err)
	}
	have, err := f.Next(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	regions := nodesText[strings.Index(nodesText, "regions:"):]
	relay := strings.ReplaceAll(nodesText, "role: edge", "role: relay")
	for _, tc := range []struct{ nodes, domains, want string }{
		{"", domainsText, "nodes.yaml is empty: was it cut off"},
		{nodesText, " \n", "domains.yaml is empty: was it cut off"},
		{"nodes:\n" + regions, domainsText, "nodes.yaml: none of 2 edges is left: taken for a mistake"},
		{relay, domainsText, "nodes.yaml: none of 2 edges is left"},
		{nodesText, "domains: []", "domains.yaml: none of 1 domains is left: taken for a mistake; if it is none, start the scheduler again"},
		{nodesText, "# later", "none of 1 domains is left"},
	} {
		write(t, cfg.Nodes, tc.nodes)
		write(t, cfg.Domains, tc.domains)
		if b, err := f.read(have); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, %v; want %q", b, err, tc.want)
		}
	}
	// Whoever starts with nothing means it.
	write(t, cfg.Nodes, "nodes: []")
	if b, err := f.read(nil); err != nil || len(b.Snapshot.Nodes) != 0 {
		t.Errorf("got %v, %v", b, err)
	}
}

func TestFilesBegin(t *testing.T) {
	cfg := folder(t, nodesText, "domans: []", coverageText)
	f, err := NewFiles(cfg, "s1", silent)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Next(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "did you mean") {
		t.Errorf("a scheduler begins with a broken file: %v", err)
	}
	if _, err := NewFiles(FilesConfig{MMDB: make([]string, MaxMMDB+1)}, "s1", silent); err == nil || !strings.Contains(err.Error(), "mmdb names 9 files") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Next(ctx, bundle(t, "s1", 1, 1)); err == nil {
		t.Error("it goes on after the end of its context")
	}
}

func FuzzFiles(f *testing.F) {
	f.Add([]byte(nodesText), []byte(domainsText), []byte(coverageText))
	f.Add([]byte("nodes: [{id: a}]"), []byte("zones: [{name: a.b, ns: [{host: c.d}]}]"), []byte("# none"))
	f.Fuzz(func(t *testing.T, nodes, domains, coverage []byte) {
		if len(nodes)+len(domains)+len(coverage) > 1<<14 {
			return
		}
		c, err := folder(t, string(nodes), string(domains), string(coverage)).Load()
		if err != nil {
			return
		}
		b, err := NewBundle("s1", 1, time.Unix(1, 0), c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Compile(nil); err != nil {
			t.Errorf("what was read does not compile: %v", err)
		}
		if _, err := ParseBundle(b.document); err != nil {
			t.Errorf("what was read cannot be sent: %v", err)
		}
	})
}
