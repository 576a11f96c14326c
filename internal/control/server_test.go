package control

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/sched"
)

// TestServerSaysWhyThereIsNothing has the backend say it, where there is one.
func TestServerSaysWhyThereIsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		s, _ := newRouter(t, "r1", clusterKey)
		n.http("r1:80", s)
		c := newClientOf(t, n, clusterKey)
		defer n.wg.Wait()
		defer c.close()
		const want = "503 Service Unavailable: nowhere to place players: set router.region on e1 (left_out)"
		for _, path := range []string{snapshotPath, statePath} {
			if _, err := c.ask(t.Context(), "http://r1:80", path, 0, MaxSnapshot); outcomeOf(err) != Refused || err.Error() != want {
				t.Errorf("%s: got %v, want %s", path, err, want)
			}
		}
	})
}

// newClientOf returns a client for the servers of n.
func newClientOf(t *testing.T, n *network, keys ...string) *client {
	t.Helper()
	return newClient("e1", newCluster(t, keys...), n.dial, nil)
}

func TestServerAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		s := newServer(t, newCluster(t, clusterKey))
		n.http("s1:80", s)
		c := newClientOf(t, n, clusterKey)
		defer n.wg.Wait()
		defer c.close()
		const base = "http://s1:80"
		ask := func(target string, wait time.Duration) (asked, error) {
			return c.ask(t.Context(), base, target, wait, MaxSnapshot)
		}
		if _, err := ask(snapshotPath, 0); outcomeOf(err) != Refused || !strings.Contains(err.Error(), "no_snapshot") {
			t.Errorf("without a snapshot: %v", err)
		}
		b := bundle(t, "s1", 7, 50)
		s.Bundle(b)
		got, err := ask(snapshotPath, 0)
		if err != nil || got.token != b.Version.Token || !bytes.Equal(got.body, b.document) || got.unchanged {
			t.Fatalf("got %s, %d bytes, %v", got.token, len(got.body), err)
		}
		begun := time.Now()
		got, err = ask(snapshotPath+"?have="+b.Version.Token+"&wait=25s", 25*time.Second)
		if err != nil || !got.unchanged || time.Since(begun) != 25*time.Second {
			t.Errorf("no news: %+v after %v, %v", got, time.Since(begun), err)
		}
		next := bundle(t, "s1", 8, 51)
		time.AfterFunc(3*time.Second, func() { s.Bundle(next) })
		begun = time.Now()
		got, err = ask(snapshotPath+"?have="+b.Version.Token+"&wait=25", 25*time.Second)
		if err != nil || got.token != next.Version.Token || time.Since(begun) > 4*time.Second {
			t.Errorf("news: %s after %v, %v", got.token, time.Since(begun), err)
		}
		got, err = ask(blobPath+b.Coverage.Sum, 0)
		if err != nil || string(got.body) != coverageText {
			t.Errorf("the coverage file is %q, %v", got.body, err)
		}
		for _, target := range []string{blobPath, blobPath + strings.Repeat("0", 64)} {
			if _, err := ask(target, 0); outcomeOf(err) != Refused || !strings.Contains(err.Error(), "404") {
				t.Errorf("%s: %v", target, err)
			}
		}
		if _, err := ask(statePath, 0); outcomeOf(err) != Refused {
			t.Errorf("without a report: %v", err)
		}
		s.Report(&Report{Observer: "s1", At: time.Now(), Observations: []sched.Observation{{Observer: "s1", Node: "edge-1", Family: sched.V4, At: time.Now(), Up: true}}})
		got, err = ask(statePath, 0)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := ParseReport(got.body); err != nil || len(r.Observations) != 1 || !r.Observations[0].Up {
			t.Errorf("got %+v, %v", r, err)
		}
		st := s.Stats()
		if st.Waiting != 0 || st.Transfers != 0 || st.Answered < 5 || st.Refused["no_snapshot"] != 2 || st.Refused["not_found"] != 2 {
			t.Errorf("stats %+v", st)
		}
	})
}

