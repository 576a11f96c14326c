package store

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// contract is what every back end must do. open returns two stores that share their
// state, as two routers have them, and closes them with the test.
func contract(t *testing.T, run func(t *testing.T, test func(t *testing.T, a, b Store))) {
	for name, test := range map[string]func(t *testing.T, a, b Store){
		"origin":                  contractOrigin,
		"edit":                    contractEdit,
		"edits at once":           contractEditsAtOnce,
		"history":                 contractHistory,
		"roll back":               contractRollBack,
		"limits":                  contractLimits,
		"entries":                 contractEntries,
		"lease":                   contractLease,
		"lease runs out":          contractLeaseRunsOut,
		"publish":                 contractPublish,
		"watch":                   contractWatch,
		"watch ends":              contractWatchEnds,
		"callers keep their own":  contractClones,
		"nothing is there at all": contractEmpty,
	} {
		t.Run(name, func(t *testing.T) { run(t, test) })
	}
}

// patience is how long a test waits for what must come; it is never waited out when all
// is well.
const patience = time.Minute

// eventually waits until cond is true.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	end := time.After(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

var anna = Author{Name: "anna", Comment: "pin the relay\nbecause of <a> & \"b\""}

func contractOrigin(t *testing.T, a, b Store) {
	ctx := t.Context()
	first := must[string](t)(a.Origin(ctx))
	if first == "" {
		t.Error("origin is empty")
	}
	for _, s := range []Store{a, b} {
		eventually(t, "one origin", func() bool {
			got, err := s.Origin(ctx)
			return err == nil && got == first
		})
	}
}

func contractEdit(t *testing.T, a, b Store) {
	ctx := t.Context()
	before := time.Now()
	d := must[Document](t)(a.Edit(ctx, "edits", 0, []byte("one"), anna))
	if d.Key != "edits" || d.Version != 1 || d.Author != anna || string(d.Body) != "one" {
		t.Errorf("edit returned %+v", d)
	}
	if d.At.Before(before.Add(-time.Second)) || time.Since(d.At) > time.Minute {
		t.Errorf("made at %v", d.At)
	}
	eventually(t, "the other sees the edit", func() bool {
		got, err := b.Current(ctx, "edits")
		return err == nil && got.Version == 1 && got.Author == anna && string(got.Body) == "one" && got.At.Equal(d.At)
	})
	d = must[Document](t)(b.Edit(ctx, "edits", 1, nil, Author{Name: "bob"}))
	if d.Version != 2 || len(d.Body) != 0 {
		t.Errorf("second edit returned %+v", d)
	}
	for _, s := range []Store{a, b} {
		_, err := s.Edit(ctx, "edits", 1, []byte("late"), anna)
		var conflict *ConflictError
		if !errors.As(err, &conflict) {
			t.Fatalf("an edit of an old version: %v", err)
		}
		if c := conflict; c.Based != 1 || c.Current.Version != 2 || c.Current.Name != "bob" || c.Current.Body != nil {
			t.Errorf("conflict is %+v", c)
		}
		if !strings.Contains(err.Error(), "bob") || !strings.Contains(err.Error(), "version 2") {
			t.Errorf("conflict says %q", err)
		}
		_, err = s.Edit(ctx, "edits", 7, []byte("early"), anna)
		if !errors.As(err, &conflict) {
			t.Errorf("an edit of a version to come: %v", err)
		}
		_, err = s.Edit(ctx, "domains", 3, []byte("early"), anna)
		if !errors.As(err, &conflict) || conflict.Current.Version != 0 || conflict.Current.Key != "domains" {
			t.Errorf("an edit of a version of nothing: %v", err)
		}
	}
}

