package ring

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"millrace/internal/stream"
)

const names = 20_000

func name(i int) stream.Name { return stream.Name(fmt.Sprintf("live/room-%d", i)) }

// nodes returns members with the given weights: n0, n1, ...
func nodes(weights ...float64) []Member {
	var out []Member
	for i, w := range weights {
		out = append(out, Member{ID: fmt.Sprintf("n%d", i), Weight: w})
	}
	return out
}

func ones(n int) []float64 { return slices.Repeat([]float64{1}, n) }

// shares returns what part of the names each member owns, in the order of members.
func shares(members []Member) []float64 {
	count := map[string]int{}
	for i := range names {
		owner, _ := Owners(name(i), members)
		count[owner]++
	}
	var out []float64
	for _, m := range members {
		out = append(out, float64(count[m.ID])/names)
	}
	return out
}

// Nodes of different versions must agree, so this table may only grow.
func TestOwnersStayTheSame(t *testing.T) {
	members := nodes(1, 1, 2.5, 1)
	f := func(n stream.Name, owner, runnerUp string) {
		t.Helper()
		if o, r := Owners(n, members); o != owner || r != runnerUp {
			t.Errorf("%s: %s and %s, want %s and %s", n, o, r, owner, runnerUp)
		}
	}
	f("live/a", "n0", "n2")
	f("live/b", "n1", "n3")
	f("live/c", "n2", "n0")
	f("show/main stage", "n3", "n2")
	f("", "n1", "n3")
}

func TestFewMembers(t *testing.T) {
	f := func(members []Member, owner, runnerUp string) {
		t.Helper()
		if o, r := Owners("live/a", members); o != owner || r != runnerUp {
			t.Errorf("%+v: %q and %q, want %q and %q", members, o, r, owner, runnerUp)
		}
	}
	f(nil, "", "")
	f(nodes(1), "n0", "")
	f(nodes(0, 1), "n1", "")
	f(nodes(-1, math.NaN()), "", "")
	f([]Member{{ID: "", Weight: 1}, {ID: "x", Weight: 1}}, "x", "")
	f([]Member{{ID: "x", Weight: 1, Load: 9 << 30, Capacity: 1}}, "x", "")
	if o, r := Owners("live/a", nodes(math.Inf(1), math.Inf(1))); o != "n0" || r != "n1" {
		t.Errorf("without a bound of weight: %q and %q", o, r)
	}
}

func TestSpreadIsEven(t *testing.T) {
	for _, n := range []int{2, 3, 8, 16, 64} {
		// Five standard deviations of a fair draw.
		p := 1 / float64(n)
		tolerance := 5 * math.Sqrt(p*(1-p)/names)
		for i, s := range shares(nodes(ones(n)...)) {
			if math.Abs(s-p) > tolerance {
				t.Errorf("%d members: n%d owns %.4f, want %.4f ± %.4f", n, i, s, p, tolerance)
			}
		}
	}
}

func TestWeightsAreRespected(t *testing.T) {
	for _, weights := range [][]float64{{1, 2, 5}, {1, 1, 0.1}, {1000, 10, 1000}, {0, 3, 1}} {
		total := 0.0
		for _, w := range weights {
			total += w
		}
		for i, s := range shares(nodes(weights...)) {
			p := weights[i] / total
			if tolerance := 5 * math.Sqrt(p*(1-p)/names); math.Abs(s-p) > tolerance {
				t.Errorf("weights %v: n%d owns %.4f, want %.4f ± %.4f", weights, i, s, p, tolerance)
			}
		}
	}
}

// When a member goes, its streams go to their runners-up and no other moves; read
// backwards, one that comes takes streams from others and nothing else moves.
func TestOnlyTheLostMembersStreamsMove(t *testing.T) {
	all := nodes(1, 2, 1, 0.5, 3, 1, 1, 1)
	for lost := range all {
		rest := slices.Delete(slices.Clone(all), lost, lost+1)
		moved := 0
		for i := range names {
			o, r := Owners(name(i), all)
			now, _ := Owners(name(i), rest)
			want := o
			if o == all[lost].ID {
				want = r
				moved++
			}
			if now != want {
				t.Fatalf("without %s: %s goes from %s to %s, want %s", all[lost].ID, name(i), o, now, want)
			}
		}
		if moved == 0 {
			t.Errorf("%s owned nothing", all[lost].ID)
		}
	}
}