// TestServerSigns: what is not signed with a key of the cluster is refused, each with
// its word, and nothing of the snapshot is told.
func TestServerSigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCluster(t, clusterKey)
		s := newServer(t, cluster)
		s.Bundle(bundle(t, "s1", 7, 3))
		now := time.Now()
		good := question{node: "e1", nonce: "n1", method: "GET", target: snapshotPath}
		header := func(q question, signature string) []string {
			return []string{"Millrace-Node: " + q.node, "Millrace-Nonce: " + q.nonce, "Millrace-Signature: " + signature}
		}
		cases := []struct {
			name   string
			target string
			header []string
			status int
			word   string
		}{
			{"signed", snapshotPath, header(good, good.sign(cluster, now)), 200, ""},
			{"unsigned", snapshotPath, nil, 401, "unsigned"},
			{"nonsense", snapshotPath, header(good, "hello"), 403, "bad_signature"},
			{"another key", snapshotPath, header(good, good.sign(newCluster(t, "the-key-of-another-cluster"), now)), 403, "bad_signature"},
			{"for another target", snapshotPath + "?wait=1", header(good, good.sign(cluster, now)), 403, "bad_signature"},
			{"of another node", snapshotPath, header(question{node: "e2", nonce: "n1"}, good.sign(cluster, now)), 403, "bad_signature"},
			{"an old one", snapshotPath, header(good, good.sign(cluster, now.Add(-time.Hour))), 403, "clock_skew"},
			{"a long nonce", snapshotPath, header(question{node: "e1", nonce: strings.Repeat("n", 65)}, good.sign(cluster, now)), 400, "bad_request"},
			{"an answer as a question", snapshotPath, header(good, answer{question: "x"}.sign(cluster, now)), 403, "bad_signature"},
		}
		for _, tc := range cases {
			got := get(t, s, "GET", tc.target, tc.header...)
			resp, body, _ := strings.Cut(got, "\r\n\r\n")
			if !strings.HasPrefix(resp, fmt.Sprintf("HTTP/1.1 %d ", tc.status)) {
				t.Errorf("%s: %s, want %d", tc.name, resp, tc.status)
			}
			if tc.word != "" && (!strings.Contains(body, `"reason":"`+tc.word+`"`) || !strings.Contains(resp, "Millrace-Reason: "+tc.word)) {
				t.Errorf("%s: %s\n%s", tc.name, resp, body)
			}
			if tc.word != "" && (strings.Contains(body, "edge-1") || strings.Contains(resp, "Millrace-Signature")) {
				t.Errorf("%s: a refusal tells %q", tc.name, got)
			}
		}
	})
}

func TestServerRefuses(t *testing.T) {
	s := newServer(t, newCluster(t))
	s.Bundle(bundle(t, "s1", 7, 3))
	for _, tc := range []struct{ method, target, want string }{
		{"POST", snapshotPath, "405"},
		{"POST", snapshotPath, "Allow: GET"},
		{"HEAD", snapshotPath, "405"},
		{"GET", snapshotPath + "?wait=soon", `wait is \"soon\": write for example 25s`},
		{"GET", snapshotPath + "?wait=-5s", "bad_request"},
		{"GET", "/v1/other", "418"}, // not a path of this package
		{"GET", "/v1/snapshot/", "418"},
	} {
		if got := get(t, s, tc.method, tc.target); !strings.Contains(got, tc.want) {
			t.Errorf("%s %s: %q, want %q in it", tc.method, tc.target, got, tc.want)
		}
	}
	if got := get(t, s, "GET", snapshotPath); !strings.Contains(got, "edge-1") || !strings.Contains(got, "no-store") {
		t.Errorf("without keys and encodings: %.200q", got)
	}
	s.Close()
	s.Close()
	if got := get(t, s, "GET", snapshotPath); !strings.Contains(got, `"reason":"draining"`) {
		t.Errorf("closed: %q", got)
	}
}

