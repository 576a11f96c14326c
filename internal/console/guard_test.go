package console

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/valyala/fasthttp"
)

// want checks the status and the reason of an answer.
func (a *answer) want(t *testing.T, what string, status int, r Reason) {
	t.Helper()
	word := ""
	if r != NotRefused {
		word = r.String()
	}
	if a.status != status || a.reason() != word {
		t.Errorf("%s: got %d %s, want %d %s", what, a.status, a.body, status, word)
	}
}

// nobody checks that the question who is logged in is answered so, and why.
func (a *answer) nobody(t *testing.T, what string, r Reason) {
	t.Helper()
	if a.status != 200 || a.body != `{"name":"","reason":"`+r.String()+`"}` {
		t.Errorf("%s: got %d %s, want nobody because of %s", what, a.status, a.body, r)
	}
}

func TestSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, testConfig())
		b.ask("GET", "/api/session", "").nobody(t, "without a cookie", NoSession)
		b.ask("GET", "/api/session", "", "Cookie", "millrace=AAAA").nobody(t, "with any cookie", Expired)

		// Used, it lasts for as long as a session may.
		ana := b.login("ana")
		for range 23 {
			time.Sleep(30 * time.Minute)
			a := ana.ask("GET", "/api/session", "")
			a.want(t, "used each half hour", 200, NotRefused)
			if a.cookie == "" {
				t.Fatal("the cookie is not renewed")
			}
			ana.cookie = a.cookie
		}
		if a := ana.ask("GET", "/api/session", ""); a.cookie != "" {
			t.Error("the cookie is renewed at once")
		}
		time.Sleep(31 * time.Minute)
		ana.ask("GET", "/api/session", "").nobody(t, "after twelve hours", Expired)

		// Not used, it does not.
		ben := b.login("ben")
		time.Sleep(30*time.Minute + time.Second)
		ben.ask("GET", "/api/session", "").nobody(t, "not used", Expired)

		// Ended, its cookie is worth nothing, and another session of the user goes on.
		one, two := b.login("ana"), b.login("ana")
		if a := one.ask("POST", "/api/logout", ""); a.status != 200 || a.cookie != "millrace=" || a.body != `{"everywhere":true}` {
			t.Errorf("log-out: %+v", a)
		}
		one.ask("GET", "/api/session", "").nobody(t, "logged out", LoggedOut)
		two.ask("GET", "/api/session", "").want(t, "the other session", 200, NotRefused)
		b.ask("POST", "/api/logout", "").want(t, "log-out of nobody", 200, NotRefused)
	})
}

