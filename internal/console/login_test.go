package console

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func (b *bench) try(from, name, password string) *answer {
	b.t.Helper()
	return b.askFrom(from, "POST", "/api/login", fmt.Sprintf(`{"name":%q,"password":%q}`, name, password))
}

func TestLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, testConfig())
		f := func(name, pass string, status int, r Reason) {
			t.Helper()
			b.try("192.0.2.1", name, pass).want(t, name, status, r)
		}
		f("ana", password, 200, NotRefused)
		f("ana", password+"x", 401, WrongPassword)
		f("ana", "", 401, WrongPassword)
		f("ana", strings.Repeat("x", 1000), 401, WrongPassword)
		f("Ana", password, 401, WrongPassword)
		f("eve", password, 401, WrongPassword)
		f("", "", 401, WrongPassword)
		f(strings.Repeat("x", 65), password, 400, BadRequest)
		b.ask("POST", "/api/login", `{"name":"ana"`).want(t, "half a body", 400, BadRequest)
		b.ask("POST", "/api/login", `{"name":"ana","pass":"x"}`).want(t, "unknown field", 400, BadRequest)
		b.ask("POST", "/api/login", `{"name":"ana","password":"x"}{}`).want(t, "two values", 400, BadRequest)
		b.ask("POST", "/api/login", `{"name":"`+strings.Repeat("x", 1<<20)+`"}`).want(t, "a large body", 413, TooBig)

		// The answer does not say which of the two was wrong.
		if a, e := b.try("192.0.2.2", "ana", "x"), b.try("192.0.2.2", "eve", "x"); a.body != e.body {
			t.Errorf("a wrong password: %s, a wrong name: %s", a.body, e.body)
		}
		if s := b.Stats(); s.Logins != 1 || s.Refused["wrong_password"] != 8 {
			t.Errorf("counted: %+v", s)
		}
	})
}

func TestNoUsers(t *testing.T) {
	a := newBench(t, DefaultConfig()).try("192.0.2.1", "ana", password)
	a.want(t, "without users", 403, NoUsers)
	if !strings.Contains(a.body, "router hash-password") {
		t.Errorf("it does not say what to do: %s", a.body)
	}
}

func TestGuessingFromOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, testConfig())
		for i := range loginBurst {
			b.try("192.0.2.1", fmt.Sprint("name", i), "x").want(t, "a guess", 401, WrongPassword)
		}
		a := b.try("192.0.2.1", "ana", password)
		a.want(t, "one more", 429, TooMany)
		if a.head.Get("Retry-After") != "30" || !strings.Contains(a.body, `"retry_after":30`) {
			t.Errorf("when again: %v %s", a.head, a.body)
		}
		b.try("192.0.2.2", "ana", password).want(t, "another address", 200, NotRefused)
		time.Sleep(loginInterval)
		b.try("192.0.2.1", "ana", password).want(t, "after a while", 200, NotRefused)
		b.try("192.0.2.1", "ana", password).want(t, "a success is no guess", 200, NotRefused)
	})
}

func TestGuessingOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, testConfig())
		b.try("192.0.2.200", "ana", password).want(t, "ana at home", 200, NotRefused)
		for i := range nameBurst {
			b.try(fmt.Sprint("198.51.100.", i), "ana", "x").want(t, "a guess", 401, WrongPassword)
		}
		b.try("203.0.113.1", "ana", password).want(t, "from anywhere", 429, TooMany)
		b.try("192.0.2.200", "ana", password).want(t, "ana at home again", 200, NotRefused)
		b.try("203.0.113.1", "ben", password).want(t, "another user", 200, NotRefused)
		b.try("203.0.113.2", "eve", password).want(t, "a name that is none", 401, WrongPassword)
		time.Sleep(nameInterval)
		b.try("203.0.113.1", "ana", password).want(t, "after a while", 200, NotRefused)
	})
}

func TestLoginsTakeTurns(t *testing.T) {
	b := newBench(t, testConfig())
	for range cap(b.logins.queue) {
		b.logins.queue <- struct{}{}
	}
	b.try("192.0.2.1", "ana", password).want(t, "behind a queue", 429, TooMany)
	<-b.logins.queue
	b.try("192.0.2.1", "ana", password).want(t, "at the end of it", 200, NotRefused)
}
