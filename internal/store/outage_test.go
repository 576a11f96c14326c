package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestWatchOutlivesRedis goes on watching over a redis that is killed and starts again
// with nothing in it.
func TestWatchOutlivesRedis(t *testing.T) {
	server := startRedis(t)
	cfg := redisConfig(server.url())
	a, b := openCached(t, cfg, ""), openCached(t, cfg, "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watchers := []<-chan Change{
		must[<-chan Change](t)(a.Watch(ctx)), must[<-chan Change](t)(b.Watch(ctx)),
	}
	all := func(want Change) {
		t.Helper()
		for _, c := range watchers {
			expect(t, c, want)
		}
	}
	must[Document](t)(a.Edit(ctx, "before", 0, nil, anna))
	all(Change{Documents, "before"})
	server.kill(t)
	a.reachable(t, false)
	b.reachable(t, false)
	server.start(t)
	a.reachable(t, true)
	b.reachable(t, true)
	must[Document](t)(b.Edit(ctx, "after", 0, nil, anna))
	all(Change{Documents, "after"})
	if err := a.Announce(ctx, Entry{"nodes", "a", nil, time.Minute}); err != nil {
		t.Fatal(err)
	}
	all(Change{Kind: "nodes"})
}

// TestRouterComesBackWithALostEdit has one router miss that redis lost what it had, and
// another one edit meanwhile: both edits are in the history, and the network does not
// change under anybody's hands.
func TestRouterComesBackWithALostEdit(t *testing.T) {
	server := startRedis(t)
	cfg := redisConfig(server.url())
	ctx := t.Context()
	fileA, fileB := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	a, b := openCached(t, cfg, fileA), openCached(t, cfg, fileB)
	a.edits(t, 6, b)
	b.stop()
	lost := must[Document](t)(a.Edit(ctx, "edits", 6, []byte("what a made"), Author{"anna", "seventh"}))
	a.stop()
	server.kill(t)
	server.start(t)
	b = openCached(t, cfg, fileB)
	inUse := must[Document](t)(b.Edit(ctx, "edits", 6, []byte("what b made"), Author{"bob", "seventh as well"}))
	if lost.Version != 7 || inUse.Version != 7 {
		t.Fatalf("versions %d and %d", lost.Version, inUse.Version)
	}
	a = openCached(t, cfg, fileA)
	third := openCached(t, cfg, "")
	for name, r := range map[string]*router{"a": a, "b": b, "a third": third} {
		eventually(t, name+" has both edits", func() bool {
			return len(must[[]Document](t)(r.History(ctx, "edits", 100))) == 9
		})
		h := must[[]Document](t)(r.History(ctx, "edits", 3))
		if h[2].Name != "bob" || h[1].Author != lost.Author || !h[1].At.Equal(lost.At) || h[0].Name != "bob" ||
			!strings.Contains(h[0].Comment, "version 7 again: redis had lost the edits before this one") {
			t.Errorf("%s: the history ends with %+v", name, h)
		}
		for version, want := range map[uint64]string{6: "body 6", 7: "what b made", 8: "what a made", 9: "what b made"} {
			if d := must[Document](t)(r.Version(ctx, "edits", version)); string(d.Body) != want {
				t.Errorf("%s: version %d is %q, want %q", name, version, d.Body, want)
			}
		}
		if d := must[Document](t)(r.Current(ctx, "edits")); d.Version != 9 || string(d.Body) != "what b made" {
			t.Errorf("%s: in use is %+v", name, d)
		}
	}
	a.edits(t, 1, b, third)
}

// TestRedisHangs stops redis without ending it: its connections stay, and say nothing.
func TestRedisHangs(t *testing.T) {
	server := startRedis(t)
	cfg := redisConfig(server.url())
	cfg.Timeout = 2 * time.Second
	a := openCached(t, cfg, "")
	last := a.edits(t, 2)
	if err := server.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	a.reachable(t, false)
	a.sees(t, last)
	_, err := a.Edit(t.Context(), "edits", 2, nil, anna)
	wantErr(t, "an edit while redis hangs", err, ErrUnavailable)
	if err := server.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	a.reachable(t, true)
	a.edits(t, 1)
}

// TestEditSentTwice sends an edit again, as is done when the answer to it was lost.
func TestEditSentTwice(t *testing.T) {
	r := openRedis(t, redisConfig("redis://"+startMini(t).Addr()))
	ctx := t.Context()
	v := newVersion("edits", 1, []byte("body"), anna)
	for range 2 {
		if err := r.put(ctx, head{}, v); err != nil {
			t.Fatal(err)
		}
	}
	if h, _, err := r.history(ctx, "edits", 9); err != nil || len(h) != 1 {
		t.Errorf("history %v, %v", h, err)
	}
	var changed *changedError
	if err := r.put(ctx, head{}, newVersion("edits", 1, nil, anna)); !errors.As(err, &changed) || changed.newest != headOf(v) {
		t.Errorf("another edit: %v", err)
	}
}