// TestAskIsBounded: an answer that is signed may still be a bomb, or longer than it
// should be.
func TestAskIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		cluster := newCluster(t, clusterKey)
		s := newServer(t, cluster)
		const limit = 1 << 16
		var b *body
		n.handle("s1:80", func(ctx *fasthttp.RequestCtx) {
			s.send(ctx, string(ctx.Request.Header.Peek(signatureField)), 200, "t", b)
		})
		c := newClientOf(t, n, clusterKey)
		defer n.wg.Wait()
		defer c.close()
		for name, plain := range map[string][]byte{"good": make([]byte, limit), "one byte more": make([]byte, limit+1), "much more": make([]byte, 1<<22)} {
			for e := range encodings {
				b = newPayload("t", bytesOf(plain)).in(e)
				got, err := c.ask(t.Context(), "http://s1:80", snapshotPath, 0, limit)
				if name == "good" && (err != nil || len(got.body) != limit) || name != "good" && outcomeOf(err) != Damaged {
					t.Errorf("%s, %v: %d bytes, %v", name, e, len(got.body), err)
				}
			}
		}
	})
}

// TestServerLimits: those that are one too many are told to go elsewhere.
func TestServerLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		cfg := DefaultServerConfig()
		cfg.MaxWaiting, cfg.MaxTransfers, cfg.MaxWait = 2, 1, 5*time.Second
		s, err := NewServer(cfg, newCluster(t), silent)
		if err != nil {
			t.Fatal(err)
		}
		n.http("s1:80", s)
		b := bundle(t, "s1", 7, 3)
		s.Bundle(b)
		c := newClientOf(t, n)
		defer n.wg.Wait()
		defer c.close()
		waiting := make(chan error, 3)
		target := snapshotPath + "?have=" + b.Version.Token + "&wait=1h"
		for range 3 {
			go func() {
				_, err := c.ask(t.Context(), "http://s1:80", target, time.Minute, MaxSnapshot)
				waiting <- err
			}()
		}
		begun := time.Now()
		if err := <-waiting; outcomeOf(err) != Refused || !strings.Contains(err.Error(), "too_many") || time.Since(begun) != 0 {
			t.Errorf("the third of two: %v after %v", err, time.Since(begun))
		}
		for range 2 { // and nobody waits for longer than the server allows
			if err := <-waiting; err != nil || time.Since(begun) != cfg.MaxWait {
				t.Errorf("got %v after %v", err, time.Since(begun))
			}
		}
		s.transfers.Add(1)
		if _, err := c.ask(t.Context(), "http://s1:80", blobPath+b.Coverage.Sum, 0, MaxBlob); outcomeOf(err) != Refused {
			t.Errorf("the second transfer of one: %v", err)
		}
		s.transfers.Add(-1)
		if _, err := c.ask(t.Context(), "http://s1:80", blobPath+b.Coverage.Sum, 0, MaxBlob); err != nil {
			t.Error(err)
		}
		if st := s.Stats(); st.Transfers != 0 || st.Refused["too_many"] != 2 {
			t.Errorf("stats %+v", st)
		}
	})
}

func TestServerConfig(t *testing.T) {
	if err := DefaultServerConfig().Validate(); err != nil {
		t.Error(err)
	}
	err := ServerConfig{}.Validate()
	for _, want := range []string{"max_waiting is 0: use 1 to", "answers_per_second is 0", "max_transfers is 0", "max_wait is 0s: use 1s to 5m"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	if _, err := NewServer(ServerConfig{}, newCluster(t), silent); err == nil {
		t.Error("a zero config is taken")
	}
	words := map[string]bool{}
	for _, r := range Refusals() {
		b, err := r.MarshalText()
		if err != nil || words[string(b)] || statusOf[r] == 0 {
			t.Errorf("%d: %q, %v, status %d", r, b, err, statusOf[r])
		}
		words[string(b)] = true
	}
	for _, o := range Outcomes() {
		if b, err := o.MarshalText(); err != nil || len(b) == 0 {
			t.Errorf("%d: %q, %v", o, b, err)
		}
	}
	if Refusal(99).String() != "refusal(99)" || Outcome(99).String() != "outcome(99)" {
		t.Error("values without a word are not told as such")
	}
}
