package e2e

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"millrace/internal/auth"
	"millrace/internal/control"
	"millrace/internal/fleet"
	"millrace/internal/plan"
	"millrace/internal/stream"
)

// liar says heartbeats that are not true.
type liar struct {
	t      *testing.T
	router string // URL
	key    string // that it signs with; empty: it does not
	node   string // that it says it is
	skew   time.Duration
	client *http.Client
}

// newLiar has the key of the cluster and an address of its own.
func newLiar(t *testing.T, s *system, node string) *liar {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 99)}, Timeout: patience}
	return &liar{
		t: t, router: "http://" + s.Ports("router-1").HTTP, key: s.topology.ClusterKey, node: node,
		client: &http.Client{Transport: &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true}, Timeout: patience},
	}
}

// beat is a good heartbeat of a node that nobody knows yet.
func beat(node string) *control.Heartbeat {
	now := time.Now()
	return &control.Heartbeat{
		Node: node, Boot: rand.Text(), Started: now.Add(-time.Second), Sequence: 1, At: now,
		Identity: &control.Identity{ID: node, Role: "relay", URL: "http://127.0.0.99:8090", Capacity: 1e6, Weight: 1},
	}
}

// request returns a signed heartbeat.
func (l *liar) request(body []byte) *http.Request {
	l.t.Helper()
	const target = "/v1/heartbeat"
	req, err := http.NewRequestWithContext(l.t.Context(), http.MethodPost, l.router+target, bytes.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	nonce := strings.ToLower(rand.Text())
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Millrace-Node", l.node)
	req.Header.Set("Millrace-Nonce", nonce)
	if l.key != "" {
		c, err := auth.NewCluster(auth.ClusterConfig{Keys: []string{l.key}, Skew: time.Minute})
		if err != nil {
			l.t.Fatal(err)
		}
		sum := sha256.Sum256(body)
		req.Header.Set("Millrace-Digest", hex.EncodeToString(sum[:]))
		req.Header.Set("Millrace-Signature", c.SignMessage(time.Now().Add(l.skew), "control-tell",
			l.node, nonce, http.MethodPost, target, "", hex.EncodeToString(sum[:])))
	}
	return req
}

// send sends a request and returns the status, the word and the sentence of the answer.
func (l *liar) send(req *http.Request) (int, string) {
	l.t.Helper()
	res, err := l.client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(io.LimitReader(res.Body, 1<<16))
	return res.StatusCode, string(b)
}

// TestRouterRefuses: what is not true is refused with a word, and nothing that others see
// has changed.
func TestRouterRefuses(t *testing.T) {
	s := startSystem(t, twoWays(t, nil))
	s.awaitPlan(t, "router-1")
	await(t, "links are measured", patience, func() bool {
		l, ok := askRouter[fleet.Link](s, "router-1", "/v1/link?from=relay-1&to=edge-1")
		return ok && l.Why.Figures.Samples > 0
	})
	s.awaitStreams(t, "live/test", "edge-1")
	watching := s.view(t, "live/test", 10*time.Second, "edge-1")
	pool := fmt.Sprint(s.pool("router-1", "edge-1"))

	refused := func(what, word string, l *liar, body []byte) {
		t.Helper()
		status, answer := l.send(l.request(body))
		if status < 400 || !strings.Contains(answer, `"reason":"`+word+`"`) {
			t.Errorf("%s: %d %s, want %s", what, status, answer, word)
		}
		t.Logf("%s: %d %s", what, status, answer)
	}
	text := func(h *control.Heartbeat) []byte {
		b, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	stranger := func(change func(*liar)) *liar {
		l := newLiar(t, s, "stranger")
		change(l)
		return l
	}
	good := text(beat("stranger"))
	refused("another key", "bad_signature", stranger(func(l *liar) { l.key = "another-key-of-others" }), good)
	refused("no signature", "unsigned", stranger(func(l *liar) { l.key = "" }), good)
	refused("a clock that is late", "clock_skew", stranger(func(l *liar) { l.skew = -10 * time.Minute }), good)
	refused("a clock that is early", "clock_skew", stranger(func(l *liar) { l.skew = 10 * time.Minute }), good)
	refused("a word for another node", "not_yours", stranger(func(*liar) {}), text(beat("relay-1")))
	refused("no JSON", "bad_request", stranger(func(*liar) {}), []byte("{"))
	refused("a NaN", "bad_request", stranger(func(*liar) {}), bytes.Replace(good, []byte(`"load":0`), []byte(`"load":NaN`), 1))
	absurd := func(what, word string, change func(*control.Heartbeat)) {
		t.Helper()
		h := beat("stranger")
		change(h)
		refused(what, word, stranger(func(*liar) {}), text(h))
	}
	absurd("a negative load", "absurd", func(h *control.Heartbeat) { h.Load = -1 })
	absurd("a start that is to come", "absurd", func(h *control.Heartbeat) { h.Started = h.At.Add(time.Hour) })
	absurd("an address that is none", "absurd", func(h *control.Heartbeat) { h.Identity.URL = "file:///etc/passwd" })
	absurd("a million streams", "too_big", func(h *control.Heartbeat) {
		for i := range 1_000_000 {
			h.Streams.Set = append(h.Streams.Set, control.Carried{Name: stream.Name(fmt.Sprintf("live/%d", i))})
		}
	})
	absurd("more streams than a node has", "too_big", func(h *control.Heartbeat) {
		for i := range control.MaxCarried + 1 {
			h.Streams.Set = append(h.Streams.Set, control.Carried{Name: stream.Name(fmt.Sprintf("live/%d", i))})
		}
	})

	// Somebody with the key says that it is a node that lives elsewhere.
	refused("the name of another node", "identity_taken", newLiar(t, s, "relay-1"), text(beat("relay-1")))
	// What was overheard is sent again: the same request, and the same words signed anew.
	l := newLiar(t, s, "newcomer")
	h := beat("newcomer")
	first := l.request(text(h))
	if status, answer := l.send(first); status != http.StatusOK {
		t.Fatalf("a good heartbeat: %d %s", status, answer)
	}
	again := first.Clone(t.Context())
	again.Body, _ = first.GetBody()
	if status, answer := l.send(again); !strings.Contains(answer, `"reason":"replayed"`) {
		t.Errorf("the same request again: %d %s", status, answer)
	}
	refused("the same heartbeat again", "replayed", l, text(h))

	// Samples that cannot be are left out of a heartbeat that is else good, with their words.
	h.Sequence, h.At, h.Streams.Based = 2, time.Now(), 1
	at := time.Now()
	h.Samples = []plan.Sample{
		{From: "center-1", To: "newcomer", At: at, OK: true, RTT: -time.Second, Probes: 10},
		{From: "relay-1", To: "edge-1", At: at, OK: true, RTT: 30 * time.Minute, Probes: 10},
		{From: "relay-1", To: "newcomer", At: at, OK: true, Loss: 7, Probes: 10},
		{From: "nobody", To: "newcomer", At: at, OK: true, RTT: time.Millisecond, Probes: 10},
	}
	status, answer := l.send(l.request(text(h)))
	for _, word := range []string{"negative", "not_yours", "not_a_share", "unknown_node"} {
		if status != http.StatusOK || !strings.Contains(answer, `"`+word+`":1`) {
			t.Errorf("samples that cannot be: %d %s, want one %s", status, answer, word)
		}
	}
	t.Logf("samples that cannot be: %s", answer)

	// The newcomer leaves again, and is all that there was to see.
	net, _ := askRouter[fleet.Network](s, "router-1", "/v1/network")
	for _, n := range net.Nodes {
		if n.ID == "stranger" {
			t.Error("the stranger is in the network")
		}
		if n.ID != "newcomer" && n.State != "up" {
			t.Errorf("%s is %s", n.ID, n.State)
		}
	}
	if now := fmt.Sprint(s.pool("router-1", "edge-1")); now != pool {
		t.Errorf("the pool of the edge is %s, and was %s", now, pool)
	}
	link, _ := askRouter[fleet.Link](s, "router-1", "/v1/link?from=relay-1&to=edge-1")
	if link.Why.Figures.RTT > float64(time.Minute.Milliseconds()) {
		t.Errorf("a link was measured by somebody else: %+v", link.Why.Figures)
	}
	watching.noticed(t)
}
