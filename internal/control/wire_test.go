package control

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/auth"
)

// post tells a server in memory something as a plain client does, and returns the whole
// answer.
func post(t testing.TB, s *Server, target string, body []byte, header map[string]string) string {
	t.Helper()
	here, there := net.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = (&fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) { s.Handle(ctx) }, MaxRequestBodySize: 16 << 20}).ServeConn(there)
		there.Close()
	})
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: s1\r\nConnection: close\r\nContent-Length: %d\r\n", target, len(body))
	for key, value := range header {
		fmt.Fprintf(&b, "%s: %s\r\n", key, value)
	}
	b.WriteString("\r\n")
	b.Write(body)
	wg.Go(func() { _, _ = here.Write(b.Bytes()) })
	answer, err := readAll(here, 1<<24)
	if err != nil {
		t.Fatal(err)
	}
	here.Close()
	wg.Wait()
	return string(answer)
}

// signed returns the header of a heartbeat of the node e1.
func signed(c *auth.Cluster, encoding string, body []byte) map[string]string {
	sum := sha256.Sum256(body)
	q := question{node: "e1", nonce: "n1", method: "POST", target: heartbeatPath, encoding: encoding, sum: &sum}
	h := map[string]string{nodeField: q.node, nonceField: q.nonce, signatureField: q.sign(c, time.Now())}
	if encoding != "" {
		h["Content-Encoding"] = encoding
	}
	return h
}

// with returns header with one more line.
func with(header map[string]string, key, value string) map[string]string {
	header[key] = value
	return header
}

func TestHeartbeatOnTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCluster(t, clusterKey)
		s, fleet := newRouter(t, "r1", clusterKey)
		text := mustJSON(goodHeartbeat(time.Now()))
		packed := compressed(zstandard, text)
		other := goodHeartbeat(time.Now())
		other.Node, other.Identity = "e2", nil
		lie := goodHeartbeat(time.Now())
		lie.Identity.ID = "e2"
		absurd := goodHeartbeat(time.Now())
		absurd.Load = -1
		bomb := compressed(zstandard, make([]byte, 3*MaxHeartbeat))
		var noSize bytes.Buffer
		for range 4 {
			noSize.Write(compressed(zstandard, make([]byte, MaxHeartbeat/2)))
		}
		foreign := newCluster(t, "a-key-of-another-cluster")
		for _, c := range []struct {
			name   string
			body   []byte
			header map[string]string
			status int
			reason string
		}{
			{"zstd", packed, signed(cluster, "zstd", packed), 200, ""},
			{"gzip", compressed(gzipped, text), signed(cluster, "gzip", compressed(gzipped, text)), 200, ""},
			{"plain", text, signed(cluster, "", text), 200, ""},
			{"unsigned", text, map[string]string{nodeField: "e1"}, 401, "unsigned"},
			{"another key", text, signed(foreign, "", text), 403, "bad_signature"},
			{"another body", text, signed(cluster, "", packed), 403, "bad_signature"},
			{"another encoding", packed, with(signed(cluster, "zstd", packed), "Content-Encoding", "gzip"), 403, "bad_signature"},
			{"another node", text, with(signed(cluster, "", text), nodeField, "e2"), 403, "bad_signature"},
			{"a long encoding", text, signed(cluster, strings.Repeat("z", 40), text), 400, "bad_request"},
			{"an unknown encoding", text, signed(cluster, "br", text), 400, "bad_request"},
			{"no zstd", text, signed(cluster, "zstd", text), 400, "bad_request"},
			{"broken zstd", packed[:len(packed)-9], signed(cluster, "zstd", packed[:len(packed)-9]), 400, "bad_request"},
			{"no heartbeat", []byte("[]"), signed(cluster, "", []byte("[]")), 400, "bad_request"},
			{"nothing", nil, signed(cluster, "", nil), 400, "bad_request"},
			{"a bomb", bomb, signed(cluster, "zstd", bomb), 413, "too_big"},
			{"a bomb in parts", noSize.Bytes(), signed(cluster, "zstd", noSize.Bytes()), 413, "too_big"},
			{"a bomb in gzip", compressed(gzipped, make([]byte, 2*MaxHeartbeat)), signed(cluster, "gzip", compressed(gzipped, make([]byte, 2*MaxHeartbeat))), 413, "too_big"},
			{"too long", make([]byte, MaxSent+1), signed(cluster, "", make([]byte, MaxSent+1)), 413, "too_big"},
			{"for another node", mustJSON(other), signed(cluster, "", mustJSON(other)), 403, "not_yours"},
			{"with the identity of another", mustJSON(lie), signed(cluster, "", mustJSON(lie)), 403, "not_yours"},
			{"absurd", mustJSON(absurd), signed(cluster, "", mustJSON(absurd)), 422, "absurd"},
		} {
			answer := post(t, s, heartbeatPath, c.body, c.header)
			if !strings.Contains(answer, fmt.Sprintf("HTTP/1.1 %d ", c.status)) || c.reason != "" && !strings.Contains(answer, `"reason":"`+c.reason+`"`) {
				t.Errorf("%s: %.300s", c.name, answer)
			}
			told := ""
			fleet.with(func() { told, fleet.refused = strings.Join(fleet.refused, "\n"), nil })
			if c.reason == "" && told != "" || c.reason != "" && !strings.HasPrefix(told, c.header[nodeField]+" "+c.reason+" ") {
				t.Errorf("%s: the backend was told %q", c.name, told)
			}
			heard := len(fleet.heartbeats())
			if want := map[bool]int{true: 1, false: 0}[c.status == 200]; heard != want {
				t.Errorf("%s: the backend heard %d heartbeats", c.name, heard)
			}
			if c.status == 200 && (!strings.Contains(answer, signatureField) || !strings.Contains(answer, `"router":"r1","sequence":3`)) {
				t.Errorf("%s: %s", c.name, answer)
			}
		}
		skewed := signed(cluster, "", text)
		time.Sleep(time.Hour)
		if answer := post(t, s, heartbeatPath, text, skewed); !strings.Contains(answer, `"reason":"clock_skew"`) {
			t.Errorf("an hour late: %s", answer)
		}
		text = mustJSON(goodHeartbeat(time.Now()))
		for _, r := range []Refusal{IdentityTaken, Replayed, TableFull} {
			fleet.with(func() { fleet.refuse = r })
			if answer := post(t, s, heartbeatPath, text, signed(cluster, "", text)); !strings.Contains(answer, `{"error":"no: `+r.String()+`","reason":"`+r.String()+`"}`) {
				t.Errorf("%v: %s", r, answer)
			}
		}
		fleet.with(func() {
			if fleet.refuse = NotRefused; len(fleet.refused) != 1 {
				t.Errorf("the backend was told %q: what it refused itself it knows", fleet.refused)
			}
		})
		if answer := get(t, s, "GET", heartbeatPath); !strings.Contains(answer, " 405 ") || !strings.Contains(answer, "Allow: POST") {
			t.Errorf("GET: %s", answer)
		}
		if answer := post(t, s, ordersPath, nil, nil); !strings.Contains(answer, " 405 ") || !strings.Contains(answer, "Allow: GET") {
			t.Errorf("POST: %s", answer)
		}
		st := s.Stats()
		if st.Heartbeats != 3 || st.Refused["too_big"] != 4 || st.Refused["replayed"] != 1 || st.Queued != 0 || st.Stretch != 1 {
			t.Errorf("stats %+v", st)
		}
		s.Close()
		if answer := post(t, s, heartbeatPath, text, signed(cluster, "", text)); !strings.Contains(answer, `"reason":"draining"`) {
			t.Errorf("while it shuts down: %s", answer)
		}
		none := newServer(t, cluster)
		if answer := post(t, none, heartbeatPath, text, signed(cluster, "", text)); !strings.Contains(answer, "name the URL of a router") {
			t.Errorf("a scheduler: %s", answer)
		}
	})
}

func TestRoutesOnTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fleet := newRouter(t, "r1", clusterKey)
		fleet.routes["live/a b"] = routeTo("r7")
		n := &network{}
		n.http("r1:80", s)
		defer n.wg.Wait()
		c := newClientOf(t, n, clusterKey)
		defer c.close()
		ask := func(query string) (asked, error) {
			return c.ask(t.Context(), "http://r1:80", routePath+query, 0, MaxRoute)
		}
		got, err := ask("?node=e1&stream=live%2Fa+b")
		if err != nil {
			t.Fatal(err)
		}
		if r, err := ParseRoute(got.body, "e1", "live/a b"); err != nil || r.Reason != "direct" || len(r.Choices) != 1 || r.Choices[0].URL != "http://r7:8080" {
			t.Errorf("got %+v, %v", r, err)
		}
		for query, reason := range map[string]string{
			"?node=e2&stream=live/a": "not_yours", "?node=e1": "bad_request", "?node=e1&stream=x": "bad_request", "?stream=live/a": "bad_request",
		} {
			if _, err := ask(query); outcomeOf(err) != Refused || !strings.Contains(err.Error(), reason) {
				t.Errorf("%s: %v", query, err)
			}
		}
		open, _ := newRouter(t, "r2")
		if answer := get(t, open, "GET", "/v1/path?node=e1&stream=live/x"); !strings.Contains(answer, `"reason":"unknown"`) {
			t.Errorf("without a key and a header: %s", answer)
		}
		if answer := get(t, newServer(t, newCluster(t)), "GET", "/v1/path?node=e1&stream=live/x"); !strings.Contains(answer, "404") {
			t.Errorf("a scheduler: %s", answer)
		}
	})
}

func TestOrdersOnTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fleet := newRouter(t, "r1", clusterKey)
		n := &network{}
		n.http("r1:80", s)
		defer n.wg.Wait()
		c := newClientOf(t, n, clusterKey)
		defer c.close()
		ask := func(query string, wait time.Duration) (asked, error) {
			return c.ask(t.Context(), "http://r1:80", ordersPath+query, wait, MaxOrders)
		}
		if _, err := ask("", 0); !strings.Contains(fmt.Sprint(err), "no_orders") {
			t.Errorf("none: %v", err)
		}
		begun := time.Now()
		if _, err := ask("?wait=2s", 2*time.Second); !strings.Contains(fmt.Sprint(err), "no_orders") || time.Since(begun) != 2*time.Second {
			t.Errorf("none for 2 s: %v after %v", err, time.Since(begun))
		}
		first := NewOrdersPaper(ordersOf("e1", 4, "r1"))
		time.AfterFunc(time.Second, func() {
			fleet.with(func() { fleet.orders["e1"] = first })
			s.OrdersChanged([]string{"e0", "e1"})
		})
		begun = time.Now()
		got, err := ask("?wait=25s", 25*time.Second)
		if err != nil || got.token != first.Token() || time.Since(begun) > 1100*time.Millisecond {
			t.Errorf("the first: %+v, %v after %v", got, err, time.Since(begun))
		}
		if o, err := ParseOrders(got.body, "e1"); err != nil || len(o.Pool) != 1 || o.Version != 4 {
			t.Errorf("got %+v, %v", o, err)
		}
		// Woken for nothing, and for others.
		time.AfterFunc(time.Second, func() { s.OrdersChanged([]string{"e2"}) })
		time.AfterFunc(2*time.Second, func() {
			fleet.with(func() { fleet.orders["e1"] = NewOrdersPaper(ordersOf("e1", 5, "r1")) })
			s.OrdersChanged([]string{"e1", "e2"})
		})
		begun = time.Now()
		got, err = ask("?have="+first.Token()+"&wait=25s", 25*time.Second)
		if err != nil || !got.unchanged || time.Since(begun) != 25*time.Second {
			t.Errorf("no news: %+v, %v after %v", got, err, time.Since(begun))
		}
		if st := s.Stats(); st.Waiting != 0 {
			t.Errorf("%d wait", st.Waiting)
		}
		if answer := get(t, newServer(t, newCluster(t)), "GET", ordersPath, "Millrace-Node: e1"); !strings.Contains(answer, "404") {
			t.Errorf("a scheduler: %s", answer)
		}
		open, _ := newRouter(t, "r2")
		if answer := get(t, open, "GET", ordersPath); !strings.Contains(answer, "400") {
			t.Errorf("nobody's: %s", answer)
		}
		if answer := get(t, open, "GET", ordersPath+"?wait=x", "Millrace-Node: e1"); !strings.Contains(answer, http.StatusText(400)) {
			t.Errorf("an odd wait: %s", answer)
		}
	})
}

// TestBodyLimit: a long heartbeat is read of a node alone, which its head proves.
func TestBodyLimit(t *testing.T) {
	cluster := newCluster(t, clusterKey)
	s := newServer(t, cluster)
	sum := sha256.Sum256([]byte("body"))
	head := func(change func(h *fasthttp.RequestHeader, q *question)) *fasthttp.RequestHeader {
		h := &fasthttp.RequestHeader{}
		h.SetMethod("POST")
		h.SetRequestURI(heartbeatPath)
		q := question{node: "edge-1", nonce: "n", method: "POST", target: heartbeatPath, encoding: "zstd", sum: &sum}
		h.Set(nodeField, q.node)
		h.Set(nonceField, q.nonce)
		h.Set("Content-Encoding", q.encoding)
		h.Set(digestField, hex.EncodeToString(sum[:]))
		h.Set(signatureField, q.sign(cluster, time.Now()))
		change(h, &q)
		return h
	}
	f := func(what string, want int, change func(h *fasthttp.RequestHeader, q *question)) {
		t.Helper()
		if got := s.BodyLimit(head(change)); got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	f("a node", MaxSent, func(*fasthttp.RequestHeader, *question) {})
	f("no signature", MaxUnknown, func(h *fasthttp.RequestHeader, _ *question) { h.Del(signatureField) })
	f("another digest", MaxUnknown, func(h *fasthttp.RequestHeader, _ *question) { h.Set(digestField, strings.Repeat("0", 64)) })
	f("no digest", MaxUnknown, func(h *fasthttp.RequestHeader, _ *question) { h.Del(digestField) })
	f("a digest that is none", MaxUnknown, func(h *fasthttp.RequestHeader, _ *question) { h.Set(digestField, strings.Repeat("x", 64)) })
	f("a long digest", MaxUnknown, func(h *fasthttp.RequestHeader, _ *question) { h.Set(digestField, strings.Repeat("0", 4096)) })
	f("another node", MaxUnknown, func(h *fasthttp.RequestHeader, _ *question) { h.Set(nodeField, "edge-2") })
	f("another path", MaxUnknown, func(h *fasthttp.RequestHeader, _ *question) { h.SetRequestURI(ordersPath) })
	f("another key", MaxUnknown, func(h *fasthttp.RequestHeader, q *question) {
		h.Set(signatureField, q.sign(newCluster(t, "a-key-of-another-cluster"), time.Now()))
	})
	f("long ago", MaxUnknown, func(h *fasthttp.RequestHeader, q *question) {
		h.Set(signatureField, q.sign(cluster, time.Now().Add(-time.Hour)))
	})
}
