package frontend

import (
	"bufio"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/sched"
)

const explainToken = "0123456789abcdef-T"

func TestMayExplain(t *testing.T) {
	const uri = "/v1/explain?domain=" + play + "&ip=" + south4
	f := func(name string, c ExplainConfig, from, host string, status int, fields ...string) {
		t.Helper()
		h := newHTTP(t, newKeys(t), func(cfg *HTTPConfig) { cfg.Explain, cfg.TrustedProxies = c, []string{"127.0.0.0/8"} })
		r := get(t, h, from, host, uri, fields...)
		if r.StatusCode() != status {
			t.Errorf("%s: %d %s, want %d", name, r.StatusCode(), r.Body(), status)
		}
		if len(r.Header.Peek("Access-Control-Allow-Origin")) > 0 && status == 200 {
			t.Errorf("%s: pages may read it", name)
		}
	}
	token, local := ExplainConfig{Token: explainToken}, ExplainConfig{Loopback: true}
	const bearer = "Authorization: Bearer "
	f("nobody may", ExplainConfig{}, "127.0.0.1", "127.0.0.1", 403)
	f("an empty token", ExplainConfig{}, "127.0.0.1", "127.0.0.1", 403, bearer)
	f("no token", token, "127.0.0.1", "127.0.0.1", 401)
	f("another token", token, north4, play, 401, bearer+explainToken+"x")
	f("the token", token, north4, play, 200, bearer+explainToken)
	f("this machine", local, "127.0.0.1", "127.0.0.1:8053", 200)
	f("this machine, IPv6", local, "::1", "[::1]:8053", 200)
	f("this machine by its name", local, "127.0.0.1", "localhost:8053", 200)
	f("another machine", local, north4, "127.0.0.1", 403)
	f("a name that resolves to this machine", local, "127.0.0.1", "evil.example", 403)
	f("a page", local, "127.0.0.1", "127.0.0.1", 403, "Origin: http://127.0.0.1")
	f("a proxy", local, "127.0.0.1", "127.0.0.1", 403, "X-Forwarded-For: 127.0.0.1")
	f("a token from elsewhere is enough", ExplainConfig{Token: explainToken, Loopback: true}, north4, play, 200, bearer+explainToken)
}

func TestExplain(t *testing.T) {
	h := newHTTP(t, newKeys(t), func(c *HTTPConfig) { c.Explain.Token = explainToken })
	ask := func(query string, fields ...string) *fasthttp.Response {
		t.Helper()
		return get(t, h, north4, "x", "/v1/explain?"+query, append(fields, "Authorization: Bearer "+explainToken)...)
	}
	r := ask("domain=" + play + "&ip=" + south4 + "&stream=live/room&self=north-1")
	x := decode[struct {
		Client, Domain, Stream, Reason string
		Place                          struct{ Region, ISP, Source string }
		Rules                          []sched.Rule
		Candidates                     []struct{ Node, Reason string }
	}](t, r.Body())
	if x.Client != south4+"/32" || x.Domain != play || x.Stream != "live/room" || x.Place.Region != "south" || x.Place.Source != "coverage" ||
		x.Reason != "placed" || len(x.Candidates) == 0 || x.Candidates[0].Node != "south-1" || len(x.Rules) == 0 {
		t.Errorf("%s", r.Body())
	}
	for _, r := range []*fasthttp.Response{
		ask("domain=" + play + "&ip=" + south4 + "&format=text"),
		ask("domain="+play+"&ip="+south4, "Accept: text/plain"),
	} {
		body := string(r.Body())
		for _, want := range []string{"client", south4, "south, telecom (coverage", play, "version 7", "placed", "1 override", "south-1", "198.51.100.21", "EDGE"} {
			if !strings.Contains(body, want) {
				t.Errorf("the text has no %q:\n%s", want, body)
			}
		}
		if !strings.HasPrefix(string(r.Header.ContentType()), "text/plain") {
			t.Errorf("Content-Type %s", r.Header.ContentType())
		}
	}
	body := string(ask("domain=" + play + "&ip=" + south4 + "&format=text&self=north-1&net=4g").Body())
	for _, want := range []string{"north-1 may serve", "mobile"} {
		if !strings.Contains(body, want) {
			t.Errorf("the text has no %q:\n%s", want, body)
		}
	}
	if r := ask("domain="+play, "Accept: text/plain, application/json"); string(r.Header.ContentType()) != "application/json" {
		t.Errorf("Content-Type %s", r.Header.ContentType())
	}
	if body := string(ask("domain=x.example&format=text").Body()); !strings.Contains(body, "unknown_domain") {
		t.Errorf("of an unknown domain: %s", body)
	}
	wantRefused(t, ask("ip="+south4), 400, "bad_request", "domain is missing")
	wantRefused(t, ask("domain=%zz"), 400, "bad_request", "percent-encoded")
	wantRefused(t, ask("domain="+play+"&ip=x"), 400, "bad_request", "ip: ")
	wantRefused(t, ask("domain="+play+"&stream=x"), 400, "bad_name", "/APP/NAME")
}

// The admin address has its own guard.
func TestExplainHandler(t *testing.T) {
	handler := ExplainHandler(newDecider(t, plan(), time.Now(), nil))
	f := func(raw string, status int) {
		t.Helper()
		var ctx fasthttp.RequestCtx
		var req fasthttp.Request
		if err := req.Read(bufio.NewReader(strings.NewReader(raw))); err != nil {
			t.Fatal(err)
		}
		ctx.Init(&req, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, nil)
		handler(&ctx)
		if ctx.Response.StatusCode() != status {
			t.Errorf("%q: %d %s", raw, ctx.Response.StatusCode(), ctx.Response.Body())
		}
	}
	f("GET /v1/explain?domain="+play+" HTTP/1.1\r\nHost: x\r\n\r\n", 200)
	f("GET /v1/explain HTTP/1.1\r\nHost: x\r\n\r\n", 400)
	f("POST /v1/explain HTTP/1.1\r\nHost: x\r\n\r\n", 405)
}

func TestExplanationOfNothing(t *testing.T) {
	var b strings.Builder
	writeExplanation(&b, &sched.Explanation{Rules: []sched.Rule{{
		Name: "eligible", Did: "left out 5", Dropped: []sched.Dropped{{Reason: sched.Full, Count: 5, Nodes: []string{"a", "b"}}},
	}}})
	for _, want := range []string{"nothing is known yet", "unknown, unknown", "out, full: 5 (a, b, …)"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
