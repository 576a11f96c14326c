package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/faultnet"
)

func TestDefault(t *testing.T) {
	top, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]int{}
	for _, n := range top.Nodes {
		roles[n.Role]++
	}
	if roles["center"] != 2 || roles["relay"] != 2 || roles["edge"] != 3 {
		t.Errorf("roles %v, want 2 centers, 2 relays, 3 edges", roles)
	}
	if got := len(top.Pairs()); got != 7*6 {
		t.Errorf("%d links, want one from each node to each other one: %v", got, top.Pairs())
	}
	// Without a router each edge has two relays and two centers, the two of the city one
	// another; each relay two centers and the other.
	top.Routers = nil
	if got := len(top.Pairs()); got != 3*4+2+2*3 {
		t.Errorf("without a router there are %d links: %v", got, top.Pairs())
	}
	f := func(from, to string, want time.Duration) {
		t.Helper()
		if got := top.fault(Pair{from, to}); got != (faultnet.Fault{Delay: want}) {
			t.Errorf("%s>%s: %+v, want %v of delay", from, to, got, want)
		}
	}
	f("edge-1", "relay-2", 5*time.Millisecond)
	f("relay-1", "center-2", 10*time.Millisecond)
	f("edge-1", "edge-2", 0)
}

func TestReadRefuses(t *testing.T) {
	const good = "nodes: [{id: a, role: center}, {id: b, role: edge, upstreams: [a, 'http://elsewhere:80']}]\n"
	f := func(text, want string) {
		t.Helper()
		_, err := Read(strings.NewReader(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	f(good, "")
	f("", "there are 0, use 1")
	f("node: []", "field node not found")
	f("nodes: [{id: 'a b', role: center}]", "has the id")
	f("nodes: [{id: a, role: center}, {id: a, role: edge}]", "two have the id a")
	f("nodes: [{id: a, role: origin}]", "a: role is")
	f("nodes: [{id: a, role: edge, upstreams: [c]}]", `a: upstreams: there is no node "c"`)
	f("nodes: [{id: a, role: edge, centers: [c]}]", `a: centers: there is no node "c"`)
	f(good+"links: [{from: '[', to: a}]", "number 1: \"[\" is not a pattern")
	f(good+"links: [{from: a, to: b, loss: 2}]", "loss is 2")
	f(good+"links: [{from: a, to: b, delay: soon}]", "cannot unmarshal")
	f(good+"streams: [{name: live, source: clip, at: [a]}]", `"live" is not a name`)
	f(good+"streams: [{name: live/x, source: film, at: [a]}]", "source is")
	f(good+"streams: [{name: live/x, source: clip}]", "at is empty")
	f(good+"streams: [{name: live/x, source: clip, at: [z]}]", `there is no node "z"`)
	f(good+"streams: [{name: live/x, source: frames, kbps: -1, at: [a]}]", "kbps is -1")
	f(good+"streams: [{name: live/x, source: clip, at: [a]}, {name: live/x, source: clip, at: [a]}]", "there twice")
}

func TestArgs(t *testing.T) {
	top := Topology{
		ClusterKey: "sixteen-letters!",
		Nodes: []Node{
			{ID: "c", Role: "center"},
			{
				ID: "e", Role: "edge", Datacenter: "dc", Upstreams: []string{"c", "https://cdn"}, Centers: []string{"c"},
				Settings: map[string]string{"stream.grace": "1s", "auth.x": "y"},
			},
			{ID: "f", Role: "edge", Datacenter: "dc"},
		},
	}
	link := func(p Pair, scheme string) string { return p.String() + "/" + scheme }
	at := Ports{HTTP: "h:1", RTMP: "r:2", Admin: "a:3", Internal: "i:4"}
	got := strings.Join(top.args(top.Nodes[1], at, link, "", nil), " ")
	want := "--id e --role edge --rtmp r:2 --http h:1 --admin a:3 --log-format text --set drain.deadline=1s --set httpflv.drain_spread=0s --internal i:4" +
		" --datacenter dc --upstream http://e>c/http --upstream https://cdn" +
		" --peer f=http://e>f/http --center rtmp://e>c/rtmp --set auth.x=y --set stream.grace=1s"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	top.ClusterKey = ""
	if args := top.args(top.Nodes[0], at, link, "", nil); slices.Contains(args, "--center") || slices.Contains(args, "--datacenter") {
		t.Errorf("what is not set is on the command line: %v", args)
	}
}

func TestParse(t *testing.T) {
	top, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	f := func(text, want, wrong string) {
		t.Helper()
		c, err := top.Parse(text)
		if wrong != "" {
			if err == nil || !strings.Contains(err.Error(), wrong) {
				t.Errorf("%q: got %v, want %q", text, err, wrong)
			}
			return
		}
		if err != nil || c.String() != want {
			t.Errorf("%q: got %q and %v, want %q", text, c, err, want)
		}
	}
	f("kill relay-1", "kill relay-1", "")
	f("  freeze   edge-1>relay-1 ", "freeze edge-1>relay-1", "")
	f("heal edge-1 > relay-1", "heal edge-1>relay-1", "")
	f("slow relay-1", "slow relay-1 180", "")
	f("slow edge-1>relay-1 42", "slow edge-1>relay-1 42", "")
	f("delay edge-1>relay-1", "delay edge-1>relay-1 80", "")
	f("delay edge-1>relay-1 200", "delay edge-1>relay-1 200", "")
	f("half-open edge-1>relay-1", "half-open edge-1>relay-1", "")
	f("restart center-2", "restart center-2", "")
	f("", "", "nothing to do")
	f("explode relay-1", "", `no command "explode"`)
	f("kill", "", "kill what?")
	f("kill relay-9", "", `no node "relay-9"`)
	f("kill relay-1>edge-9", "", "no link relay-1>edge-9")
	f("kill relay-1 >", "", `what is ">"?`)
	f("half-open relay-1", "", "is for a link")
	f("delay relay-1", "", "is for a link")
	f("delay edge-1>relay-1 60001", "", "is not a delay")
	f("slow relay-1 fast", "", "is not a rate")
	f("slow relay-1 0", "", "is not a rate")
	f("kill relay-1 now", "", `what is "now"?`)
}

// FuzzParse: what is understood can be typed as it is shown.
func FuzzParse(f *testing.F) {
	top, err := Default()
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{"", "kill relay-1", "slow edge-1>relay-1 42", "delay edge-1>relay-1 7", "half-open edge-1 > relay-1", "heal >", "slow relay-1 1e9"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := top.Parse(text)
		if err != nil {
			return
		}
		if again, err := top.Parse(c.String()); err != nil || again != c {
			t.Errorf("%q is %+v, which is shown as %q and read as %+v, %v", text, c, c, again, err)
		}
	})
}

func TestCopies(t *testing.T) {
	node := func(id, dc, from string) NodeState {
		n := NodeState{ID: id, Datacenter: dc}
		if from != "-" {
			n.Streams = []StreamState{{Name: "live/x", From: from}}
		}
		return n
	}
	f := func(want string, nodes ...NodeState) {
		t.Helper()
		var got []string
		for _, c := range copies(nodes) {
			got = append(got, c.Datacenter+":"+string(rune('0'+c.Copies))+"/"+string(rune('0'+c.Nodes)))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
	f("")
	f("", node("c", "", Encoder))
	f("city:1/1", node("c", "", Encoder), node("a", "city", "c"), node("b", "city", "-"))
	f("city:1/2", node("c", "", Encoder), node("a", "city", "c"), node("b", "city", "a"))
	trial := node("b", "city", "a")
	trial.Streams[0].Beside = []string{"r"}
	f("city:2/2", node("a", "city", "r"), trial)
	f("city:2/2 hub:1/1", node("r", "hub", "c"), node("a", "city", "r"), node("b", "city", "r"))
	f("", node("a", "city", "")) // it is looked for
}