func TestReloadHolds(t *testing.T) {
	b := newBench(t, testConfig())
	ana, ben := b.login("ana"), b.login("ben")
	edit := func(s *session) *answer { return s.ask("PUT", "/api/documents/domains", `{"based":0,"body":"x: 1"}`) }
	edit(ben).want(t, "ben edits", 403, ReadOnly)

	cfg := testConfig()
	cfg.Users[1].Role = Operator
	other, err := hashAt("another password", bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Users[0].PasswordHash = other
	if err := b.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	edit(ben).want(t, "ben is operator now", 200, NotRefused)
	edit(ana).want(t, "ana has another password", 401, Expired)

	cfg.Users = cfg.Users[:1]
	if err := b.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	edit(ben).want(t, "ben is gone", 401, Expired)
	cfg.Listeners = 0
	if err := b.Reload(cfg); err == nil {
		t.Error("a bad configuration is taken")
	}
}

func TestForged(t *testing.T) {
	b := newBench(t, testConfig())
	ana, other := b.login("ana"), b.login("ana")
	path, body := "/api/documents/domains/check", `{"body":"x: 1"}`
	f := func(want int, csrf string, fields ...string) {
		t.Helper()
		a := b.ask("POST", path, body, append([]string{"Cookie", ana.cookie, "X-CSRF-Token", csrf}, fields...)...)
		r := NotRefused
		if want == 403 {
			r = Forged
		}
		a.want(t, "with "+csrf+" "+strings.Join(fields, " "), want, r)
	}
	f(200, ana.csrf) // a program that read the token
	f(200, ana.csrf, "Origin", "http://"+host)
	f(200, ana.csrf, "Origin", "http://ROUTER.example:8090", "Sec-Fetch-Site", "same-origin")
	f(403, "")
	f(403, other.csrf)
	f(403, ana.csrf+"x")
	f(403, ana.csrf, "Sec-Fetch-Site", "cross-site")
	f(403, ana.csrf, "Sec-Fetch-Site", "same-site")
	f(403, ana.csrf, "Sec-Fetch-Site", "none")
	f(403, ana.csrf, "Origin", "http://evil.example")
	f(403, ana.csrf, "Origin", "http://router.example")
	f(403, ana.csrf, "Origin", "http://evil.example/"+host)
	f(403, ana.csrf, "Origin", "null")
	f(403, ana.csrf, "Origin", "http://%zz")

	login := `{"name":"ana","password":"` + password + `"}`
	b.ask("POST", "/api/login", login, "Origin", "http://evil.example").want(t, "log-in from elsewhere", 403, Forged)
	b.ask("POST", "/api/login", login, "Content-Type", "text/plain").want(t, "log-in by a form", 400, BadRequest)
	b.ask("POST", "/api/logout", "", "Cookie", ana.cookie).want(t, "log-out without the token", 403, Forged)
	ana.ask("GET", "/api/session", "").want(t, "after that", 200, NotRefused)
	if got := b.Stats().Refused["forged"]; got != 13 {
		t.Errorf("%d forged requests are counted", got)
	}
}

func TestBearer(t *testing.T) {
	cfg := testConfig()
	token, hash := NewToken()
	look, lookHash := NewToken()
	cfg.Tokens = []Token{{"deploy", hash, Operator}, {"probe", lookHash, Reader}}
	b := newBench(t, cfg)
	put := `{"based":0,"body":"x: 1","comment":"by a program"}`
	a := b.ask("PUT", "/api/documents/domains", put, "Authorization", "Bearer "+token)
	a.want(t, "a token edits", 200, NotRefused)
	if a.field("author") != "deploy" {
		t.Errorf("the author is %s", a.body)
	}
	b.ask("PUT", "/api/documents/domains", put, "Authorization", "Bearer "+look).want(t, "a token that may look", 403, ReadOnly)
	for _, bad := range []string{"Bearer " + token + "x", "Bearer ", token, "Basic " + token, "Bearer " + hash} {
		for _, path := range []string{"/api/network", "/api/session"} {
			b.ask("GET", path, "", "Authorization", bad).want(t, path+" "+bad, 401, WrongToken)
		}
	}
	// The token says who asks, not the cookie beside it.
	ana := b.login("ana")
	a = b.ask("GET", "/api/session", "", "Authorization", "Bearer "+look, "Cookie", ana.cookie)
	if a.field("name") != "probe" || a.field("csrf") != "" || a.field("until") != "" {
		t.Errorf("session of a token: %s", a.body)
	}
}

func TestCookie(t *testing.T) {
	f := func(secure bool, want ...string) {
		t.Helper()
		cfg := testConfig()
		cfg.Secure = secure
		a := newBench(t, cfg).ask("POST", "/api/login", `{"name":"ana","password":"`+password+`"}`)
		parts := strings.Split(a.head.Get("Set-Cookie"), "; ")
		for _, w := range append(want, "HttpOnly", "SameSite=Strict", "path=/") {
			if !slices.ContainsFunc(parts, func(p string) bool { return strings.HasPrefix(p, w) }) {
				t.Errorf("secure %v: the cookie %q lacks %s", secure, parts, w)
			}
		}
		if slices.Contains(parts, "secure") != secure || slices.ContainsFunc(parts, func(p string) bool { return strings.HasPrefix(p, "domain") }) {
			t.Errorf("secure %v: %q", secure, parts)
		}
	}
	f(false, "millrace=", "expires=")
	f(true, "__Host-millrace=", "expires=")
}

// TestRouters has two routers of one cluster, and one of another.
func TestRoutersShareSessions(t *testing.T) {
	keys := [][]byte{secretA}
	shared := func(p *Program) { p.Secrets = func() [][]byte { return keys } }
	a, b, other := newBench(t, testConfig(), shared), newBench(t, testConfig(), shared), newBench(t, testConfig())
	ana := a.login("ana")
	ana.bench = b
	got := ana.ask("GET", "/api/session", "")
	got.want(t, "at the second router", 200, NotRefused)
	if got.field("csrf") != ana.csrf {
		t.Error("the routers disagree about the token")
	}
	ana.bench = other
	ana.ask("GET", "/api/session", "").nobody(t, "at a router of another cluster", Expired)
	keys = [][]byte{secretB, secretA} // the key is rotated
	ana.bench = a
	ana.ask("GET", "/api/session", "").want(t, "after a rotation", 200, NotRefused)
	keys = [][]byte{secretB}
	ana.ask("GET", "/api/session", "").nobody(t, "without the old key", Expired)
}

// TestBodyLimit: a big body is read of who is known alone.
func TestBodyLimit(t *testing.T) {
	token, hash := NewToken()
	cfg := testConfig()
	cfg.Tokens = []Token{{"deploy", hash, Operator}}
	b := newBench(t, cfg)
	s := b.login("ben")
	f := func(what, key, value string, want int) {
		t.Helper()
		h := &fasthttp.RequestHeader{}
		h.Set(key, value)
		if got := b.BodyLimit(h); got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	f("nobody", "X-Nothing", "", maxUnknown)
	f("a page", "Cookie", s.cookie, maxText)
	f("a page behind a proxy that ends TLS", "Cookie", "__Host-"+s.cookie, maxText)
	f("a cookie that is none", "Cookie", s.cookie+"A", maxUnknown)
	f("a program", "Authorization", "Bearer "+token, maxText)
	f("no such program", "Authorization", "Bearer "+token+"A", maxUnknown)
	s.ask("POST", "/api/logout", "")
	f("who has logged out", "Cookie", s.cookie, maxUnknown)
}
