package frontend

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/session"
)

func TestSigned(t *testing.T) {
	now := time.Now()
	h := newHTTP(t, newKeys(t), func(c *HTTPConfig) {
		c.Resolve.Secrets = map[string][]string{"app": {appSecret, otherSecret}, "web": {appSecret + "-web"}}
	})
	sign := func(secret, method, path, query, body string) string {
		return query + "&sign=" + SignQuery(secret, method, path, query, []byte(body))
	}
	query := func(app string, in time.Duration) string {
		return "domain=" + play + "&expires=" + strconv.FormatInt(now.Add(in).Unix(), 10) + "&id=" + app
	}
	f := func(name, query string, status int, reason string) {
		t.Helper()
		r := get(t, h, north4, "x", "/v1/resolve?"+query)
		if r.StatusCode() != status || string(r.Header.Peek(reasonField)) != reason {
			t.Errorf("%s: %d %q %s, want %d %q", name, r.StatusCode(), r.Header.Peek(reasonField), r.Body(), status, reason)
		}
		if strings.Contains(string(r.Body()), appSecret) {
			t.Errorf("%s: %s repeats a secret", name, r.Body())
		}
	}
	good := sign(appSecret, "GET", "/v1/resolve", query("app", time.Minute), "")
	f("good", good, 200, "")
	f("the new secret", sign(otherSecret, "GET", "/v1/resolve", query("app", time.Minute), ""), 200, "")
	f("the other app", sign(appSecret+"-web", "GET", "/v1/resolve", query("web", time.Minute), ""), 200, "")
	f("within the skew", sign(appSecret, "GET", "/v1/resolve", query("app", -3*time.Second), ""), 200, "")
	pairs := strings.Split(good, "&")
	f("in another order", pairs[3]+"&"+pairs[1]+"&&"+pairs[2]+"&"+pairs[0], 200, "")
	f("over", sign(appSecret, "GET", "/v1/resolve", query("app", -7*time.Second), ""), 403, "expired")
	f("unsigned", query("app", time.Minute), 401, "unsigned")
	f("nothing at all", "domain="+play, 401, "unsigned")
	f("without expiry", sign(appSecret, "GET", "/v1/resolve", "domain="+play+"&id=app", ""), 401, "unsigned")
	f("bad expiry", sign(appSecret, "GET", "/v1/resolve", "domain="+play+"&id=app&expires=-1", ""), 403, "bad_signature")
	f("more than was signed", good+"&ip=1.2.3.4", 403, "bad_signature")
	f("another value", strings.Replace(good, "domain=play", "domain=pley", 1), 403, "bad_signature")
	f("another encoding", strings.Replace(good, "domain=play", "domain=%70lay", 1), 403, "bad_signature")
	f("another app's secret", sign(appSecret+"-web", "GET", "/v1/resolve", query("app", time.Minute), ""), 403, "bad_signature")
	f("unknown app", sign(appSecret, "GET", "/v1/resolve", query("none", time.Minute), ""), 403, "bad_signature")
	f("the secret of no app", sign(nobody[0], "GET", "/v1/resolve", query("none", time.Minute), ""), 403, "bad_signature")
	f("another path", sign(appSecret, "GET", "/d", query("app", time.Minute), ""), 403, "bad_signature")
	f("another method", sign(appSecret, "POST", "/v1/resolve", query("app", time.Minute), ""), 403, "bad_signature")
	f("too many", good+strings.Repeat("&a", maxPairs), 400, "bad_request")

	post := func(name, sent, signed string, status int) {
		t.Helper()
		q := sign(appSecret, "POST", "/v1/resolve", strings.TrimPrefix(query("app", time.Minute), "domain="+play+"&"), signed)
		r := ask(t, h, north4, fmt.Sprintf("POST /v1/resolve?%s HTTP/1.1\nHost: x\nContent-Length: %d\n\n", q, len(sent))+sent)
		if r.StatusCode() != status {
			t.Errorf("%s: %d %s, want %d", name, r.StatusCode(), r.Body(), status)
		}
	}
	body := `{"queries":[{"domain":"` + play + `"}]}`
	post("a body", body, body, 200)
	post("another body", body, strings.ToUpper(body), 403)

	plain := "/d?dn=" + play
	wantRefused(t, get(t, h, north4, "x", plain), 401, "unsigned", "id=APP")
	q := "dn=" + play + "&expires=" + strconv.FormatInt(now.Add(time.Minute).Unix(), 10) + "&id=app"
	if r := get(t, h, north4, "x", "/d?"+sign(appSecret, "GET", "/d", q, "")); r.StatusCode() != 200 {
		t.Errorf("signed /d: %d %s", r.StatusCode(), r.Body())
	}
	cfg := h.settings.Load().cfg
	cfg.Resolve.PlainUnsigned = true
	if err := h.SetConfig(cfg); err != nil {
		t.Fatal(err)
	}
	if r := get(t, h, north4, "x", plain); r.StatusCode() != 200 {
		t.Errorf("unsigned /d: %d %s", r.StatusCode(), r.Body())
	}
	// The example of the documentation, made by openssl.
	if got, want := SignQuery("0123456789abcdef", "GET", "/v1/resolve", "domain=play.example.com&expires=1800000000&id=app", nil), "24a06dcd8d8e1a0e2fbc547d649e575efa581c6f791f91bb38b7619a26473f0e"; got != want {
		t.Errorf("SignQuery is %s, want %s", got, want)
	}
}

func TestRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHTTP(t, newKeys(t), func(c *HTTPConfig) {
			c.Resolve.Rate, c.Resolve.Burst, c.Resolve.Unlimited = 10, 100, []string{"1.1.9.0/24"}
		})
		asked := func(from, uri string) int {
			n := 0
			for ; n < 150 && get(t, h, from, "x", uri).StatusCode() == 200; n++ {
			}
			return n
		}
		f := func(from, uri string, want int) {
			t.Helper()
			if got := asked(from, uri); got < want-1 || got > want+1 {
				t.Errorf("%s from %s: %d in a row, want %d", uri, from, got, want)
			}
		}
		one, d := "/v1/resolve?domain="+play, "/d?dn="+play
		f(north4, one, 100)
		r := get(t, h, north4, "x", one)
		wantRefused(t, r, 429, session.AddressLimit.String(), "asks more often")
		if string(r.Header.Peek("Retry-After")) != "1" {
			t.Errorf("Retry-After %q", r.Header.Peek("Retry-After"))
		}
		f(north4, d, 0)
		f(south4, d, 100)
		f("1.1.9.7", one, 150)
		f(north6, one, 100)
		f("2400:1::ffff", one, 0) // the same /64
		f("2400:1:0:1::7", one, 100)
		time.Sleep(2 * time.Second)
		f(north4, one, 20)
		time.Sleep(time.Minute)
		f(north4, one+"&domain="+play, 50)
		time.Sleep(time.Minute)
		f(north4, d+","+play+","+play+","+play, 25)
		if r := get(t, h, north4, play, "/live/room.flv"); r.StatusCode() != 302 {
			t.Errorf("a redirect is limited: %d", r.StatusCode())
		}
	})
}
