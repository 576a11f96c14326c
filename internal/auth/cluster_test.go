package auth

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"millrace/internal/session"
	"millrace/internal/stream"
)

func newCluster(t testing.TB, keys ...string) *Cluster {
	t.Helper()
	cfg := DefaultClusterConfig()
	cfg.Keys = keys
	c, err := NewCluster(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var mark = Mark{
	Stream: "live/room", Node: "relay-1", Via: []string{"edge-1", "relay-1"}, Purpose: Peer,
	Owner: "00ff", Epoch: 1_800_000_000_123,
}

func TestClusterConfig(t *testing.T) {
	// want is a part of the message; empty means valid.
	f := func(name string, keys []string, skew time.Duration, want string) {
		t.Helper()
		err := ClusterConfig{Keys: keys, Skew: skew}.Validate()
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v, want no error", name, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: error %v, want one with %q", name, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: error %q repeats a key", name, err)
		}
	}
	f("nothing", nil, 0, "")
	f("two keys", []string{secretA, secretB}, time.Second, "")
	f("longest skew", nil, 10*time.Minute, "")
	f("short key", []string{secretA, "hush-hush-hush!"}, 0, "keys: key number 2 must be 16 to 256 bytes")
	f("empty key", []string{""}, 0, "keys: key number 1 must be")
	f("long key", []string{strings.Repeat("hush", 65)}, 0, "keys: key number 1 must be")
	f("many keys", make([]string, 5), 0, "keys: has 5 keys, must have 0 to 4")
	f("short skew", nil, time.Millisecond, "skew: is 1ms, must be 1s to 10m0s")
	f("negative skew", nil, -time.Second, "skew: is -1s, must be")
	f("long skew", nil, time.Hour, "skew: is 1h0m0s, must be")
}

func TestClusterWithoutKeyBelievesEverything(t *testing.T) {
	c := newCluster(t)
	if c.Enabled() {
		t.Error("it is enabled")
	}
	if s := c.Sign(t0, mark); s != "" {
		t.Errorf("it signs: %q", s)
	}
	for _, s := range []string{"", "x", "1:2", newCluster(t, secretA).Sign(t0, mark)} {
		if err := c.Verify(t0, mark, s); err != nil {
			t.Errorf("signature %q: %v", s, err)
		}
	}
}

func TestClusterVerify(t *testing.T) {
	a, b := newCluster(t, secretA), newCluster(t, secretB)
	good := a.Sign(t0, mark)
	f := func(name string, c *Cluster, m Mark, signature string, after time.Duration, want session.Reason) {
		t.Helper()
		if got := reason(t, c.Verify(t0.Add(after), m, signature)); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	f("good", a, mark, good, 0, session.None)
	f("30 s ago", a, mark, good, 30*time.Second, session.None)
	f("31 s ago", a, mark, good, 31*time.Second, session.ClockSkew)
	f("30 s ahead", a, mark, good, -30*time.Second, session.None)
	f("31 s ahead", a, mark, good, -31*time.Second, session.ClockSkew)
	f("none", a, mark, "", 0, session.Unsigned)
	f("another key", b, mark, good, 0, session.BadSignature)
	f("another key, long ago", b, mark, good, time.Hour, session.BadSignature)
	f("upper case", a, mark, strings.ToUpper(good), 0, session.BadSignature)
	f("cut", a, mark, good[:len(good)-1], 0, session.BadSignature)
	f("longer", a, mark, good+"0", 0, session.BadSignature)
	_, sum, _ := strings.Cut(good, ":")
	for _, s := range []string{sum, ":" + sum, "0:" + sum, "-1:" + sum, "01800000000:" + sum, "+1800000000:" + sum, "1800000000000:" + sum, "x", ":", strings.Repeat("9", 5000)} {
		f(s, a, mark, s, 0, session.BadSignature)
	}
	other := mark
	other.Via = []string{"edge-1relay-1"}
	f("other nodes passed", a, other, good, 0, session.BadSignature)
}

// Each step of a rotation leaves all nodes understanding one another, in whatever
// order they take it.
func TestClusterRotation(t *testing.T) {
	steps := [][]string{{secretA}, {secretA, secretB}, {secretB, secretA}, {secretB}}
	for i := range len(steps) - 1 {
		old, next := newCluster(t, steps[i]...), newCluster(t, steps[i+1]...)
		for _, pair := range [][2]*Cluster{{old, next}, {next, old}} {
			if err := pair[0].Verify(t0, mark, pair[1].Sign(t0, mark)); err != nil {
				t.Errorf("step %d: %v", i+1, err)
			}
		}
	}
}

func TestClusterReload(t *testing.T) {
	keys := []string{secretA}
	c, err := NewCluster(ClusterConfig{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	keys[0] = secretB // theirs now
	good := newCluster(t, secretA).Sign(t0, mark)
	if err := c.Reload(ClusterConfig{Keys: []string{"short"}}); err == nil {
		t.Error("a short key is accepted")
	}
	if err := c.Verify(t0.Add(29*time.Second), mark, good); err != nil || !c.Enabled() {
		t.Errorf("after a reload that failed: %v, enabled %v", err, c.Enabled())
	}
	if err := c.Reload(ClusterConfig{}); err != nil || c.Enabled() {
		t.Errorf("reload without keys: %v, enabled %v", err, c.Enabled())
	}
	if _, err := NewCluster(ClusterConfig{Skew: -1}); err == nil {
		t.Error("a bad configuration is accepted")
	}

	var wg sync.WaitGroup
	for _, k := range []string{secretA, secretB} {
		wg.Go(func() {
			for range 100 {
				if err := c.Reload(ClusterConfig{Keys: []string{k, secretA}}); err != nil {
					t.Error(err)
				}
				_ = c.Sign(t0, mark)
			}
		})
	}
	wg.Wait()
}

func drawMark(t *rapid.T, label string) Mark {
	id := rapid.StringMatching(`[ab:1\n]{0,4}`)
	return Mark{
		Stream: stream.Name(id.Draw(t, label+" stream")), Node: id.Draw(t, label+" node"),
		Via:     rapid.SliceOfN(id, 0, 3).Draw(t, label+" via"),
		Purpose: Purpose(rapid.IntRange(0, int(purposes)-1).Draw(t, label+" purpose")),
		Owner:   id.Draw(t, label+" owner"), Epoch: rapid.Int64Range(-2, 2).Draw(t, label+" epoch"),
	}
}

// A signature is good for its own mark and for no other, whatever separators are in
// the fields.
func TestSignatureIsOfOneMark(t *testing.T) {
	c := newCluster(t, secretA)
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawMark(t, "a"), drawMark(t, "b")
		at := t0.Add(time.Duration(rapid.IntRange(-30, 30).Draw(t, "skew")) * time.Second)
		s := c.Sign(at, a)
		if err := c.Verify(t0, a, s); err != nil {
			t.Fatalf("own signature: %v", err)
		}
		same := slices.Equal(a.Via, b.Via) && a.Stream == b.Stream && a.Node == b.Node && a.Purpose == b.Purpose &&
			a.Owner == b.Owner && a.Epoch == b.Epoch
		if err := c.Verify(t0, b, s); (err == nil) != same {
			t.Fatalf("signature of %+v for %+v: %v", a, b, err)
		}
	})
}

func TestCheckPath(t *testing.T) {
	f := func(via string, want session.Reason) {
		t.Helper()
		if got := reason(t, Mark{Via: strings.Fields(via)}.CheckPath("self")); got != want {
			t.Errorf("via %q: %v, want %v", via, got, want)
		}
	}
	f("", session.None)
	f("a", session.None)
	f("self", session.Loop)
	f("self a b", session.Loop)
	f("a self b", session.Loop)
	f("Self", session.None)
	f("a b c d e f", session.None)
	f("a b c d e f g", session.TooManyHops)
	f("a b c d e f self", session.Loop)
}

func TestPurposeWords(t *testing.T) {
	for p := range purposes {
		got, ok := ParsePurpose(p.String())
		if b, err := p.MarshalText(); got != p || !ok || err != nil || string(b) != p.String() {
			t.Errorf("%v: parsed as %v %v, text %q %v", p, got, ok, b, err)
		}
	}
	for _, s := range []string{"", "Pull", "pull ", "purpose(9)"} {
		if p, ok := ParsePurpose(s); ok {
			t.Errorf("%q is %v", s, p)
		}
	}
	if s := Purpose(9).String(); s != "purpose(9)" {
		t.Errorf("unknown purpose is %q", s)
	}
}

func TestValidNodeID(t *testing.T) {
	for _, s := range []string{"a", "Edge_1.dc-2", strings.Repeat("x", MaxNodeID)} {
		if !ValidNodeID(s) {
			t.Errorf("%q is refused", s)
		}
	}
	for _, s := range []string{"", "a b", "a,b", "a(b", "a:1", "é", "a\n", strings.Repeat("x", MaxNodeID+1)} {
		if ValidNodeID(s) {
			t.Errorf("%q is accepted", s)
		}
	}
}

// FuzzClusterVerify gives Verify whatever a peer can send.
func FuzzClusterVerify(f *testing.F) {
	c := newCluster(f, secretA, secretB)
	good := c.Sign(t0, mark)
	for _, s := range []string{"", ":", good, "1:" + strings.Repeat("0", 64), strings.Repeat("9", 20) + ":"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		err := c.Verify(t0, mark, s)
		if reason(t, err) == session.None && s != good && s != newCluster(t, secretB).Sign(t0, mark) {
			t.Errorf("accepted %q", s)
		}
	})
}

func BenchmarkClusterVerify(b *testing.B) {
	c := newCluster(b, secretA, secretB)
	s := c.Sign(t0, mark)
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Verify(t0, mark, s); err != nil {
			b.Fatal(err)
		}
	}
}

func TestDerive(t *testing.T) {
	f := func(keys []string, purpose string) [][]byte {
		t.Helper()
		c, err := NewCluster(ClusterConfig{Keys: keys})
		if err != nil {
			t.Fatal(err)
		}
		return c.Derive(purpose)
	}
	one, two := strings.Repeat("1", 32), strings.Repeat("2", 32)
	if got := f(nil, "a"); got != nil {
		t.Errorf("without a key: %x", got)
	}
	both, turned := f([]string{one, two}, "a"), f([]string{two, one}, "a")
	if len(both) != 2 || !bytes.Equal(both[0], turned[1]) || !bytes.Equal(both[1], turned[0]) {
		t.Errorf("of two keys: %x and %x", both, turned)
	}
	if other := f([]string{one}, "b"); bytes.Equal(other[0], both[0]) || bytes.Equal(both[0], both[1]) {
		t.Error("two purposes or keys give the same secret")
	}
}