func contractEditsAtOnce(t *testing.T, a, b Store) {
	ctx := t.Context()
	const rounds, editors = 10, 6
	for round := range uint64(rounds) {
		var won, lost atomic.Int32
		var all sync.WaitGroup
		for i := range editors {
			s := []Store{a, b}[i%2]
			all.Go(func() {
				_, err := s.Edit(ctx, "edits", round, fmt.Appendf(nil, "%d by %d", round, i), Author{Name: fmt.Sprint(i)})
				var conflict *ConflictError
				switch {
				case err == nil:
					won.Add(1)
				case errors.As(err, &conflict):
					lost.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 || lost.Load() != editors-1 {
			t.Fatalf("round %d: %d edits were made and %d refused", round, won.Load(), lost.Load())
		}
	}
	eventually(t, "all versions", func() bool { return len(must[[]Document](t)(b.History(ctx, "edits", 100))) == rounds })
}

func contractHistory(t *testing.T, a, b Store) {
	ctx := t.Context()
	for i := range uint64(12) {
		must[Document](t)(a.Edit(ctx, "edits", i, fmt.Appendf(nil, "body %d", i+1), Author{Name: fmt.Sprint("editor ", i+1)}))
	}
	must[Document](t)(a.Edit(ctx, "domains", 0, []byte("other"), anna))
	f := func(s Store, limit, want int) {
		t.Helper()
		var got []Document
		eventually(t, "history", func() bool {
			got = must[[]Document](t)(s.History(ctx, "edits", limit))
			return len(got) == want && (want == 0 || got[0].Version == 12 && got[want-1].Version == uint64(13-want))
		})
		for i, d := range got {
			if d.Version != uint64(12-i) || d.Name != fmt.Sprint("editor ", d.Version) || d.Body != nil || d.Key != "edits" {
				t.Errorf("history has %+v in place %d", d, i)
			}
		}
	}
	for _, s := range []Store{a, b} {
		f(s, 5, 5)
		f(s, 100, 12)
		f(s, MaxHistory*10, 12)
		f(s, 0, 0)
		f(s, -1, 0)
		d := must[Document](t)(s.Version(ctx, "edits", 3))
		if d.Version != 3 || string(d.Body) != "body 3" || d.Name != "editor 3" || d.Key != "edits" {
			t.Errorf("version 3 is %+v", d)
		}
		_, err := s.Version(ctx, "edits", 13)
		wantErr(t, "a version to come", err, ErrNotFound)
	}
}

func contractRollBack(t *testing.T, a, b Store) {
	ctx := t.Context()
	for i, body := range []string{"good", "bad"} {
		must[Document](t)(a.Edit(ctx, "edits", uint64(i), []byte(body), anna))
	}
	old := must[Document](t)(a.Version(ctx, "edits", 1))
	must[Document](t)(a.Edit(ctx, "edits", 2, old.Body, Author{"bob", "back to version 1"}))
	eventually(t, "the old body is the new one", func() bool {
		d, err := b.Current(ctx, "edits")
		return err == nil && d.Version == 3 && string(d.Body) == "good" && d.Comment == "back to version 1"
	})
}

func contractLimits(t *testing.T, a, _ Store) {
	ctx := t.Context()
	big := make([]byte, MaxBody+1)
	_, err := a.Edit(ctx, "edits", 0, big, anna)
	wantErr(t, "a document beyond the limit", err, ErrTooBig)
	wantErr(t, "an entry beyond the limit", a.Announce(ctx, Entry{"nodes", "a", big, time.Second}), ErrTooBig)
	fence, _, err := a.Lease(ctx, "a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Publish(ctx, fence, "plan", big)
	wantErr(t, "a publication beyond the limit", err, ErrTooBig)
	_, err = a.Edit(ctx, strings.Repeat("k", maxName+1), 0, nil, anna)
	wantErr(t, "a long key", err, ErrTooBig)
	_, err = a.Edit(ctx, "edits", 0, nil, Author{strings.Repeat("n", maxName+1), ""})
	wantErr(t, "a long name", err, ErrTooBig)
	_, err = a.Edit(ctx, "edits", 0, nil, Author{"n", strings.Repeat("n", maxComment+1)})
	wantErr(t, "a long comment", err, ErrTooBig)
	for _, name := range []string{"", "a b", "a\n", "\xff", "a\x00"} {
		if _, err := a.Edit(ctx, name, 0, nil, anna); err == nil {
			t.Errorf("a document has the key %q", name)
		}
		if a.Announce(ctx, Entry{name, "a", nil, time.Second}) == nil || a.Announce(ctx, Entry{"nodes", name, nil, time.Second}) == nil {
			t.Errorf("an entry has the name %q", name)
		}
		if _, _, err := a.Lease(ctx, name, time.Second); err == nil {
			t.Errorf("%q has the lease", name)
		}
		if _, err := a.Publish(ctx, fence, name, nil); err == nil {
			t.Errorf("a publication of kind %q", name)
		}
	}
	for _, ttl := range []time.Duration{-1, 0, maxTTL + 1} {
		if a.Announce(ctx, Entry{"nodes", "a", nil, ttl}) == nil {
			t.Errorf("an entry for %v", ttl)
		}
		if _, _, err := a.Lease(ctx, "a", ttl); err == nil {
			t.Errorf("a lease for %v", ttl)
		}
	}
	body := bytes.Repeat([]byte("\x00\xff\r\n"), 1<<18)
	must[Document](t)(a.Edit(ctx, "edits", 0, body, anna))
	if d := must[Document](t)(a.Current(ctx, "edits")); !bytes.Equal(d.Body, body) {
		t.Error("a document of a megabyte comes back otherwise")
	}
}