// TestRedisForgets makes more versions than are kept, with bounds that are soon reached.
func TestRedisForgets(t *testing.T) {
	r := openRedis(t, redisConfig(startRedis(t).url()))
	ctx := t.Context()
	f := func(key string, edits, most, mostBytes, size, want int) {
		t.Helper()
		newest := ""
		for i := range edits {
			v := newVersion(key, uint64(i+1), make([]byte, size), anna)
			about := must[string](t)(line(v))
			keys := []string{r.key("state"), r.key("doc", key), r.key("body", key), r.key("changed")}
			err := r.ask(ctx, size, scriptPut, keys, key, newest, most, mostBytes, maxDocuments, 0, "mark",
				v.Version, v.ID, about, v.Body).Err()
			if err != nil {
				t.Fatal(err)
			}
			newest = headOf(v).String()
		}
		h, forgotten, err := r.history(ctx, key, MaxHistory)
		if err != nil || len(h) != want || h[0].Version != uint64(edits) || h[want-1].Version != uint64(edits-want+1) {
			t.Errorf("%s: %d versions are kept, want %d, %v", key, len(h), want, err)
		}
		if forgotten != uint64(edits-want) {
			t.Errorf("%s: forgotten up to %d, want %d", key, forgotten, edits-want)
		}
		if edits > want {
			_, err = r.version(ctx, key, uint64(edits-want))
			wantErr(t, key+": a version that is forgotten", err, ErrNotFound)
		}
		d := must[version](t)(r.version(ctx, key, uint64(edits-want+1)))
		if len(d.Body) != size {
			t.Errorf("%s: the oldest one has %d bytes", key, len(d.Body))
		}
	}
	f("many", 25, 10, 1<<20, 100, 10)
	f("large", 25, 10, 1000, 300, 3)
	f("exact", 25, 10, 1000, 250, 4)
	f("huge", 5, 10, 1000, 2000, 1)
	f("few", 5, 10, 1000, 200, 5)
	f("empty", 12, 10, 1000, 0, 10)
}

// TestMemoryForgets is the same of the copy, with the real bounds.
func TestMemoryForgets(t *testing.T) {
	f := func(name string, edits, size, want int) {
		t.Helper()
		h := &history{}
		body := make([]byte, size)
		for i := range edits {
			h.put(version{Document{Version: uint64(i + 1), Body: body}, ""})
		}
		got := h.heads(edits)
		if len(got) != want || got[0].Version != uint64(edits) || h.bytes != want*size || h.forgotten != uint64(edits-want) {
			t.Errorf("%s: %d versions of %d bytes are kept, want %d, forgotten up to %d", name, len(got), h.bytes, want, h.forgotten)
		}
	}
	f("many", MaxHistory+50, 1, MaxHistory)
	f("large", 8, MaxHistoryBytes/5, 5)
	f("few", 5, MaxHistoryBytes/5, 5)
}

// TestGreatestBody brings a document of the greatest size through all: redis, the copy,
// its file, and another router.
func TestGreatestBody(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: it moves hundreds of megabytes, and -short was given")
	}
	cfg := redisConfig(startRedis(t).url())
	cfg.Timeout = time.Minute
	a, b := openCached(t, cfg, filepath.Join(t.TempDir(), "a")), openCached(t, cfg, "")
	body := make([]byte, MaxBody)
	body[MaxBody-1] = 1
	b.sees(t, must[Document](t)(a.Edit(t.Context(), "edits", 0, body, anna)))
}

// TestRedisHasTooMuch finds bodies in redis that no router takes.
func TestRedisHasTooMuch(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: it moves hundreds of megabytes, and -short was given")
	}
	mini := startMini(t)
	r := openRedis(t, redisConfig("redis://"+mini.Addr()))
	ctx := t.Context()
	if err := r.put(ctx, head{}, newVersion("edits", 1, nil, anna)); err != nil {
		t.Fatal(err)
	}
	fence, _, _ := r.take(ctx, "a", time.Minute, 0)
	must[Published](t)(r.publish(ctx, fence, "plan", nil, 0))
	big := strings.Repeat("x", MaxBody+1)
	mini.HSet(r.key("body", "edits"), "1", big)
	mini.HSet(r.key("pub", "plan"), "body", big)
	_, err := r.version(ctx, "edits", 0)
	wantErr(t, "a document", err, ErrTooBig)
	_, err = r.Published(ctx, "plan")
	wantErr(t, "a publication", err, ErrTooBig)
	for i := range maxState + 1 {
		mini.HSet(r.key("state"), fmt.Sprint("x:", i), "")
	}
	_, err = r.state(ctx)
	wantErr(t, "the state", err, ErrTooBig)
}
