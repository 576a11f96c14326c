package fleet

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/plan"
	"millrace/internal/store"
)

func TestEdit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, "r1", memory(t), nil)
		nodes := network()
		live(t, 5*time.Second, r.Fleet, nodes...)
		ctx := t.Context()
		if d, err := r.Document(ctx, KeyEdits, 0); err != nil || d.Version != 0 || d.Key != KeyEdits {
			t.Errorf("a document that nobody wrote: %+v %v", d, err)
		}
		if list, err := r.History(ctx, KeyEdits, 10); err != nil || list == nil || len(list) != 0 {
			t.Errorf("its history: %+v %v", list, err)
		}
		first := `{"drains":[{"node":"relay-a"}]}`
		d, err := r.Edit(ctx, KeyEdits, 0, []byte(first), "ann", "repair")
		if err != nil || d.Version != 1 || d.Body != first || d.Author != "ann" || d.Comment != "repair" {
			t.Fatalf("%+v %v", d, err)
		}
		if e := r.Edits(); e.Version != 1 || len(e.Edits.Drains) != 1 {
			t.Errorf("one's own edit is not seen at once: %+v", e)
		}
		live(t, 2*time.Second, r.Fleet, nodes...)
		if o := r.ordersOf("edge-a1"); ids(o.Pool)[0] == "relay-a" {
			t.Errorf("a drained relay is first in a pool: %v", ids(o.Pool))
		}
		if n, _ := r.Node("relay-a"); n.State != NodeDraining || !n.Edited {
			t.Errorf("the drained relay is shown as %+v", n.NodeRow)
		}
		// Somebody was faster.
		conflict := &store.ConflictError{}
		if _, err := r.Edit(ctx, KeyEdits, 0, []byte("{}"), "bob", ""); !errors.As(err, &conflict) || conflict.Current.Version != 1 {
			t.Errorf("an edit of an old version: %v", err)
		}
		if _, err := r.Edit(ctx, KeyEdits, 1, []byte("{}"), "bob", "done"); err != nil {
			t.Fatal(err)
		}
		back, err := r.Rollback(ctx, KeyEdits, 1, 2, "ann", "")
		if err != nil || back.Version != 3 || back.Body != first || back.Comment != "back to version 1" {
			t.Errorf("rolled back to %+v %v", back, err)
		}
		list, err := r.History(ctx, KeyEdits, 2)
		if err != nil || len(list) != 2 || list[0].Version != 3 || list[0].Body != "" || list[1].Author != "bob" {
			t.Errorf("history: %+v %v", list, err)
		}
		if old, err := r.Document(ctx, KeyEdits, 1); err != nil || old.Body != first {
			t.Errorf("version 1: %+v %v", old, err)
		}
		if _, err := r.Rollback(ctx, KeyEdits, 77, 3, "ann", ""); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("back to a version that never was: %v", err)
		}
	})
}

func TestEditFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, "r1", memory(t), nil)
		live(t, 3*time.Second, r.Fleet, network()...)
		f := func(key, body, want string) {
			t.Helper()
			_, err := r.Edit(t.Context(), key, 0, []byte(body), "ann", "")
			invalid := &InvalidError{}
			if !errors.As(err, &invalid) || invalid.Key != key || !contains(err.Error(), want) {
				t.Errorf("%s %q: want %q, got %v", key, body, want, err)
			}
			if check := r.Check(t.Context(), key, []byte(body)); check == nil || err == nil || check.Error() != err.Error() {
				t.Errorf("Check says %v", check)
			}
			if d, _ := r.Document(t.Context(), key, 0); d.Version != 0 {
				t.Errorf("%s was stored all the same", key)
			}
		}
		f(KeyEdits, "", "edits")
		f(KeyEdits, `{"pin":[]}`, "unknown field")
		f(KeyEdits, `{"weights":[{"from":"a","to":"b","weight":-1}]}`, "weights[0]")
		f(KeyNetwork, "regions: 7\n", "network:1")
		f(KeyNetwork, "nodes:\n  - id: a\n", "network:")
		f(KeyDomains, "overrides:\n  - id: x\n    pin: [edge-zz]\n", `no node "edge-zz"`)
		f(KeyDomains, "overrides:\n  - id: x\n    ban: [\"dc:zz\"]\n", `datacenter "zz"`)
		f(KeyCoverage, "nonsense\n", "line 1")
		if _, err := r.Edit(t.Context(), "other", 0, nil, "ann", ""); !errors.Is(err, ErrUnknownKey) {
			t.Errorf("a document that there cannot be: %v", err)
		}
		if _, err := r.Edit(t.Context(), KeyEdits, 0, []byte("{}"), "", ""); err == nil {
			t.Error("an edit by nobody")
		}
		if _, err := r.DryRun(plan.Edits{Drains: []plan.Drain{{}}}); err == nil {
			t.Error("a dry run of an edit with a fault")
		}
		if err := r.Check(t.Context(), KeyDomains, []byte("overrides:\n  - id: x\n    pin: [edge-a1, \"dc:b\"]\n")); err != nil {
			t.Errorf("nodes that there are: %v", err)
		}
	})
}

func TestDryRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, "r1", memory(t), nil)
		if _, err := r.DryRun(plan.Edits{}); err == nil {
			t.Error("a router that has just begun tries edits")
		}
		nodes := network()
		live(t, 5*time.Second, r.Fleet, nodes...)
		before := r.Plan().Version
		up := r.ordersOf("edge-a1").Pool[0].Node
		d, err := r.DryRun(plan.Edits{Drains: []plan.Drain{{Node: up}}})
		if err != nil || len(d.Changes) == 0 || d.Moved == 0 {
			t.Errorf("%+v %v", d, err)
		}
		live(t, 3*time.Second, r.Fleet, nodes...)
		if r.Plan().Version != before || r.Edits().Version != 0 {
			t.Error("a dry run had an effect")
		}
	})
}

// TestUnreadable wants a document that cannot be used to leave the one before in force.
func TestUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		r := run(t, "r1", s, nil)
		nodes := network()
		live(t, 3*time.Second, r.Fleet, nodes...)
		if _, err := r.Edit(t.Context(), KeyEdits, 0, []byte(`{"drains":[{"node":"relay-a"}]}`), "ann", ""); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Edit(t.Context(), KeyEdits, 1, []byte(`{"of the future":1}`), store.Author{Name: "newer"}); err != nil {
			t.Fatal(err)
		}
		live(t, 12*time.Second, r.Fleet, nodes...)
		if e := r.Edits(); len(e.Edits.Drains) != 1 || e.Version != 1 {
			t.Errorf("edits in force: %+v", e)
		}
		if e := r.Events(EventFilter{Kind: KindUnreadable}, 0, 9); len(e.Events) != 1 {
			t.Errorf("events: %+v", e.Events)
		}
		if _, err := r.Edit(t.Context(), KeyEdits, 2, []byte(`{}`), "ann", ""); err != nil || len(r.Edits().Edits.Drains) != 0 {
			t.Errorf("a later version: %v", err)
		}
	})
}

// TestUnreadableCoverage: schedulers go on getting snapshots, with the coverage before.
func TestUnreadableCoverage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		r := run(t, "r1", s, nil)
		nodes := network()
		live(t, 3*time.Second, r.Fleet, nodes...)
		const coverage = "198.51.100.0/24 north telecom\n"
		if _, err := r.Edit(t.Context(), KeyCoverage, 0, []byte(coverage), "ann", ""); err != nil {
			t.Fatal(err)
		}
		live(t, 5*time.Second, r.Fleet, nodes...)
		if _, err := s.Edit(t.Context(), KeyCoverage, 1, []byte("nonsense\n"), store.Author{Name: "newer"}); err != nil {
			t.Fatal(err)
		}
		live(t, 5*time.Second, r.Fleet, nodes...)
		if _, err := r.Edit(t.Context(), KeyEdits, 0, []byte(`{"drains":[{"node":"edge-a1"}]}`), "ann", ""); err != nil {
			t.Fatal(err)
		}
		live(t, 5*time.Second, r.Fleet, nodes...)
		if n := r.placed("edge-a1"); n == nil || !n.Drain {
			t.Errorf("the newest snapshot has %+v", n)
		}
		if c := r.bundles.in.Load().bundle.Coverage; c == nil || c.Size != int64(len(coverage)) {
			t.Errorf("it has the coverage %+v", c)
		}
	})
}
