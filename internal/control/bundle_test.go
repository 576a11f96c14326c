package control

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"millrace/internal/sched"
)

// snapshot returns a valid snapshot with n edges.
func snapshot(n int) *sched.Snapshot {
	s := &sched.Snapshot{
		Regions: []sched.Region{{Name: "north"}, {Name: "south"}},
		Zones:   []sched.Zone{{Name: "example.com", NS: []sched.NameServer{{Host: "ns1.example.com", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.53")}}}}},
		Domains: []sched.Domain{{Name: "play.example.com", Zone: "example.com", ECS: true, Redirect: true}},
		Costs:   sched.DefaultCosts(), Health: sched.DefaultHealth(),
	}
	for i := range n {
		s.Nodes = append(s.Nodes, sched.Node{
			ID: fmt.Sprintf("edge-%d", i), Role: "edge", Datacenter: fmt.Sprintf("dc-%d", i/20), Region: []string{"north", "south"}[i%2],
			ISPs:      []string{[]string{"telecom", "unicom", "mobile", "*"}[i%4]},
			Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})},
			HTTPPort:  8080, Host: fmt.Sprintf("edge-%d.cdn.example.com", i), Capacity: 1_250_000_000, Weight: 1,
		})
	}
	return s
}

const coverageText = "192.0.2.0/24 north telecom\n198.51.100.0/24 south unicom\n"

// bundle makes a bundle of n edges with a coverage file.
func bundle(t testing.TB, origin string, number uint64, n int) *Bundle {
	t.Helper()
	b, err := NewBundle(origin, number, time.Unix(1_700_000_000, 0), Contents{Snapshot: snapshot(n), Coverage: NewBlob([]byte(coverageText))})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBundle(t *testing.T) {
	b := bundle(t, "s1", 7, 3)
	got, err := ParseBundle(b.document)
	if err != nil {
		t.Fatal(err)
	}
	if got.Version != b.Version || !got.Made.Equal(b.Made) || !reflect.DeepEqual(got.Snapshot, b.Snapshot) || !bytes.Equal(got.document, b.document) {
		t.Errorf("got %+v, want %+v", got, b)
	}
	if got.Snapshot.Version != 7 || got.Coverage.Sum != b.Coverage.Sum {
		t.Errorf("version %d, coverage %+v", got.Snapshot.Version, got.Coverage)
	}
	if _, err := got.Coverage.Data(); err == nil {
		t.Error("the coverage file is here without having come")
	}
	if _, err := got.Compile(nil); err == nil {
		t.Error("it compiles without its coverage file")
	}
}

// TestToken: equal contents have equal tokens, whoever made them and when; others not.
func TestToken(t *testing.T) {
	base := bundle(t, "s1", 7, 3).Version.Token
	if got := bundle(t, "s2", 9, 3).Version.Token; got != base {
		t.Errorf("the same content has the tokens %s and %s", base, got)
	}
	other := func(name string, c Contents) {
		t.Helper()
		b, err := NewBundle("s1", 7, time.Unix(1_700_000_000, 0), c)
		if err != nil {
			t.Fatal(err)
		}
		if b.Version.Token == base {
			t.Errorf("%s has the same token", name)
		}
	}
	coverage := NewBlob([]byte(coverageText))
	other("one more node", Contents{Snapshot: snapshot(4), Coverage: coverage})
	other("no coverage", Contents{Snapshot: snapshot(3)})
	other("another coverage", Contents{Snapshot: snapshot(3), Coverage: NewBlob([]byte("192.0.2.0/24 north mobile\n"))})
	other("an mmdb file instead", Contents{Snapshot: snapshot(3), MMDB: []*Blob{coverage}})
	other("names of places", Contents{Snapshot: snapshot(3), Coverage: coverage, Geo: GeoNames{ISPs: map[string]string{"AS1": "telecom"}}})
}

func TestParseBundleRefuses(t *testing.T) {
	good := bundle(t, "s1", 7, 3)
	change := func(f func(w *wire)) []byte {
		var w wire
		if err := json.Unmarshal(good.document, &w); err != nil {
			t.Fatal(err)
		}
		f(&w)
		w.Version.Token = w.token()
		b, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	sum := strings.Repeat("0", 64)
	cases := []struct {
		name string
		text []byte
		want string
	}{
		{"nothing", nil, "not a snapshot"},
		{"no JSON", []byte("hello"), "not a snapshot"},
		{"half of it", good.document[:len(good.document)/2], "not a snapshot"},
		{"an empty object", []byte("{}"), "the snapshot has format 0"},
		{"another format", change(func(w *wire) { w.Format = 2 }), "format 2 and this program reads 1: run the same version"},
		{"damaged", bytes.Replace(good.document, []byte("edge-1"), []byte("edge-x"), 1), "the snapshot is damaged"},
		{"no origin", change(func(w *wire) { w.Version.Origin = "" }), "the origin"},
		{"an origin with a line end", change(func(w *wire) { w.Version.Origin = "a\nb" }), "the origin"},
		{"no snapshot", change(func(w *wire) { w.Snapshot = []byte("null") }), "the snapshot is missing"},
		{"a snapshot with faults", change(func(w *wire) { w.Snapshot = []byte(`{"nodes":[{"id":"a","capacity":0}]}`) }), "nodes[0] a: capacity"},
		{"a snapshot that is a list", change(func(w *wire) { w.Snapshot = []byte(`[]`) }), "the snapshot is missing"},
		{"nodes that are a word", change(func(w *wire) { w.Snapshot = []byte(`{"nodes":"a"}`) }), "the snapshot: json"},
		{"names that are a list", change(func(w *wire) { w.Geo = []byte(`{"regions":[]}`) }), "the names of places: json"},
		{"a sum that is a path", change(func(w *wire) { w.Coverage.Sum = "../../etc/passwd" }), "the sum of a file"},
		{"a sum in capitals", change(func(w *wire) { w.Coverage.Sum = strings.Repeat("A", 64) }), "the sum of a file"},
		{"a file below zero", change(func(w *wire) { w.Coverage.Size = -1 }), "a file has -1 bytes"},
		{"a file too big", change(func(w *wire) { w.MMDB = []*Blob{{Sum: sum, Size: MaxBlob + 1}} }), "a file has"},
		{"too many files", change(func(w *wire) {
			for range MaxMMDB + 1 {
				w.MMDB = append(w.MMDB, &Blob{Sum: sum})
			}
		}), "9 mmdb files"},
		{"a file that is null", change(func(w *wire) { w.MMDB = []*Blob{nil} }), "without a sum"},
		{"too many objects", []byte(`{"snapshot":[` + strings.Repeat("{},", maxObjects+1) + `{}]}`), "objects, at most"},
		{"too big", make([]byte, MaxSnapshot+1), "bytes, at most"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			b, err := ParseBundle(tc.text)
			if b != nil || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v; want %q in it", b, err, tc.want)
			}
		})
	}
	// A newer server may say more than this program knows.
	later := change(func(w *wire) { w.Snapshot = bytes.Replace(w.Snapshot, []byte(`{`), []byte(`{"later":1,`), 1) })
	if _, err := ParseBundle(later); err != nil {
		t.Errorf("a key of a later version: %v", err)
	}
}

func TestNewBundleRefuses(t *testing.T) {
	if _, err := NewBundle("no id", 1, time.Now(), Contents{Snapshot: snapshot(1)}); err == nil {
		t.Error("an origin with a blank is taken")
	}
}

func TestCompile(t *testing.T) {
	first := bundle(t, "s1", 1, 3)
	a, err := first.Compile(nil)
	if err != nil || a.Plan.Node("edge-2") == nil || a.Table.Locate(netip.MustParsePrefix("192.0.2.7/32")).Region != "north" {
		t.Fatalf("got %+v, %v", a, err)
	}
	if again, _ := first.Compile(nil); again != a {
		t.Error("it is compiled twice")
	}
	next := bundle(t, "s1", 2, 4)
	b, err := next.Compile(first)
	if err != nil || b.Table != a.Table {
		t.Errorf("the geo table is made again of the same files: %v", err)
	}
	plain, err := NewBundle("s1", 3, time.Now(), Contents{Snapshot: snapshot(3)})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := plain.Compile(next); err != nil || c.Table == a.Table || c.Table.Locate(netip.MustParsePrefix("192.0.2.7/32")).Region != "" {
		t.Errorf("the coverage file is still in use: %v", err)
	}
	broken, err := NewBundle("s1", 4, time.Now(), Contents{Snapshot: snapshot(3), Coverage: NewBlob([]byte("hello"))})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := broken.Compile(first); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("a broken coverage file: %v", err)
		}
	}
	mmdb, err := NewBundle("s1", 5, time.Now(), Contents{Snapshot: snapshot(3), MMDB: []*Blob{NewBlob([]byte("hello"))}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mmdb.Compile(nil); err == nil {
		t.Error("a broken mmdb file compiles")
	}
}

func FuzzParseBundle(f *testing.F) {
	good := bundle(f, "s1", 7, 2)
	f.Add(good.document, true)
	f.Add([]byte(`{"format":1,"version":{"origin":"a","number":1,"token":""},"snapshot":{},"geo":{}}`), true)
	f.Add([]byte(`{"format":1,"mmdb":[null,{}]}`), false)
	f.Fuzz(func(t *testing.T, document []byte, sign bool) {
		if sign { // the token is right, so that what it stands for is looked at
			var w wire
			if json.Unmarshal(document, &w) != nil {
				return
			}
			w.Version.Token = w.token()
			var err error
			if document, err = json.Marshal(w); err != nil {
				return
			}
		}
		b, err := ParseBundle(document)
		if (b == nil) == (err == nil) {
			t.Fatalf("got %v and %v", b, err)
		}
		if b != nil && len(b.blobs()) == 0 {
			if _, err := b.Compile(nil); err != nil {
				t.Errorf("what is valid does not compile: %v", err)
			}
		}
	})
}
