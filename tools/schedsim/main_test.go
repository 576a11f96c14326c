package main

import (
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millrace/internal/sched"
)

// small is a simulation that takes a second or two.
func small(t *testing.T, args ...string) options {
	t.Helper()
	o, err := parse(append([]string{"--clients", "10000", "--edges", "24"}, args...))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// What is to be shown: at least 99 % of the viewers are on the edge that the policy
// wants, each after one redirect at most, while edges fill and fail.
func TestViewersEndOnTheRightEdge(t *testing.T) {
	o := small(t)
	with, err := simulate(o, true)
	if err != nil {
		t.Fatal(err)
	}
	if got := share(with.all.right, with.all.served); got < goalRight {
		t.Errorf("%.2f %% of the plays are on the right edge, want %v %%", got, goalRight)
	}
	if n := with.longest(); n != goalRedirects {
		t.Errorf("%d redirects in a row, want %d", n, goalRedirects)
	}
	for k, c := range with.byKind {
		if got := share(c.right, c.served); got < 98 {
			t.Errorf("%s: %.2f %% are right", kindWords[k], got)
		}
	}
	if with.broken == 0 || with.all.dead == 0 {
		t.Error("nothing failed")
	}
	if with.all.served < 40_000 || with.all.exact == 0 || with.all.truly == 0 || with.queries == 0 {
		t.Errorf("%+v, %d queries", with.all, with.queries)
	}
	for _, e := range with.edges {
		carried := 0
		for _, n := range e.carried {
			carried += n
		}
		if int(e.load) != len(e.viewers)*bitrate || carried != len(e.viewers) || e.load > e.node.Capacity {
			t.Errorf("%s: %d bytes/s, %d viewers, %d by stream", e.node.ID, e.load, len(e.viewers), carried)
		}
		for i, p := range e.viewers {
			if p.edge != e || p.seat != i {
				t.Errorf("%s: viewer %d is at %v, seat %d", e.node.ID, i, p.edge.node.ID, p.seat)
			}
		}
	}

	without, err := simulate(o, false)
	if err != nil {
		t.Fatal(err)
	}
	if without.all.redirects != 0 || without.longest() != 0 {
		t.Errorf("%d redirects without the re-check", without.all.redirects)
	}
	f := func(k kind, low, high float64) {
		t.Helper()
		if got := share(without.byKind[k].right, without.byKind[k].served); got < low || got > high {
			t.Errorf("%s: %.2f %% by DNS alone, want %v to %v", kindWords[k], got, low, high)
		}
	}
	// Who hides its players from the scheduler leads most of them astray; who sends their
	// subnets does not.
	f(far, 0, 50)
	f(farECS, 70, 100)
	f(near, 60, 100)
}

func TestCalm(t *testing.T) {
	with, err := simulate(small(t, "--duration", "5m", "--calm", "--use", "0.2", "--far", "0"), true)
	if err != nil {
		t.Fatal(err)
	}
	if with.all.dead > 0 || with.broken > 0 || with.waits > 0 || len(with.trouble) > 0 {
		t.Errorf("%+v, %d broken off, %d waited", with.all, with.broken, with.waits)
	}
	if with.byKind[far].first > 0 || with.byKind[farECS].first > 0 {
		t.Error("there are far resolvers")
	}
}

func TestSameSeedSameReport(t *testing.T) {
	f := func(seed string) (string, string) {
		o := small(t, "--duration", "2m", "--seed", seed, "--clients", "2000")
		without, err := simulate(o, false)
		if err != nil {
			t.Fatal(err)
		}
		with, err := simulate(o, true)
		if err != nil {
			t.Fatal(err)
		}
		r := &report{o, without, with}
		return r.text(), r.html()
	}
	text, page := f("7")
	again, pageAgain := f("7")
	if text != again || page != pageAgain {
		t.Error("two runs with one seed differ")
	}
	if other, _ := f("8"); text == other {
		t.Error("two seeds give the same")
	}
	for _, want := range []string{"<!doctype html>", "goal: 99 %", "datacenter ", "rush in ", "far, without ECS", "--seed 7"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, bad := range []string{"NaN", "Inf", "%!", "src=", "href=", "url(", "@import"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, tag := range []string{"svg", "section", "table", "p", "div", "main", "text"} {
		if open, end := strings.Count(page, "<"+tag+">")+strings.Count(page, "<"+tag+" "), strings.Count(page, "</"+tag+">"); open != end {
			t.Errorf("%d <%s> and %d </%s>", open, tag, end, tag)
		}
	}
}

func TestRunWrites(t *testing.T) {
	var out strings.Builder
	dir := t.TempDir()
	text, page := filepath.Join(dir, "a.txt"), filepath.Join(dir, "a.html")
	if err := run(small(t, "--duration", "1m", "--clients", "200", "--text", text, "--html", page), &out); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(text); err != nil || string(b) != out.String() {
		t.Errorf("the file is not what is printed (%v)", err)
	}
	for _, name := range []string{text, page} {
		if b, err := os.ReadFile(name); err != nil || len(b) < 1000 {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
	if err := run(small(t, "--duration", "1m", "--clients", "200", "--text", filepath.Join(dir, "no", "a.txt")), &out); err == nil {
		t.Error("written where there is no folder")
	}
}

func TestParse(t *testing.T) {
	f := func(args, want string) {
		t.Helper()
		_, err := parse(strings.Fields(args))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
	f("", "")
	f("--far 1 --ecs 0 --lag 0s", "")
	f("x", `unexpected argument "x"`)
	f("--clients 0", "--clients is 0, must be 1 to 1e+06")
	f("--far 1.5 --ecs -1", "--ecs is -1")
	f("--far NaN", "--far is NaN")
	f("--ttl 1500ms", "--ttl is 1.5s, must be whole seconds")
	f("--duration 1s", "--duration is 1s")
	f("--answers 9", "--answers is 9, must be 1 to 8")

	o, err := parse(strings.Fields("--seed 5 --calm --ttl 30s"))
	if err != nil {
		t.Fatal(err)
	}
	back, err := parse(strings.Fields(strings.TrimPrefix(o.command(), "go run ./tools/schedsim")))
	if err != nil || back != o {
		t.Errorf("%q gives %+v (%v), want %+v", o.command(), back, err, o)
	}
}

// A resolver keeps an answer for those whom it is for, and as long as it may.
func TestResolverKeepsAnswers(t *testing.T) {
	s, err := newSim(small(t), true)
	if err != nil {
		t.Fatal(err)
	}
	for second := -warm; second <= 0; second++ {
		s.look(time.Duration(second) * time.Second)
	}
	var ecs, plain *resolver
	for _, v := range s.resolvers {
		if v.ecs {
			ecs = v
		} else {
			plain = v
		}
	}
	here, there := pair{0, 0}, pair{2, 1}
	block := s.blocks4[here.index()][0].Addr()
	a, b := block.Next(), block.Next().Next() // of one subnet
	c := s.blocks4[there.index()][0].Addr()
	first := func(v *resolver, now time.Time, player netip.Addr) *sched.Node {
		return s.edges[s.byAddr[v.resolve(s.dns, now, player)[0]]].node
	}
	f := func(v *resolver, after time.Duration, player netip.Addr, asked int) {
		t.Helper()
		if first(v, epoch.Add(after), player); v.asked != asked {
			t.Errorf("asked %d times, want %d", v.asked, asked)
		}
	}
	f(ecs, 0, a, 1)
	f(ecs, time.Second, b, 1)
	f(ecs, time.Second, c, 2)
	f(ecs, 59*time.Second, a, 2)
	f(ecs, 60*time.Second, a, 3)
	f(plain, 0, a, 1)
	f(plain, 0, b, 1)
	f(plain, 0, c, 1)
	f(plain, 60*time.Second, c, 2)
	if x, y := first(ecs, epoch, a), first(ecs, epoch, c); x.Region == y.Region {
		t.Errorf("players in %s and %s are led to %s and %s", here, there, x.ID, y.ID)
	}
}

func TestText(t *testing.T) {
	f := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	f(number(0), "0")
	f(number(999), "999")
	f(number(1000), "1,000")
	f(number(1234567), "1,234,567")
	f(number(-1000), "-1,000")
	f(wrap("one two  three", 7), "one two\nthree")
	f(wrap("", 7), "")
	f(clockText(75*time.Second), "1:15")
	f(clockText(100*time.Minute), "1:40 h")

	c := chart{low: 0, high: 1}
	f(c.path([]float64{0, math.NaN(), 5, 1}), "M157.2 220.0M578.2 26.0L788.8 26.0")
}
