package store

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"pgregory.net/rapid"
)

// history in a word: "3" is the third version of a document, "3'" another third one.
func versionsOf(words string) (out []version) {
	for _, w := range strings.Fields(words) {
		var n uint64
		_, _ = fmt.Sscanf(w, "%d", &n)
		if id, number, ok := strings.Cut(w, "@"); ok { // the edit that was 3, by another number
			w = id
			_, _ = fmt.Sscanf(number, "%d", &n)
		}
		out = append(out, version{Document{Key: "edits", Version: n}, w})
	}
	return out
}

func TestCompare(t *testing.T) {
	f := func(name, mine, theirs string, way way, wantMine string, cut bool) {
		t.Helper()
		var forgotten uint64
		if before, after, ok := strings.Cut(theirs, "|"); ok { // forgotten | theirs
			_, _ = fmt.Sscanf(before, "%d", &forgotten)
			theirs = after
		}
		t2 := versionsOf(theirs)
		slices.Reverse(t2)
		m := compare(versionsOf(mine), t2, forgotten)
		var got []string
		for _, v := range m.mine {
			got = append(got, v.ID)
		}
		if m.way != way || strings.Join(got, " ") != wantMine || m.cut != cut {
			t.Errorf("%s: got way %d, mine %v, cut %v; want way %d, mine %s, cut %v", name, m.way, got, m.cut, way, wantMine, cut)
		}
		if len(t2) > 0 && m.theirs != headOf(t2[0]) {
			t.Errorf("%s: their newest is %v", name, m.theirs)
		}
	}
	f("nothing anywhere", "", "", wayEqual, "", false)
	f("equal", "1 2 3", "1 2 3", wayEqual, "", false)
	f("equal, with holes", "1 3", "2 3", wayEqual, "", false)
	f("redis is empty", "1 2 3", "", wayBehind, "1 2 3", false)
	f("redis is an old copy", "1 2 3 4", "1 2", wayBehind, "3 4", false)
	f("redis is an old copy, mine has little", "2 3 4", "1 2", wayBehind, "3 4", false)
	f("mine is empty", "", "1 2", wayAhead, "", false)
	f("mine is old", "1 2", "1 2 3", wayAhead, "", false)
	f("mine is old, redis has forgotten it", "1 2", "2 | 3 4", wayAhead, "", true)
	f("mine is old, redis has forgotten some", "1 2 3'", "2 | 3 4", wayForked, "3'", true)
	f("theirs are others", "1 2", "3 4", wayForked, "1 2", true)
	f("forked", "1 2 3", "1 2 3'", wayForked, "3", true)
	f("forked, theirs is longer", "1 2 3", "1 2 3' 4'", wayForked, "3", true)
	f("forked, mine is longer", "1 2 3 4 5", "1 2 3'", wayForked, "3 4 5", true)
	f("forked from the beginning", "1 2", "1'", wayForked, "1 2", true)
	f("rescued by another", "1 2 3", "1 2 3' 3@4 3'again@5", wayAhead, "", true)
	f("rescued by one that had not all", "1 2", "1' 2@2 1'again@3", wayForked, "1", true)
	f("rescued in part", "1 2 3 4", "1 2 3' 3@4 3'again@5", wayForked, "4", true)
}

func TestRescue(t *testing.T) {
	newest := version{Document{Key: "edits", Version: 40, Author: Author{"bob", ""}, Body: []byte("in use")}, "40"}
	f := func(lost []version, want string) {
		t.Helper()
		var got []string
		for i, v := range rescue(lost, newest) {
			got = append(got, fmt.Sprintf("%d=%s", v.Version, v.ID[:min(2, len(v.ID))]))
			if last := i == len(rescue(lost, newest))-1; last && string(v.Body) != "in use" {
				t.Errorf("the last one is %+v", v)
			}
		}
		if all := strings.Join(got, " "); !strings.HasPrefix(all, want) || len(got) != len(strings.Fields(want))+1 {
			t.Errorf("got %s, want %s and the one in use", all, want)
		}
	}
	f(versionsOf("38"), "41=38")
	f(versionsOf("38 39"), "41=38 42=39")
	many := versionsOf("10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31")
	f(many, "41=12 42=13 43=14 44=15 45=16 46=17 47=18 48=19 49=20 50=21 51=22 52=23 53=24 54=25 55=26 56=27 57=28 58=29 59=30 60=31")
	big := versionsOf("38 39")
	big[0].Body = make([]byte, MaxBody)
	big[1].Body = []byte("small")
	f(big, "41=39")
}

