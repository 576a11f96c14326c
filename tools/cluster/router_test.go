package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"millrace/internal/console"
)

func TestRoutersAreValid(t *testing.T) {
	const nodes = "nodes: [{id: a, role: edge}]\n"
	f := func(text, want string) {
		t.Helper()
		_, err := Read(strings.NewReader(nodes + text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	f("routers: [{id: r}]", "")
	f("routers: [{id: r}, {id: s}]\nredis: unix:///tmp/redis", "")
	f("routers: [{id: r}, {id: s}]", "need a redis")
	f("routers: [{id: 'r r'}]", "number 1 has the id")
	f("routers: [{id: a}]", "somebody else")
	f("routers: [{id: scheduler}]", "somebody else")
	f("operators: [{name: ann}]", "needs a name and a password")
	f("operators: [{name: ann, password: long enough, role: king}]", "king")
}

// TestRouters: nodes and the scheduler are pointed to them, each node reaches each other
// one through a link, and they are seen, killed and started again like nodes.
func TestRouters(t *testing.T) {
	top := small()
	top.ClusterKey = "sixteen-letters!"
	top.Scheduler = &Scheduler{Domain: "play.test", Clients: []Client{}}
	top.Routers, top.Redis = []Router{{ID: "router-1"}, {ID: "router-2"}}, "unix:///nowhere"
	top.Operators = []Operator{{Name: "ann", Password: "a long password", Role: console.Operator}}
	t.Setenv(fake, "1")
	logs := t.TempDir()
	c, err := Start(t.Context(), top, Options{Program: os.Args[0], Scheduler: os.Args[0], Router: os.Args[0], Logs: logs})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	first, second := "--router http://"+c.Ports("router-1").HTTP, "--router http://"+c.Ports("router-2").HTTP
	for _, id := range []string{"center", "edge", SchedulerID} {
		args := strings.Join(c.nodes[id].args, " ")
		if !strings.Contains(args, first) || !strings.Contains(args, second) || strings.Contains(args, "scheduling.from") || strings.Contains(args, "--nodes") {
			t.Errorf("%s is started with %s", id, args)
		}
	}
	if args := strings.Join(c.nodes["router-1"].args, " "); !strings.Contains(args, "--redis unix:///nowhere") || !strings.Contains(args, "seed.domains=") {
		t.Errorf("a router is started with %s", args)
	}
	settings, err := os.ReadFile(c.file("edge"))
	if err != nil {
		t.Fatal(err)
	}
	l := c.links[Pair{"edge", "center"}]
	for _, scheme := range []string{"http", "rtmp", probes} {
		if r := l.relay[scheme]; r == nil || !strings.Contains(string(settings), scheme+"://"+r.Addr()) {
			t.Errorf("the edge does not reach the center by %s:\n%s", scheme, settings)
		}
	}
	if c.links[Pair{"center", "edge"}].relay["rtmp"] != nil {
		t.Error("a link takes publishes to an edge")
	}
	settings, _ = os.ReadFile(c.file("router-1"))
	at := strings.Index(string(settings), "$2a$")
	if hash := settings[max(0, at):]; at < 0 || bcrypt.CompareHashAndPassword(hash[:60], []byte("a long password")) != nil {
		t.Errorf("nobody can log in with\n%s", settings)
	}

	ids := func() (out []string) {
		for _, n := range c.Observe(t.Context()).Nodes {
			if n.State == Running && !n.Silent {
				out = append(out, n.ID)
			}
		}
		return out
	}
	if got := ids(); !slices.Equal(got, []string{"center", "edge", SchedulerID, "router-1", "router-2"}) {
		t.Errorf("there are %v", got)
	}
	do(t, c, "kill router-1")
	if got := ids(); slices.Contains(got, "router-1") {
		t.Errorf("after the kill there are %v", got)
	}
	do(t, c, "restart router-1")
	if got := ids(); !slices.Contains(got, "router-1") {
		t.Errorf("after the restart there are %v", got)
	}
	if _, err := top.Parse("slow router-1"); err == nil {
		t.Error("a router can be made slow, which nobody would feel")
	}
	for _, name := range []string{"network.yaml", "domains.yaml", "coverage.txt"} {
		if _, err := os.Stat(filepath.Join(logs, name)); err != nil {
			t.Error(err)
		}
	}
}

// TestDelay: what a link is told comes on top of what the topology says, for probes too.
func TestDelay(t *testing.T) {
	top := small()
	top.Routers = []Router{{ID: "router-1"}}
	t.Setenv(fake, "1")
	c, err := Start(t.Context(), top, Options{Program: os.Args[0], Router: os.Args[0], Logs: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	trouble := func() string {
		for _, l := range c.Observe(t.Context()).Links {
			if l.Pair == (Pair{"edge", "center"}) {
				return l.Trouble
			}
		}
		return "no link"
	}
	do(t, c, "delay edge>center 30")
	if got := trouble(); got != "30ms late" {
		t.Errorf("delayed it is %q", got)
	}
	do(t, c, "kill edge>center")
	do(t, c, "heal edge>center")
	if got := trouble(); got != "" {
		t.Errorf("healed it is %q", got)
	}
}
