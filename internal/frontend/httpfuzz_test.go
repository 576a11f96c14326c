package frontend

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/stream"
)

// FuzzHTTP gives whole requests to the faces. Whatever is sent, there is an answer that
// is one: a redirect goes to an edge, what is called JSON is JSON, and no header line
// is made by the client.
func FuzzHTTP(f *testing.F) {
	const head = " HTTP/1.1\r\nHost: " + play + "\r\n"
	for _, s := range []string{
		"GET /live/room.flv?a=1&mr=x&mr" + head + "\r\n",
		"GET /live/%72oom.flv?a=%0d%0aX:1#f" + head + "Origin: null\r\n\r\n",
		"HEAD http://" + play + "/live/room.flv" + head + "\r\n",
		"GET /d?dn=" + play + ",x&ttl=1&type=addrs&clientip=1&query=1&ip=2400:3::7" + head + "\r\n",
		"GET /v1/resolve?domain=" + play + "&domain=x&stream=live/room&ip=1.2.0.7/24&isp=a%22b&net=4g&n=8&family=6&scheme=https" + head + "\r\n",
		"GET /v1/resolve?domain=" + play + "&id=app&expires=1800000000&sign=00" + head + "\r\n",
		"POST /v1/resolve" + head + "Content-Length: 50\r\n\r\n" + `{"queries":[{"domain":"` + play + `","n":1}]}`,
		"GET /v1/explain?domain=" + play + "&self=north-1&format=text" + head + "Authorization: Bearer " + explainToken + "\r\n\r\n",
		"OPTIONS /live/room.flv" + head + "\r\n",
		"GET /live/room.m3u8" + head + "X-Forwarded-For: 1.2.3.4, [::1]:80\r\nX-Forwarded-Proto: https\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	open := newHTTP(f, newKeys(f, clusterKey), func(c *HTTPConfig) {
		c.TrustedProxies, c.DefaultDomain, c.Explain.Token = []string{"127.0.0.1"}, play, explainToken
		c.Resolve.Rate = 0
	})
	closed := newHTTP(f, newKeys(f), func(c *HTTPConfig) {
		c.Origins, c.Resolve.Secrets = []string{"null"}, map[string][]string{"app": {appSecret}}
	})
	edges := []string{"192.0.2.11:8080", "[2001:db8:1::11]:8080", "198.51.100.21", "[2001:db8:3::31]:8080", "[2001:db8:3::31]", "north-1.cdn.example.com:8443"}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, h := range []*HTTP{open, closed} {
			var req fasthttp.Request
			if req.ReadLimitBody(bufio.NewReaderSize(bytes.NewReader(raw), maxHead), maxQuestions) != nil {
				return
			}
			var ctx fasthttp.RequestCtx
			ctx.Init(&req, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, nil)
			h.handle(&ctx)
			checkAnswer(t, &ctx.Response, edges)
		}
	})
}

func checkAnswer(t *testing.T, r *fasthttp.Response, edges []string) {
	t.Helper()
	var wire bytes.Buffer
	w := bufio.NewWriter(&wire)
	if err := r.Write(w); err != nil || w.Flush() != nil {
		t.Fatal(err)
	}
	var back fasthttp.Response
	if err := back.Read(bufio.NewReader(&wire)); err != nil {
		t.Fatalf("the answer cannot be read: %v", err)
	}
	if n := len(back.Header.PeekAll("Access-Control-Allow-Origin")); n > 1 {
		t.Fatalf("%d origins", n)
	}
	switch code := back.StatusCode(); code {
	case fasthttp.StatusFound:
		locations := back.Header.PeekAll("Location")
		u, err := url.Parse(string(locations[0]))
		if len(locations) != 1 || err != nil && !strings.Contains(err.Error(), "escape") {
			t.Fatalf("locations %q: %v", locations, err)
		}
		_, rest, _ := strings.Cut(string(locations[0]), "://")
		for _, e := range edges {
			if strings.HasPrefix(rest, e+"/") {
				return
			}
		}
		t.Fatalf("%v is no edge", u)
	case 200, 204, 400, 401, 403, 404, 405, 413, 429, 503:
		if string(back.Header.ContentType()) == "application/json" && code != 204 && !json.Valid(back.Body()) {
			t.Fatalf("not JSON: %s", back.Body())
		}
		if code >= 400 && len(back.Header.Peek(reasonField)) == 0 {
			t.Fatalf("%d without a reason", code)
		}
	default:
		t.Fatalf("status %d", code)
	}
}

// FuzzElsewhere gives a re-check whatever a player can send.
func FuzzElsewhere(f *testing.F) {
	f.Add(play, "live/room", "/live/room.flv?a=1", "1-2", []byte{1, 1, 0, 7}, true)
	f.Add("[::1]:80", "live/中", "/live/%e4%b8%ad.flv", "", make([]byte, 16), false)
	f.Add("", "", "", "", []byte{}, false)
	keys := newKeys(f, clusterKey)
	r := newRecheck(f, "south-1", newDecider(f, plan(), t0, nil), keys, func(c *RecheckConfig) { c.DefaultDomain = play })
	f.Fuzz(func(t *testing.T, host, name, uri, ticket string, client []byte, https bool) {
		a, _ := netip.AddrFromSlice(client)
		got, ok := r.Elsewhere(t0, a, host, https, stream.Name(name), uri)
		if ok != (got != "") {
			t.Fatalf("%q %v", got, ok)
		}
		if ok {
			if strings.ContainsFunc(got, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
				t.Fatalf("%q is no header value", got)
			}
			i := strings.LastIndex(got, "mr=")
			if i < 0 || !r.CheckTicket(t0.Add(time.Second), stream.Name(name), got[i+3:]) {
				t.Fatalf("%q has no good ticket", got)
			}
		}
		if r.CheckTicket(t0, stream.Name(name), ticket) {
			t.Fatalf("ticket %q is taken", ticket)
		}
	})
}
