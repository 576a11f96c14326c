package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/console"
	"millrace/internal/fleet"
	"millrace/internal/flv"
	"millrace/tools/cluster"
	"millrace/tools/pull"
)

// system is the whole of it: nodes, a scheduler, routers.
type system struct {
	*cluster.Cluster
	topology cluster.Topology
}

// strict has what is promised in seconds shown as it is promised: with the settings that
// the programs ship with, for as long as the promise says, and without slack. It is for a
// machine that has no other work.
var strict = os.Getenv("E2E_STRICT") != ""

// slack is how many times as long as is promised something may take.
var slack = func() int {
	if strict {
		return 1
	}
	return 10
}()

// promised reports how long something may take that is promised within d.
func promised(d time.Duration) time.Duration { return time.Duration(slack) * d }

// operator is who steers the network in these tests.
var operator = cluster.Operator{Name: "ann", Password: "ann's own password", Role: console.Operator}

// startSystem runs a topology until the end of the test. What its programs logged is
// shown when the test failed.
func startSystem(t *testing.T, top cluster.Topology) *system {
	t.Helper()
	logs := t.TempDir()
	top.Operators = []cluster.Operator{operator, {Name: "ben", Password: "ben only looks", Role: console.Reader}}
	c, err := cluster.Start(t.Context(), top, cluster.Options{
		Program: Build(t, "cmd/node"), Scheduler: Build(t, "cmd/scheduler"), Router: Build(t, "cmd/router"), Logs: logs,
	})
	t.Cleanup(func() {
		if c != nil {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		if t.Failed() {
			showLogs(t, logs)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return &system{c, top}
}

// do carries out a command as it is typed.
func (s *system) do(t *testing.T, command string) {
	t.Helper()
	cmd, err := s.topology.Parse(command)
	if err == nil {
		err = s.Do(t.Context(), cmd)
	}
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
}

// askRouter asks the admin port of a router. It reports whether there was an answer.
func askRouter[V any](s *system, router, path string) (v V, ok bool) {
	res, err := client.Get("http://" + s.Ports(router).Admin + path)
	if err != nil {
		return v, false
	}
	defer res.Body.Close()
	return v, res.StatusCode == http.StatusOK && json.NewDecoder(res.Body).Decode(&v) == nil
}

// client is for programs that may hang.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience / 2}

// await looks again and again until ok holds, and returns how long that took.
func await(t *testing.T, what string, within time.Duration, ok func() bool) time.Duration {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); ; <-tick.C {
		if ok() {
			return time.Since(began)
		}
		if time.Since(began) > within {
			t.Fatalf("%s: not within %v", what, within)
		}
	}
}

// pool returns the upstreams of a node, as a router says.
func (s *system) pool(router, node string) (out []string) {
	n, _ := askRouter[fleet.Node](s, router, "/v1/nodes/"+node)
	for _, c := range n.Why.Pool {
		out = append(out, c.Upstream)
	}
	return out
}

// first returns the first upstream of a node, "" for none.
func (s *system) first(router, node string) string {
	if p := s.pool(router, node); len(p) > 0 {
		return p[0]
	}
	return ""
}

// awaitPlan waits until a router hears all nodes, and each follows its orders.
func (s *system) awaitPlan(t *testing.T, router string) {
	t.Helper()
	await(t, "all nodes are heard and follow a plan", patience, func() bool {
		net, ok := askRouter[fleet.Network](s, router, "/v1/network")
		if !ok || len(net.Nodes) < len(s.topology.Nodes) || net.Plan == 0 {
			return false
		}
		for _, n := range net.Nodes {
			node, ok := askRouter[fleet.Node](s, router, "/v1/nodes/"+n.ID)
			if !ok || node.OrdersDue || n.Role != "center" && len(node.Why.Pool) == 0 {
				return false
			}
		}
		return true
	})
}

// comesFrom returns where a node has a stream from, as it says itself.
func (s *system) comesFrom(t *testing.T, node, stream string) string {
	t.Helper()
	return from(s.Observe(t.Context()), node, stream)
}

// viewing is players that go on while the test does something.
type viewing struct {
	report *pull.Report
	err    error
	done   chan struct{}
}

// view has one player watch a stream at each of some nodes for a time. All frames are
// checked.
func (s *system) view(t *testing.T, stream string, length time.Duration, nodes ...string) *viewing {
	t.Helper()
	cfg := pull.DefaultConfig()
	cfg.Viewers, cfg.Verify, cfg.Duration = len(nodes), len(nodes), length
	for _, n := range nodes {
		cfg.URLs = append(cfg.URLs, fmt.Sprintf("http://%s/%s.flv", s.Ports(n).HTTP, stream))
	}
	v := &viewing{done: make(chan struct{})}
	go func() { // ends with the time, or with the test
		defer close(v.done)
		v.report, v.err = pull.Run(t.Context(), cfg)
	}()
	return v
}

// noticed waits for the end, and fails the test if any player noticed anything.
func (v *viewing) noticed(t *testing.T) *pull.Report {
	t.Helper()
	<-v.done
	if v.err != nil || !v.report.OK() || v.report.Normal.FirstFrames != v.report.Normal.Viewers || v.report.Normal.Skips > 0 {
		b, _ := json.Marshal(v.report)
		t.Errorf("players noticed: %v, %s", v.err, b)
	}
	return v.report
}

// operating is somebody who is logged in to the console of a router.
type operating struct {
	t    *testing.T
	base string
	csrf string
	jar  string
}

// console returns the console of a router for somebody who has logged in.
func (s *system) console(t *testing.T, router string, who cluster.Operator) *operating {
	t.Helper()
	p := &operating{t: t, base: "http://" + s.Ports(router).HTTP}
	p.logIn(who)
	return p
}

func (p *operating) logIn(who cluster.Operator) {
	p.t.Helper()
	status, body := p.ask(http.MethodPost, "/api/login", map[string]string{"name": who.Name, "password": who.Password})
	var session struct{ CSRF string }
	if err := json.Unmarshal(body, &session); status != http.StatusOK || err != nil || session.CSRF == "" {
		p.t.Fatalf("log-in at %s: %d %s", p.base, status, body)
	}
	p.csrf = session.CSRF
}

// ask asks the console as its page does.
func (p *operating) ask(method, path string, body any) (int, []byte) {
	p.t.Helper()
	status, answer, err := p.try(method, path, body)
	if err != nil {
		p.t.Fatal(err)
	}
	return status, answer
}

func (p *operating) try(method, path string, body any) (int, []byte, error) {
	var send io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		send = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.base+path, send)
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if p.csrf != "" {
		req.Header.Set("X-CSRF-Token", p.csrf)
		req.Header.Set("Cookie", p.jar)
	}
	req.Header.Set("Origin", p.base)
	res, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	for _, c := range res.Cookies() {
		p.jar = c.Name + "=" + c.Value
	}
	answer, err := io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// document returns the newest version of a document.
func (p *operating) document(key string) (d fleet.Document) {
	p.t.Helper()
	status, body := p.ask(http.MethodGet, "/api/documents/"+key, nil)
	if err := json.Unmarshal(body, &d); err != nil || status != http.StatusOK {
		p.t.Fatalf("document %s: %d %s", key, status, body)
	}
	return d
}

// edit makes a new version of a document and returns its number.
func (p *operating) edit(key string, based uint64, body, comment string) uint64 {
	p.t.Helper()
	status, answer := p.ask(http.MethodPut, "/api/documents/"+key, map[string]any{"based": based, "body": body, "comment": comment})
	var d fleet.Document
	if err := json.Unmarshal(answer, &d); err != nil || status != http.StatusOK {
		p.t.Fatalf("edit of %s: %d %s", key, status, answer)
	}
	return d.Version
}

// events returns the events of a router of one kind, the oldest first.
func (s *system) events(router, kind string) []fleet.Event {
	all, _ := askRouter[fleet.Events](s, router, "/v1/events?limit=1000&kind="+kind)
	slices.Reverse(all.Events)
	return all.Events
}

// brief returns events as short lines.
func brief(events []fleet.Event) string {
	var out []string
	for _, e := range events {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s %s>%s %s %s", e.At.Format("05.000"), e.Node, e.Kind, e.From, e.To, e.Reason, e.Detail)))
	}
	return strings.Join(out, "\n")
}

// awaitStreams waits until each node can be watched.
func (s *system) awaitStreams(t *testing.T, stream string, nodes ...string) {
	t.Helper()
	s.firstFrames(t, stream, nodes...)
}

// firstFrames has a player come to each node and returns the longest time that one waited
// for its first tag with media.
func (s *system) firstFrames(t *testing.T, stream string, nodes ...string) (longest time.Duration) {
	t.Helper()
	for _, n := range nodes {
		longest = max(longest, s.firstFrame(t, stream, n))
	}
	return longest
}

// firstFrame asks until there is a stream, and returns what the last question took.
func (s *system) firstFrame(t *testing.T, stream, node string) time.Duration {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		began := time.Now()
		if s.playsAt(t, stream, node) {
			return time.Since(began)
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not have %s after %v", node, stream, patience)
		}
	}
}

// playsAt reports whether a player gets a frame.
func (s *system) playsAt(t *testing.T, stream, node string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Ports(node).HTTP+"/"+stream+".flv", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return false
	}
	r := flv.NewReader(res.Body, 1<<20)
	for {
		tag, err := r.Read()
		if err != nil {
			return false
		}
		if tag.Is(flv.Keyframe) {
			return true
		}
	}
}

// ordersOf returns the orders that a node has in force, as text.
func ordersOf(t *testing.T, c *cluster.Cluster, node string) string {
	t.Helper()
	_, body := get(t, "http://"+c.Ports(node).Admin+"/v1/router")
	var v struct {
		InForce struct {
			Version uint64
			Pool    []struct{ Node string }
		} `json:"in_force"`
	}
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("orders of %s: %s: %v", node, body, err)
	}
	return fmt.Sprint(v.InForce)
}
