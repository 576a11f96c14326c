package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"millrace/internal/store"
)

func TestRefusals(t *testing.T) {
	b := newBench(t, testConfig(), func(p *Program) { p.Explain = nil })
	ana, ben := b.login("ana"), b.login("ben")
	f := func(s *session, method, target, body string, status int, r Reason, part string) {
		t.Helper()
		a := s.ask(method, target, body)
		a.want(t, method+" "+target, status, r)
		if !strings.Contains(a.body, part) {
			t.Errorf("%s %s: %s says nothing of %q", method, target, a.body, part)
		}
	}
	f(ana, "GET", "/api/", "", 404, NotFound, "no such path")
	f(ana, "GET", "/api/nodes", "", 404, NotFound, "no such path")
	f(ana, "GET", "/api/nodes/edge-1/x", "", 404, NotFound, "no such path")
	f(ana, "GET", "/api/nodes/nobody", "", 404, NotFound, "nobody")
	f(ana, "GET", "/api/nodes/", "", 404, NotFound, "no node")
	f(ana, "GET", "/api/link?from=edge-1", "", 404, NotFound, "give both as from and to")
	f(ana, "GET", "/api/path?node=edge-1", "", 400, BadRequest, "stream:")
	f(ana, "GET", "/api/path?node=x&stream=live/show", "", 404, NotFound, "no node")
	f(ana, "GET", "/api/stream", "", 400, BadRequest, "name:")
	f(ana, "GET", "/api/stream?name=live", "", 400, BadRequest, "names no stream")
	f(ana, "GET", "/api/stream?name=live/nothing", "", 404, NotFound, "no node carries live/nothing")
	f(ana, "GET", "/api/streams?limit=1001", "", 400, BadRequest, "use a number from 0 to 1000")
	f(ana, "GET", "/api/streams?limit=-1", "", 400, BadRequest, "limit")
	f(ana, "GET", "/api/streams?q="+strings.Repeat("x", 257), "", 400, BadRequest, "q is longer")
	f(ana, "GET", "/api/streams?q=%ff", "", 400, BadRequest, "no text")
	f(ana, "GET", "/api/events?after=x", "", 400, BadRequest, "after")
	f(ana, "GET", "/api/events?stream=x", "", 400, BadRequest, "stream")
	f(ana, "GET", "/api/scheduling?domain=other.example", "", 404, NotFound, "other.example")
	f(ana, "GET", "/api/scheduling/explain?domain=x", "", 503, Unavailable, "sends no clients")
	f(ana, "POST", "/api/network", "{}", 405, WrongMethod, "takes GET")
	f(ana, "DELETE", "/api/documents/edits", "", 405, WrongMethod, "takes GET, PUT")
	f(ana, "GET", "/api/documents/secrets", "", 404, NotFound, "there are edits, network, domains, coverage")
	f(ana, "GET", "/api/documents/edits?version=9", "", 404, NotFound, "no such document")
	f(ana, "GET", "/api/documents/edits?version=x", "", 400, BadRequest, "version")
	f(ana, "GET", "/api/documents/edits/history?limit=1001", "", 400, BadRequest, "limit")
	f(ana, "PUT", "/api/documents/edits", "", 400, BadRequest, "Content-Type")
	f(ana, "PUT", "/api/documents/edits", `{"based":3}`, 400, BadRequest, "body is missing")
	f(ana, "PUT", "/api/documents/edits", `{"based":3,"body":"{}","author":"ben"}`, 400, BadRequest, "author")
	f(ana, "PUT", "/api/documents/edits", `{"based":-1,"body":"{}"}`, 400, BadRequest, "based")
	f(ana, "PUT", "/api/documents/edits", `{"based":3,"body":"{}","comment":"`+strings.Repeat("x", 501)+`"}`, 400, BadRequest, "at most 500 bytes")
	f(ana, "PUT", "/api/documents/edits", `{"based":3,"body":"{}","comment":"a\u0007"}`, 400, BadRequest, "comment")
	f(ana, "PUT", "/api/documents/edits", `{"based":3,"body":{"pin":[]}}`, 422, Invalid, "pin")
	f(ana, "PUT", "/api/documents/edits", `{"based":2,"body":{}}`, 409, Conflict, "version 3 by ana")
	f(ana, "POST", "/api/documents/edits/rollback", `{"based":3}`, 400, BadRequest, "version is missing")
	f(ana, "POST", "/api/documents/edits/rollback", `{"version":9,"based":3}`, 404, NotFound, "no such document")
	f(ana, "POST", "/api/documents/edits/check", `{}`, 400, BadRequest, "body is missing")
	f(ana, "POST", "/api/plan/dryrun", `{"edits":[]}`, 422, Invalid, "")
	f(ana, "POST", "/api/plan/dryrun", `{}`, 422, Invalid, "")
	f(ben, "PUT", "/api/documents/edits", `{"based":3,"body":{}}`, 403, ReadOnly, "ben may look")
	f(ben, "POST", "/api/documents/edits/rollback", `{"version":1,"based":3}`, 403, ReadOnly, "operator")
	f(ben, "POST", "/api/documents/edits/check", `{"body":"{}"}`, 200, NotRefused, "true")
	f(ben, "POST", "/api/plan/dryrun", `{"edits":{}}`, 200, NotRefused, "changes")

	b.fleet.away = fmt.Errorf("%w: edits can be made again when it is back", store.ErrUnavailable)
	f(ana, "PUT", "/api/documents/domains", `{"based":0,"body":"x"}`, 503, Unavailable, "when it is back")
	f(ana, "GET", "/api/documents", "", 503, Unavailable, "cannot be reached")
	b.fleet.away = store.ErrTooBig
	f(ana, "PUT", "/api/documents/domains", `{"based":0,"body":"x"}`, 413, TooBig, "")
	b.fleet.away = fmt.Errorf("a fault")
	f(ana, "GET", "/api/documents/domains", "", 500, Failed, "a fault")

	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	f(ana, "GET", "/api/network", "", 503, Closing, "shuts down")
	for _, r := range []Reason{Closing, Failed, Conflict, Invalid, ReadOnly} {
		if b.Stats().Refused[r.String()] == 0 {
			t.Errorf("%v is not counted", r)
		}
	}
}

