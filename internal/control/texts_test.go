package control

import (
	"os"
	"strings"
	"testing"
)

func TestTexts(t *testing.T) {
	c, err := Texts{
		Network:  []byte("regions:\n  - name: north\n    lat: 39.9\n    lon: 116.4\n"),
		Domains:  []byte("domains:\n  - name: play.example.com\noverrides:\n  - id: one\n    pin: [edge-1, \"dc:south\"]\n"),
		Coverage: []byte("192.0.2.0/24 north telecom\n"),
	}.Parse()
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Snapshot; len(s.Regions) != 1 || len(s.Domains) != 1 || len(s.Overrides) != 1 || len(s.Nodes) != 0 || c.Coverage == nil {
		t.Errorf("read %+v", s)
	}
	if c, err = (Texts{}).Parse(); err != nil || c.Coverage != nil {
		t.Errorf("nothing at all: %+v, %v", c, err)
	}
}

func TestTextsFaults(t *testing.T) {
	f := func(name string, in Texts, want ...string) {
		t.Helper()
		_, err := in.Parse()
		if err == nil {
			t.Errorf("%s: no error", name)
			return
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q is not in %q", name, w, err)
			}
		}
	}
	f("nodes", Texts{Network: []byte("\nnodes:\n  - id: a\n    role: edge\n    region: x\n    capacity: 1\n")}, "network:2:", "nodes tell of themselves")
	f("unknown key", Texts{Network: []byte("region: x\n")}, "network:1:")
	f("no zone", Texts{Domains: []byte("domains:\n  - name: a.example.com\n    zone: example.org\n")}, "domains:3:", `no zone "example.org"`)
	f("empty override", Texts{Domains: []byte("overrides:\n  - id: one\n")}, "domains:2:", "does nothing")
	f("coverage", Texts{Coverage: []byte("192.0.2.0/24 north telecom\nnonsense\n")}, "coverage:", "line 2")
	f("everything at once", Texts{Network: []byte("a: 1\n"), Domains: []byte("b: 1\n"), Coverage: []byte("c\n")}, "network:", "domains:", "coverage:")
	f("too big", Texts{Network: make([]byte, maxYAML+1)}, "network has")
}

// TestTextsOfSamples reads the sample files, without their nodes, as a router would.
func TestTextsOfSamples(t *testing.T) {
	read := func(name string) []byte {
		b, err := os.ReadFile("../../configs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	c, err := Texts{Domains: read("domains.yaml"), Coverage: read("coverage.txt")}.Parse()
	if err != nil || len(c.Snapshot.Domains) == 0 {
		t.Errorf("%v", err)
	}
}
