package store

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"
)

func contractEntries(t *testing.T, a, b Store) {
	ctx := t.Context()
	if err := a.Announce(ctx); err != nil {
		t.Errorf("to announce nothing: %v", err)
	}
	err := a.Announce(ctx, Entry{"nodes", "b", []byte("of b"), time.Minute}, Entry{"nodes", "a", []byte("of a"), 250 * time.Millisecond},
		Entry{"events", "a", []byte("other"), time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	keys := func(s Store) (out []string) {
		for _, e := range must[[]Entry](t)(s.Entries(ctx, "nodes")) {
			if e.Kind != "nodes" || string(e.Body) != "of "+e.Key || e.TTL <= 0 || e.TTL > time.Minute {
				t.Errorf("entry %+v", e)
			}
			out = append(out, e.Key)
		}
		return out
	}
	for _, s := range []Store{b, a} {
		if got := keys(s); !slices.Equal(got, []string{"a", "b"}) && !slices.Equal(got, []string{"b"}) { // a machine may be slow
			t.Errorf("entries of %v", got)
		}
	}
	for _, s := range []Store{a, b} {
		eventually(t, "what is not announced again is gone", func() bool { return slices.Equal(keys(s), []string{"b"}) })
	}
	if err := b.Announce(ctx, Entry{"nodes", "b", []byte("anew"), time.Minute}); err != nil {
		t.Fatal(err)
	}
	if got := must[[]Entry](t)(a.Entries(ctx, "nodes")); len(got) != 1 || string(got[0].Body) != "anew" {
		t.Errorf("an entry announced again is %v", got)
	}
}

func contractLease(t *testing.T, a, b Store) {
	ctx := t.Context()
	take := func(s Store, who string, wantHeld bool) Fence {
		t.Helper()
		fence, held, err := s.Lease(ctx, who, time.Minute)
		if err != nil || held != wantHeld {
			t.Fatalf("%s: held %v, error %v", who, held, err)
		}
		return fence
	}
	first := take(a, "a", true)
	if first == 0 {
		t.Error("the first fence is 0, which is that of nobody")
	}
	if again := take(a, "a", true); again != first {
		t.Errorf("prolonged, the fence goes from %d to %d", first, again)
	}
	take(b, "b", false)
	if err := b.Release(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	take(b, "b", false)
	if err := a.Release(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	second := take(b, "b", true)
	if second <= first {
		t.Errorf("the fence goes from %d to %d with the next holder", first, second)
	}
	take(a, "a", false)
	if err := a.Release(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if again := take(b, "b", true); again != second {
		t.Errorf("released by another, the fence goes from %d to %d", second, again)
	}
}

func contractLeaseRunsOut(t *testing.T, a, b Store) {
	ctx := t.Context()
	fences := map[Fence]string{}
	for i := range 4 {
		who, s := string(rune('a'+i%2)), []Store{a, b}[i%2]
		eventually(t, "the lease is handed over", func() bool {
			fence, held, err := s.Lease(ctx, who, 50*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			if held && fences[fence] != "" {
				t.Fatalf("fence %d of %s is given to %s", fence, fences[fence], who)
			}
			if held {
				fences[fence] = who
			}
			return held
		})
	}
}

func contractPublish(t *testing.T, a, b Store) {
	ctx := t.Context()
	old, _, err := a.Lease(ctx, "a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Published(ctx, "plan")
	wantErr(t, "before anything is published", err, ErrNotFound)
	var last uint64
	for i := range 70 {
		p := must[Published](t)(a.Publish(ctx, old, "plan", fmt.Appendf(nil, "plan %d", i)))
		if p.Number != last+1 && last > 0 || p.Number == 0 || p.Fence != old || p.Kind != "plan" || string(p.Body) != fmt.Sprint("plan ", i) || p.At.IsZero() {
			t.Fatalf("published %+v after number %d", p, last)
		}
		last = p.Number
	}
	if p := must[Published](t)(a.Publish(ctx, old, "bundle", nil)); p.Number > last-69 {
		t.Errorf("the first of another kind has number %d", p.Number)
	}
	eventually(t, "the other sees it", func() bool {
		p, err := b.Published(ctx, "plan")
		return err == nil && p.Number == last && string(p.Body) == "plan 69" && p.Fence == old && !p.At.IsZero()
	})
	if err := a.Release(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	must[Published](t)(a.Publish(ctx, old, "plan", []byte("nobody else plans yet")))
	fence, _, err := b.Lease(ctx, "b", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []Fence{old, fence + 1, 0} {
		_, err = a.Publish(ctx, f, "plan", []byte("of one that does not plan"))
		wantErr(t, fmt.Sprint("fence ", f), err, ErrFenced)
	}
	p := must[Published](t)(b.Publish(ctx, fence, "plan", []byte("of the new one")))
	if p.Number <= last {
		t.Errorf("number %d follows %d", p.Number, last)
	}
	eventually(t, "the first sees what the second publishes", func() bool {
		got, err := a.Published(ctx, "plan")
		return err == nil && got.Number == p.Number && string(got.Body) == "of the new one"
	})
}

// expect reads from c until each of want has come.
func expect(t *testing.T, c <-chan Change, want ...Change) {
	t.Helper()
	end := time.After(patience)
	for len(want) > 0 {
		select {
		case got, ok := <-c:
			if !ok {
				t.Fatalf("closed, and %v have not come", want)
			}
			want = slices.DeleteFunc(want, func(w Change) bool { return w == got })
		case <-end:
			t.Fatalf("%v have not come", want)
		}
	}
}

func contractWatch(t *testing.T, a, b Store) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := must[<-chan Change](t)(a.Watch(ctx))
	second := must[<-chan Change](t)(b.Watch(ctx))
	must[Document](t)(a.Edit(ctx, "edits", 0, nil, anna))
	must[Document](t)(a.Edit(ctx, "domains", 0, nil, anna))
	if err := a.Announce(ctx, Entry{"nodes", "a", nil, time.Minute}); err != nil {
		t.Fatal(err)
	}
	fence, _, err := a.Lease(ctx, "a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	must[Published](t)(a.Publish(ctx, fence, "plan", nil))
	for _, c := range []<-chan Change{first, second} {
		expect(t, c, Change{Documents, "edits"}, Change{Documents, "domains"}, Change{Kind: "nodes"}, Change{Kind: "plan"})
	}
	// One that reads late is told all the same, of each thing at least once.
	for i := range 100 {
		must[Published](t)(a.Publish(ctx, fence, "plan", fmt.Append(nil, i)))
	}
	must[Document](t)(b.Edit(ctx, "late", 0, nil, anna))
	expect(t, second, Change{Documents, "late"}, Change{Kind: "plan"})
	eventually(t, "what a change told of is there", func() bool {
		p, err := b.Published(ctx, "plan")
		return err == nil && string(p.Body) == "99"
	})
}

func contractWatchEnds(t *testing.T, a, _ Store) {
	ctx, cancel := context.WithCancel(t.Context())
	ends := must[<-chan Change](t)(a.Watch(ctx))
	stays := must[<-chan Change](t)(a.Watch(t.Context()))
	cancel()
	for range ends {
	}
	must[Document](t)(a.Edit(t.Context(), "edits", 0, nil, anna))
	expect(t, stays, Change{Documents, "edits"})
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	for range stays {
	}
	if err := a.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
	if _, err := a.Edit(t.Context(), "edits", 1, nil, anna); err == nil {
		t.Error("a closed store takes an edit")
	}
	if _, err := a.Watch(t.Context()); err == nil {
		t.Error("a closed store lets watch")
	}
	if _, _, err := a.Lease(t.Context(), "a", time.Second); err == nil {
		t.Error("a closed store gives its lease")
	}
}

func contractClones(t *testing.T, a, _ Store) {
	ctx := t.Context()
	body := []byte("mine")
	must[Document](t)(a.Edit(ctx, "edits", 0, body, anna))
	entries := []Entry{{"nodes", "a", body, time.Minute}}
	if err := a.Announce(ctx, entries...); err != nil {
		t.Fatal(err)
	}
	fence, _, err := a.Lease(ctx, "a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	must[Published](t)(a.Publish(ctx, fence, "plan", body))
	copy(body, "them")
	if string(entries[0].Body) != "them" {
		t.Error("the caller's entries were changed")
	}
	d := must[Document](t)(a.Current(ctx, "edits"))
	e := must[[]Entry](t)(a.Entries(ctx, "nodes"))
	p := must[Published](t)(a.Published(ctx, "plan"))
	for i, got := range [][]byte{d.Body, e[0].Body, p.Body} {
		if string(got) != "mine" {
			t.Errorf("%d: a store has kept the caller's bytes, now %q", i, got)
		}
	}
}

func contractEmpty(t *testing.T, a, _ Store) {
	ctx := t.Context()
	_, err := a.Current(ctx, "edits")
	wantErr(t, "current", err, ErrNotFound)
	_, err = a.Version(ctx, "edits", 1)
	wantErr(t, "version", err, ErrNotFound)
	_, err = a.Published(ctx, "plan")
	wantErr(t, "published", err, ErrNotFound)
	if got, err := a.History(ctx, "edits", 10); err != nil || len(got) != 0 {
		t.Errorf("history is %v, %v", got, err)
	}
	if got, err := a.Entries(ctx, "nodes"); err != nil || len(got) != 0 {
		t.Errorf("entries are %v, %v", got, err)
	}
	if err := a.Release(ctx, "a"); err != nil {
		t.Errorf("release of what nobody has: %v", err)
	}
	for fence := range Fence(2) {
		_, err = a.Publish(ctx, fence, "plan", nil)
		wantErr(t, "publish without a lease", err, ErrFenced)
	}
}