func TestEveryPathWantsSomebody(t *testing.T) {
	b := newBench(t, testConfig())
	ben := b.login("ben")
	for _, r := range b.routes {
		target := "/api/" + strings.ReplaceAll(strings.Join(r.path, "/"), "*", "edits")
		if a := b.ask(r.method, target, ""); r.access != open && r.access != asks && a.status != 401 {
			t.Errorf("%s %s answers anybody: %d %s", r.method, target, a.status, a.body)
		}
		if r.access != changes && r.access != tries {
			continue
		}
		a := b.ask(r.method, target, `{}`, "Cookie", ben.cookie)
		a.want(t, r.method+" "+target+" without the token", 403, Forged)
		if r.access == changes {
			ben.ask(r.method, target, `{}`).want(t, r.method+" "+target+" by a reader", 403, ReadOnly)
		}
		if r.method == "GET" {
			t.Errorf("GET %s changes something", target)
		}
	}
	if s := b.Stats(); s.Edits != 0 {
		t.Errorf("%d edits were made", s.Edits)
	}
}

func TestEditIsOfWhoAsks(t *testing.T) {
	b := newBench(t, testConfig())
	ana := b.login("ana")
	ana.ask("PUT", "/api/documents/network", `{"based":0,"body":"regions: []\n","comment":"two\nlines"}`).want(t, "an edit", 200, NotRefused)
	var got struct {
		Author, Comment, Body string
		Version               int
	}
	a := ana.ask("GET", "/api/documents/network", "")
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || got.Author != "ana" || got.Comment != "two\nlines" || got.Body != "regions: []\n" || got.Version != 1 {
		t.Errorf("stored: %s %v", a.body, err)
	}
	if b.Stats().Edits != 1 {
		t.Error("the edit is not counted")
	}
}

func TestDryRunsTakeTurns(t *testing.T) {
	b := newBench(t, testConfig())
	ana := b.login("ana")
	b.fleet.hold = make(chan struct{})
	done := make(chan *answer)
	go func() { done <- ana.ask("POST", "/api/plan/dryrun", `{"edits":{}}`) }()
	b.fleet.hold <- struct{}{} // the first one is at it
	b.fleet.hold = nil
	(<-done).want(t, "the first", 200, NotRefused)
	b.trying <- struct{}{}
	ana.ask("POST", "/api/plan/dryrun", `{"edits":{}}`).want(t, "beside another one", 429, TooMany)
}

