package frontend

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestPlain(t *testing.T) {
	h := newHTTP(t, newKeys(t), nil)
	f := func(query, want string) {
		t.Helper()
		r := get(t, h, north4, "x", "/d?"+query)
		if r.StatusCode() != 200 || string(r.Body()) != want || !strings.HasPrefix(string(r.Header.ContentType()), "text/plain") {
			t.Errorf("%s: %d %q, want %q", query, r.StatusCode(), r.Body(), want)
		}
	}
	// One edge each, so that the answers can be written down.
	s := plan()
	s.Domains[0].Answers = 1
	h.decider = newDecider(t, s, time.Now(), nil)
	const dn = "dn=" + play
	f(dn, "192.0.2.11")
	f(dn+".", "192.0.2.11")
	f(dn+"&ttl=1", "192.0.2.11,60")
	f(dn+"&ttl=1&ip="+south4, "198.51.100.21,60")
	f(dn+"&ttl=1&ip=", "192.0.2.11,60")
	f(dn+"&type=a", "192.0.2.11")
	f(dn+"&ttl=1&type=aaaa", "2001:db8:1::11,60")
	f(dn+"&ttl=1&type=AAAA&ip="+west6, "2001:db8:3::31,60")
	f(dn+"&ttl=1&type=addrs", "192.0.2.11,60-2001:db8:1::11,60")
	f(dn+"&query=1&ttl=1", play+".:192.0.2.11,60")
	f(dn+"&query=1&ttl=1&clientip=1&ip="+south4, play+".:198.51.100.21,60|"+south4)
	f(dn+"&clientip=1&ttl=1&id=7", "192.0.2.11,60|"+north4)
	f(dn+",x.example,"+play+"&ttl=1&clientip=1", play+".:192.0.2.11,60\nx.example.:0\n"+play+".:192.0.2.11,60|"+north4)
	f("dn="+play+"%2cx.example", play+".:192.0.2.11\nx.example.:0")
	f("dn=x.example", "")
	f("dn=x.example&clientip=1", "")
	f("dn=x.example&query=1", "x.example.:0")
	f("dn=x.example&type=addrs", "0-0")
	f("dn=quiet.cdn.example.com&ttl=1", "")
	f("dn=empty.cdn.example.com&ttl=1", "")
	f("dn="+strings.Repeat(url.QueryEscape("x,"), 63), strings.Repeat("x.:0\n", 63)+".:0")

	wantRefused(t, get(t, h, north4, "x", "/d"), 400, "bad_request", "dn is missing")
	wantRefused(t, get(t, h, north4, "x", "/d?dn=%2"), 400, "bad_request", "percent-encoded")
	wantRefused(t, get(t, h, north4, "x", "/d?query=1&dn=x%0a"+play+".:192.0.2.66,60"), 400, "bad_request", "control characters")
	wantRefused(t, get(t, h, north4, "x", "/d?dn=x,+y"), 400, "bad_request", "send names with commas between them")
	wantRefused(t, get(t, h, north4, "x", "/d?dn="+strings.Repeat("x,", 64)), 400, "bad_request", "65 names at once")
	wantRefused(t, get(t, h, north4, "x", "/d?dn=x&type=mx"), 400, "bad_request", "type must be")
	wantRefused(t, get(t, h, north4, "x", "/d?dn=x&ip=y"), 400, "bad_request", "ip: ")
}