func TestAChangeOfWeightMovesStreamsOfThatMemberOnly(t *testing.T) {
	before, after := nodes(1, 1, 1, 1), nodes(1, 1.5, 1, 1)
	moved := 0
	for i := range names {
		was, _ := Owners(name(i), before)
		is, _ := Owners(name(i), after)
		if was != is && is != "n1" {
			t.Fatalf("%s goes from %s to %s", name(i), was, is)
		}
		if was != is {
			moved++
		}
	}
	// From 1/4 to 1.5/4.5 of all.
	if got := float64(moved) / names; math.Abs(got-1/12.0) > 0.01 {
		t.Errorf("%.3f of the streams moved, want about 0.083", got)
	}
}

func drawMembers(t *rapid.T) []Member {
	ids := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-c1-3]{0,3}`), 0, 8, rapid.ID[string]).Draw(t, "ids")
	out := make([]Member, 0, len(ids))
	for _, id := range ids {
		out = append(out, Member{
			ID:       id,
			Weight:   rapid.SampledFrom([]float64{1, 1, 2, 0.1, 1e300, 0, -1, math.NaN(), math.Inf(1)}).Draw(t, "weight"),
			Load:     rapid.SampledFrom([]float64{0, 1 << 20, 5 << 20, 50 << 20, -1, math.NaN(), math.Inf(1)}).Draw(t, "load"),
			Capacity: rapid.SampledFrom([]float64{0, 0, 10 << 20, -1, math.NaN()}).Draw(t, "capacity"),
			Over:     rapid.Bool().Draw(t, "over"),
		})
	}
	return out
}

// Whatever the members are: all that can own are ranked once, their order in the
// input is irrelevant, and Owners are the first two.
func TestRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := drawMembers(t)
		n := stream.Name(rapid.StringMatching(`[ab]/[a-z]{0,3}`).Draw(t, "name"))
		rank := Rank(n, members)
		shuffled := rapid.Permutation(members).Draw(t, "shuffled")
		if again := Rank(n, shuffled); !slices.Equal(rank, again) {
			t.Fatalf("%v, in another order %v", rank, again)
		}
		first := append(slices.Clone(rank), "", "")
		if o, r := Owners(n, shuffled); o != first[0] || r != first[1] {
			t.Fatalf("owners %q and %q of %q", o, r, rank)
		}
		want := 0
		for i := range members {
			if members[i].usable() {
				want++
				if !slices.Contains(rank, members[i].ID) {
					t.Fatalf("%q is not in %q", members[i].ID, rank)
				}
			}
		}
		if len(rank) != want {
			t.Fatalf("%d of %d members", len(rank), want)
		}
	})
}

func TestBound(t *testing.T) {
	const mb = 1 << 20
	f := func(name string, load, capacity, others, bound float64, over, returns bool) {
		t.Helper()
		members := nodes(ones(4)...)
		for i := range members {
			members[i].Load = others
		}
		m := &members[1]
		m.Load, m.Capacity = load, capacity
		if got := Bound(*m, members); got != bound && math.Abs(got-bound) > 1 {
			t.Errorf("%s: the bound is %.0f, want %.0f", name, got, bound)
		}
		if got := Over(*m, members); got != over {
			t.Errorf("%s: over %v, want %v", name, got, over)
		}
		m.Over = true
		if got := !Over(*m, members); got != returns {
			t.Errorf("%s: when it was over it returns: %v, want %v", name, got, returns)
		}
	}
	f("no load", 0, 0, 0, 1*mb, false, true)
	f("the only load, within the slack", 1*mb, 0, 0, (1+1.25/4)*mb, false, true)
	f("the only load", 2*mb, 0, 0, (1+2.5/4)*mb, true, false)
	f("equal", 100*mb, 0, 100*mb, 126*mb, false, true)
	f("equal, but for the return", 101*mb, 0, 299/3.0*mb, 126*mb, false, false)
	f("just below its bound", 125.9*mb, 0, (400-125.9)/3*mb, 126*mb, false, false)
	f("just over its bound", 126.1*mb, 0, (400-126.1)/3*mb, 126*mb, true, false)
	f("below its capacity", 10*mb, 10.1*mb, 10*mb, 10.1*mb, false, false)
	f("far below its capacity", 8*mb, 10.1*mb, 10*mb, 10.1*mb, false, true)
	f("at its capacity", 10*mb, 10*mb, 10*mb, 10*mb, true, false)
	f("others over their shares", 0, 0, 100*mb, (1+375/4.0)*mb, false, true)
	f("no sense", math.NaN(), math.NaN(), 100*mb, math.Inf(1), false, true)
	f("too much of everything", math.Inf(1), 0, 0, math.Inf(1), true, false)

	if b := Bound(Member{ID: "x"}, nodes(1)); !math.IsInf(b, 1) {
		t.Errorf("one that owns nothing has a bound of %v", b)
	}
	heavy := nodes(3, 1)
	heavy[0].Load, heavy[1].Load = 60*mb, 20*mb
	if a, b := Bound(heavy[0], heavy), Bound(heavy[1], heavy); a != 76*mb || b != 26*mb {
		t.Errorf("with weights 3 and 1 the bounds are %v and %v", a, b)
	}
}

// Not all can be over their share, whatever they send: somebody takes what is new.
func TestSomebodyIsWithinItsShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := nodes(rapid.SliceOfN(rapid.Float64Range(0.01, 100), 1, 8).Draw(t, "weights")...)
		for i := range members {
			members[i].Load = rapid.Float64Range(0, 1e12).Draw(t, "load")
			members[i].Over = rapid.Bool().Draw(t, "over")
		}
		if !slices.ContainsFunc(members, func(m Member) bool { return !Over(m, members) }) {
			t.Fatalf("all are over: %+v", members)
		}
	})
}

// Who is over its bound comes behind all others, each in the order of the scores.
func TestOver(t *testing.T) {
	members := nodes(ones(4)...)
	rank := Rank("live/a", members)
	f := func(want []string, over ...string) {
		t.Helper()
		for i := range members {
			members[i].Over = slices.Contains(over, members[i].ID)
		}
		if got := Rank("live/a", members); !slices.Equal(got, want) {
			t.Errorf("with %v over: %v, want %v", over, got, want)
		}
	}
	f(rank)
	f([]string{rank[1], rank[2], rank[3], rank[0]}, rank[0])
	f([]string{rank[2], rank[3], rank[0], rank[1]}, rank[0], rank[1])
	f([]string{rank[0], rank[1], rank[3], rank[2]}, rank[2])
	f(rank, rank...)
}

// Streams that come one after the other leave no member far over its share, however
// different they are.
func TestLoadStaysWithinItsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		members := nodes(rapid.SliceOfN(rapid.SampledFrom([]float64{1, 2, 4}), 2, 8).Draw(t, "weights")...)
		biggest := 0.0
		for i := range 400 {
			rate := math.Exp(rnd.Float64()*4) * 20e3 // 20 kB/s to 1.1 MB/s
			biggest = max(biggest, rate)
			owner, _ := Owners(name(i), members)
			members[slices.IndexFunc(members, func(m Member) bool { return m.ID == owner })].Load += rate
			for k := range members {
				members[k].Over = Over(members[k], members)
			}
		}
		for _, m := range members {
			if bound := Bound(m, members) + biggest; m.Load > bound {
				t.Errorf("%s sends %.0f bytes/s, at most %.0f are wanted", m.ID, m.Load, bound)
			}
		}
	})
}

func TestOwnersDoesNotAllocate(t *testing.T) {
	members := nodes(ones(8)...)
	if n := testing.AllocsPerRun(100, func() { Owners("live/a", members) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkOwners(b *testing.B) {
	for _, n := range []int{8, 64} {
		members := nodes(ones(n)...)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Owners("live/room-1", members)
			}
		})
	}
}
