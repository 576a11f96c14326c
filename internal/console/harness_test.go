package console

import (
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/valyala/fasthttp"
	"golang.org/x/crypto/bcrypt"

	"millrace/internal/frontend"
)

// Users of the tests.
const (
	password = "a good password"
	host     = "router.example:8090"
)

// hashed is the hash of password, at the least cost, so that tests are fast.
var hashed = sync.OnceValue(func() string {
	h, err := hashAt(password, bcrypt.MinCost)
	if err != nil {
		panic(err)
	}
	return h
})

func testConfig() Config {
	cfg := DefaultConfig()
	cfg.Users = []User{{"ana", hashed(), Operator}, {"ben", hashed(), Reader}}
	return cfg
}

// bench is a console over a fake.
type bench struct {
	t     testing.TB
	fleet *fake
	*Console
}

func newBench(t testing.TB, cfg Config, change ...func(*Program)) *bench {
	t.Helper()
	f := newFake()
	s := f.scheduler()
	p := Program{Router: "router-1", Version: "0.5.0", Scheduler: s, Explain: frontend.ExplainHandler(s)}
	for _, c := range change {
		c(&p)
	}
	c, err := New(cfg, p, f, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t, f, c}
}

// answer is what a request got.
type answer struct {
	status int
	head   http.Header
	body   string
	cookie string // that was set: NAME=VALUE; "" if none was
}

// reason returns the word of a refusal.
func (a *answer) reason() string {
	var body struct {
		Error, Reason string
	}
	if json.Unmarshal([]byte(a.body), &body) != nil || body.Error == "" {
		return ""
	}
	return body.Reason
}

// field returns a field of the body that is text.
func (a *answer) field(name string) string {
	var body map[string]any
	if err := json.Unmarshal([]byte(a.body), &body); err != nil {
		return err.Error()
	}
	s, _ := body[name].(string)
	return s
}

// ask asks the console, without a network. fields are names and values.
func (b *bench) ask(method, target, body string, fields ...string) *answer {
	return b.askFrom("192.0.2.1", method, target, body, fields...)
}

func (b *bench) askFrom(peer, method, target, body string, fields ...string) *answer {
	var q fasthttp.Request
	q.Header.SetMethod(method)
	q.SetRequestURI(target)
	q.Header.SetHost(host)
	if body != "" {
		q.Header.SetContentType("application/json")
		q.SetBodyString(body)
	}
	for i := 0; i < len(fields); i += 2 {
		q.Header.Set(fields[i], fields[i+1])
	}
	var ctx fasthttp.RequestCtx
	ctx.Init(&q, &net.TCPAddr{IP: net.ParseIP(peer), Port: 4000}, nil)
	if !b.Handle(&ctx) {
		return &answer{status: -1}
	}
	out := &answer{status: ctx.Response.StatusCode(), head: http.Header{}, body: string(ctx.Response.Body())}
	for k, v := range ctx.Response.Header.All() {
		out.head.Add(string(k), string(v))
	}
	if set := out.head.Get("Set-Cookie"); set != "" {
		out.cookie, _, _ = strings.Cut(set, ";")
	}
	return out
}

// session is somebody who is logged in.
type session struct {
	*bench
	cookie, csrf string
}

func (b *bench) login(name string) *session {
	b.t.Helper()
	a := b.ask("POST", "/api/login", `{"name":"`+name+`","password":"`+password+`"}`)
	if a.status != 200 || a.cookie == "" {
		b.t.Fatalf("log-in of %s: %d %s", name, a.status, a.body)
	}
	return &session{b, a.cookie, a.field("csrf")}
}

// ask asks as a page of the console does.
func (s *session) ask(method, target, body string, fields ...string) *answer {
	own := []string{"Cookie", s.cookie, "X-CSRF-Token", s.csrf, "Origin", "http://" + host, "Sec-Fetch-Site", "same-origin"}
	return s.bench.ask(method, target, body, append(own, fields...)...)
}
