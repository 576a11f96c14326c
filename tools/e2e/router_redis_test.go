package e2e

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"millrace/internal/fleet"
	"millrace/tools/cluster"
)

// redisServer is a real one, on a socket, that keeps nothing.
type redisServer struct {
	t      *testing.T
	socket string
	cmd    *exec.Cmd
}

// startRedis starts a server until the end of the test.
func startRedis(t *testing.T) *redisServer {
	t.Helper()
	r := &redisServer{t: t, socket: filepath.Join(t.TempDir(), "redis")}
	r.start()
	t.Cleanup(r.kill)
	return r
}

func (r *redisServer) start() {
	r.t.Helper()
	r.cmd = exec.Command(Program(r.t, "redis-server"), "--port", "0", "--unixsocket", r.socket, "--save", "", "--appendonly", "no", "--dir", filepath.Dir(r.socket))
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
}

// kill ends the server without a chance to keep anything.
func (r *redisServer) kill() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}

// leader returns the router that plans, as another one says.
func (s *system) leader(router string) string {
	p, _ := askRouter[fleet.Plan](s, router, "/v1/plan")
	return p.Leader
}

// TestTwoRoutersOnRedis: the router that plans is killed and the other one plans within
// three seconds; what is edited on either is seen on both; and a Redis that lost everything
// gets it back, what operators edited first of all.
func TestTwoRoutersOnRedis(t *testing.T) {
	redis := startRedis(t)
	top := twoWays(t, nil)
	top.Routers = append(top.Routers, cluster.Router{ID: "router-2"})
	top.Redis = "unix://" + redis.socket
	s := startSystem(t, top)
	s.awaitPlan(t, "router-1")
	s.awaitPlan(t, "router-2")
	other := map[string]string{"router-1": "router-2", "router-2": "router-1"}
	leader := s.leader("router-1")
	if leader != s.leader("router-2") || other[leader] == "" {
		t.Fatalf("router-1 says that %q plans, router-2 %q", leader, s.leader("router-2"))
	}

	pages := map[string]*operating{}
	for r := range other {
		pages[r] = s.console(t, r, operator) // good until the end, whatever becomes of the router
	}

	// Each sees what is edited on the other, and the plan follows.
	for i, at := range []string{"router-1", "router-2"} {
		version := pages[at].edit("edits", uint64(i), pins("relay-2"), "pinned at "+at)
		seen := await(t, "the edit is seen", patience, func() bool {
			return pages[other[at]].document("edits").Version == version
		})
		t.Logf("version %d, edited on %s, is seen on the other after %v", version, at, seen)
	}
	for _, r := range []string{"router-1", "router-2"} {
		await(t, "the pin is in force on "+r, patience, func() bool { return s.first(r, "edge-1") == "relay-2" })
	}

	// The one that plans dies. An edit shows that plans go on.
	left := other[leader]
	p := pages[left]
	s.do(t, "kill "+leader)
	killed := time.Now()
	based := p.document("edits").Version
	p.edit("edits", based, "{}", "the pin is not needed any more")
	await(t, "the edit is in force", patience, func() bool { return s.first(left, "edge-1") == "relay-1" })
	took := time.Since(killed)
	await(t, left+" says that it plans", patience, func() bool { return s.leader(left) == left })
	t.Logf("an edit made after the death of the router that planned is in force %v after that", took)
	if took > promised(3*time.Second) {
		t.Errorf("plans go on after %v, and 3 s are promised", took)
	}
	s.do(t, "restart "+leader)
	await(t, "the nodes are known to it", patience, func() bool {
		n, ok := askRouter[fleet.Network](s, leader, "/v1/network")
		return ok && n.Totals.Up == len(top.Nodes)
	})

	// Redis goes, and everything goes on.
	history := p.history("edits")
	redis.kill()
	await(t, "it is seen that the store is away", patience, func() bool {
		n, ok := askRouter[fleet.Network](s, left, "/v1/network")
		return ok && !n.Store
	})
	s.awaitStreams(t, "live/test", "edge-1")
	if status, body := p.ask(http.MethodPut, "/api/documents/edits", map[string]any{"based": based + 1, "body": "{}", "comment": "now"}); status != http.StatusServiceUnavailable {
		t.Errorf("an edit without a store: %d %s", status, body)
	}
	if up := s.up(left); up != len(top.Nodes) {
		t.Errorf("without Redis %d nodes are up", up)
	}

	// It comes back, and has nothing.
	redis.start()
	began := time.Now()
	for _, r := range []string{"router-1", "router-2"} {
		await(t, "the state of nodes is back on "+r, patience, func() bool {
			n, ok := askRouter[fleet.Network](s, r, "/v1/network")
			return ok && n.Store && n.Totals.Up == len(top.Nodes) && s.leader(r) != ""
		})
	}
	back := time.Since(began)
	for _, r := range []string{"router-1", "router-2"} {
		if got := pages[r].history("edits"); got != history {
			t.Errorf("on %s the history is %s, and was %s", r, got, history)
		}
	}
	t.Logf("after Redis came back empty, the state of nodes is back after %v", back)
	if back > promised(5*time.Second) {
		t.Errorf("the state of nodes is back after %v, and 5 s are promised", back)
	}
	version := pages[leader].edit("edits", based+1, pins("relay-2"), "again")
	await(t, "edits go on", patience, func() bool { return p.document("edits").Version == version })
}

// up returns how many nodes a router knows to be alive.
func (s *system) up(router string) int {
	n, _ := askRouter[fleet.Network](s, router, "/v1/network")
	return n.Totals.Up
}

// history returns the versions of a document, and what the newest says.
func (p *operating) history(key string) string {
	p.t.Helper()
	status, body := p.ask(http.MethodGet, "/api/documents/"+key+"/history?limit=100", nil)
	if status != http.StatusOK {
		p.t.Fatalf("history of %s: %d %s", key, status, body)
	}
	return string(body) + p.document(key).Body
}

// pins are edits that pin the upstream of the edge.
func pins(upstream string) string {
	b, _ := json.Marshal(map[string]any{"pins": []any{map[string]any{"node": "edge-1", "upstreams": []string{upstream}}}})
	return string(b)
}