// world is a Redis and routers that look at it when they are told to.
type world struct {
	t       *rapid.T
	mini    *miniredis.Miniredis
	raw     *Redis
	routers []*Cached
	kept    map[string]bool // bodies of edits that were told to be kept
	edits   int
}

func (w *world) look(c *Cached) {
	state, err := w.raw.state(w.t.Context())
	c.look(w.t.Context(), state, err)
	if _, err := c.Away(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) edit(c *Cached, key string) {
	d, _ := c.local.newestOf(key)
	w.edits++
	body := fmt.Sprintf("%s %d", key, w.edits)
	if _, err := c.Edit(w.t.Context(), key, d.Version, []byte(body), anna); err == nil {
		w.kept[body] = true
	}
}

// TestNoEditIsLost lets routers edit, look and be away while Redis loses everything or
// goes back to what it was: at the end every edit that was told to be kept is in the
// history, which is the same everywhere.
func TestNoEditIsLost(t *testing.T) {
	mini := startMini(t)
	cfg := redisConfig("redis://" + mini.Addr())
	rapid.Check(t, func(t *rapid.T) {
		mini.FlushAll()
		raw, err := NewRedis(cfg, silent)
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		w := &world{t: t, mini: mini, raw: raw, kept: map[string]bool{}}
		for range 3 {
			local, err := NewMemory(MemoryConfig{}, silent)
			if err != nil {
				t.Fatal(err)
			}
			c := NewCached(raw, local, silent)
			w.routers = append(w.routers, c)
			w.look(c)
		}
		var dump map[string]map[string]string
		fences := map[Fence]bool{}
		numbers := map[uint64]bool{}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			c := w.routers[rapid.IntRange(0, len(w.routers)-1).Draw(t, "router")]
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				mini.FlushAll()
			case 1:
				dump = takeDump(mini)
			case 2:
				putDump(mini, dump)
			case 3, 4:
				w.look(c)
			case 5:
				who := fmt.Sprint(slices.Index(w.routers, c))
				mini.Del(raw.key("lease")) // its time is over
				fence, held, err := c.Lease(t.Context(), who, 1000000)
				if err != nil || !held {
					t.Fatal(held, err)
				}
				if fences[fence] {
					t.Fatalf("fence %d is given twice", fence)
				}
				fences[fence] = true
				p, err := c.Publish(t.Context(), fence, "plan", nil)
				if err != nil {
					t.Fatal(err)
				}
				if numbers[p.Number] {
					t.Fatalf("number %d is given twice", p.Number)
				}
				numbers[p.Number] = true
				for _, c := range w.routers { // as a message makes them do
					w.look(c)
				}
			default:
				w.edit(c, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"))
			}
		}
		for range 4 {
			for _, c := range w.routers {
				w.look(c)
			}
		}
		w.check()
	})
}

// check compares what all have, and finds every edit.
func (w *world) check() {
	found := map[string]bool{}
	for _, key := range []string{"a", "b"} {
		want := w.routers[0].local.versions(key)
		for i, c := range w.routers {
			got := c.local.versions(key)
			if !slices.EqualFunc(got, want, func(a, b version) bool {
				return headOf(a) == headOf(b) && string(a.Body) == string(b.Body)
			}) {
				w.t.Fatalf("router %d has another history of %s:\n%v\n%v", i, key, got, want)
			}
		}
		theirs, _, err := w.raw.history(w.t.Context(), key, MaxHistory)
		if err != nil {
			w.t.Fatal(err)
		}
		slices.Reverse(theirs)
		if !slices.EqualFunc(theirs, want, func(a, b version) bool { return headOf(a) == headOf(b) }) {
			w.t.Fatalf("redis has another history of %s:\n%v\n%v", key, theirs, want)
		}
		for _, v := range want {
			found[string(v.Body)] = true
		}
	}
	for _, body := range slices.Sorted(maps.Keys(w.kept)) {
		if !found[body] {
			w.t.Fatalf("edit %q was told to be kept, and is nowhere", body)
		}
	}
}

// takeDump copies the hashes of a Redis, which are all that it keeps for good.
func takeDump(m *miniredis.Miniredis) map[string]map[string]string {
	dump := map[string]map[string]string{}
	for _, key := range m.Keys() {
		if m.Type(key) != "hash" {
			continue
		}
		dump[key] = map[string]string{}
		fields, _ := m.HKeys(key)
		for _, f := range fields {
			dump[key][f] = m.HGet(key, f)
		}
	}
	return dump
}

// putDump makes a Redis what it was.
func putDump(m *miniredis.Miniredis, dump map[string]map[string]string) {
	m.FlushAll()
	for key, fields := range dump {
		for f, v := range fields {
			m.HSet(key, f, v)
		}
	}
}