// TestChecksTakeTurns: a check is refused while others read documents; whoever edits waits
// for a place.
func TestChecksTakeTurns(t *testing.T) {
	b := newBench(t, testConfig())
	ana := b.login("ana")
	const check = `{"body":"192.0.2.0/24 east telecom"}`
	for range maxChecking {
		ana.ask("POST", "/api/documents/coverage/check", check).want(t, "alone", 200, NotRefused)
		b.reading <- struct{}{}
	}
	ana.ask("POST", "/api/documents/coverage/check", check).want(t, "beside others", 429, TooMany)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.turn(over); refusalOf(err).reason != TooMany {
		t.Errorf("a place while there is none: %v", err)
	}
	<-b.reading
	ana.ask("PUT", "/api/documents/coverage", `{"based":0,"body":"192.0.2.0/24 east telecom"}`).want(t, "an edit", 200, NotRefused)
	if n := len(b.reading); n != maxChecking-1 {
		t.Errorf("%d places are taken after it, want %d", n, maxChecking-1)
	}
}

func zipped(b []byte) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.String()
}

func TestBodies(t *testing.T) {
	b := newBench(t, testConfig())
	ana := b.login("ana")
	f := func(body, encoding string, status int, r Reason) {
		t.Helper()
		ana.ask("POST", "/api/documents/coverage/check", body, "Content-Encoding", encoding).want(t, encoding, status, r)
	}
	good := []byte(`{"body":"192.0.2.0/24 east telecom"}`)
	f(string(good), "", 200, NotRefused)
	f(string(good), "identity", 200, NotRefused)
	f(zipped(good), "gzip", 200, NotRefused)
	f(zipped(good), "GZIP", 200, NotRefused)
	f(string(good), "gzip", 400, BadRequest)
	f(zipped(good)[:20], "gzip", 400, BadRequest)
	f(zipped(good), "br", 400, BadRequest)
	bomb := append([]byte(`{"name":"`), bytes.Repeat([]byte("x"), 100*maxSmall)...)
	b.ask("POST", "/api/login", zipped(bomb), "Content-Encoding", "gzip").want(t, "a bomb", 413, TooBig)
}

func TestAnswersArePacked(t *testing.T) {
	b := newBench(t, testConfig())
	ana := b.login("ana")
	plain := ana.ask("GET", "/api/network", "")
	small := ana.ask("GET", "/api/network", "", "Accept-Encoding", "gzip, br")
	r, err := gzip.NewReader(strings.NewReader(small.body))
	if err != nil || small.head.Get("Content-Encoding") != "gzip" || small.head.Get("Vary") != "Accept-Encoding" {
		t.Fatalf("%v, head %v", err, small.head)
	}
	var got bytes.Buffer
	if _, err := got.ReadFrom(r); err != nil || got.String() != plain.body || len(small.body)*3 > len(plain.body) {
		t.Errorf("%v: %d bytes become %d and %d", err, len(plain.body), len(small.body), got.Len())
	}
}

func TestHeaders(t *testing.T) {
	b := newBench(t, testConfig())
	for _, target := range []string{"/", "/api/network", "/assets/none.js", "/plan"} {
		h := b.ask("GET", target, "").head
		csp := h.Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "DENY" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %v", target, h)
		}
		if api := strings.HasPrefix(target, "/api"); api != (h.Get("Cache-Control") == "no-store") && target != "/assets/none.js" {
			t.Errorf("%s is cached: %q", target, h.Get("Cache-Control"))
		}
	}
}

func FuzzRequests(f *testing.F) {
	for _, s := range samples {
		f.Add(s.method, s.target, s.body)
	}
	f.Add("PUT", "/api/documents/edits", `{"body":null}`)
	f.Add("GET", "/api/events?after=18446744073709551615", "")
	b := newBench(f, testConfig())
	ana := b.login("ana")
	f.Fuzz(func(t *testing.T, method, target, body string) {
		if strings.HasPrefix(target, "/api/live") || strings.HasPrefix(target, "/api/log") {
			return // takes the connection over, or is slow
		}
		a := ana.ask(method, target, body)
		if a.status == 500 {
			t.Fatalf("%s %s %s: %s", method, target, body, a.body)
		}
		if a.status >= 400 && strings.HasPrefix(target, "/api/") && !strings.Contains(target, "explain") && a.reason() == "" {
			t.Fatalf("%s %s: %d without a reason: %s", method, target, a.status, a.body)
		}
	})
}
