package frontend

import (
	"net"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
	"pgregory.net/rapid"

	"millrace/internal/sched"
	"millrace/internal/stream"
)

func TestHost(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		if got := string(appendHost(nil, []byte(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	f("", "")
	f("Play.Example.COM", "play.example.com")
	f("play.example.com:8080", "play.example.com")
	f("play.example.com.", "play.example.com")
	f("play.example.com.:443", "play.example.com")
	f("1.2.3.4:80", "1.2.3.4")
	f("[2001:DB8::1]:80", "2001:db8::1")
	f("[2001:db8::1]", "2001:db8::1")
	f("2001:db8::1", "2001:db8::1")
	f("[", "")
	f("[::1", "::1")
	f(":", "")
	f(":80", "")
	f("a:b:c", "a:b:c")
}

func TestPaths(t *testing.T) {
	h := newHTTP(t, newKeys(t), nil)
	f := func(uri string, status int, reason, want string) {
		t.Helper()
		wantRefused(t, get(t, h, north4, play, uri), status, reason, want)
	}
	f("/", 404, "not_found", "/APP/NAME.flv")
	f("/live/room", 404, "not_found", "/APP/NAME.flv")
	f("/live/room.m3u8", 404, "not_found", "HTTP-FLV only")
	f("/live/room.M3U8?x=.flv", 404, "not_found", "HTTP-FLV only")
	f("/live/room.ts", 404, "not_found", "HTTP-FLV only")
	f("/live/room.flv/", 404, "not_found", "/APP/NAME.flv")
	f("/d/", 404, "not_found", "/APP/NAME.flv")
	f("/v1/resolve/", 404, "not_found", "/APP/NAME.flv")
	f("/.flv", 400, "bad_name", "empty")
	f("/room.flv", 400, "bad_name", "/APP/NAME")
	f("/live/../room.flv", 400, "bad_name", `".."`)
	f("/watch/room.flv", 400, "bad_name", "watch")
	f("/live/"+strings.Repeat("x", 256)+".flv", 400, "bad_name", "longer than 255")
	f("/live/a%0ab.flv", 400, "bad_name", "cannot stand")
	f("/live/a%zz.flv", 400, "bad_name", "percent-encoded")
	f("/live/a%ff.flv", 400, "bad_name", "UTF-8")
}

func TestMethods(t *testing.T) {
	h := newHTTP(t, newKeys(t), nil)
	f := func(method, uri string, status int, allow string) {
		t.Helper()
		r := ask(t, h, north4, method+" "+uri+" HTTP/1.1\nHost: "+play+"\nContent-Length: 0\n\n")
		if r.StatusCode() != status || string(r.Header.Peek("Allow")) != allow {
			t.Errorf("%s %s: %d, Allow %q, want %d %q", method, uri, r.StatusCode(), r.Header.Peek("Allow"), status, allow)
		}
	}
	const reads = "GET, HEAD, OPTIONS"
	f("GET", "/live/room.flv", 302, "")
	f("HEAD", "/live/room.flv", 302, "")
	f("POST", "/live/room.flv", 405, reads)
	f("PUT", "/live/room.flv", 405, reads)
	f("OPTIONS", "/live/room.flv", 204, reads)
	f("POST", "/d", 405, reads)
	f("OPTIONS", "/d", 204, reads)
	f("PUT", "/v1/resolve", 405, "GET, HEAD, POST, OPTIONS")
	f("OPTIONS", "/v1/resolve", 204, "GET, HEAD, POST, OPTIONS")
	f("HEAD", "/v1/resolve?domain="+play, 200, "")
}

// Exactly one origin is named on each answer, or none.
func TestCORS(t *testing.T) {
	any, none := newHTTP(t, newKeys(t), nil), newHTTP(t, newKeys(t), func(c *HTTPConfig) { c.Origins = nil })
	some := newHTTP(t, newKeys(t), func(c *HTTPConfig) { c.Origins = []string{"https://a.example", "null"} })
	f := func(h *HTTP, origin, want, vary string) {
		t.Helper()
		for _, uri := range []string{"/live/room.flv", "/live/room.m3u8", "/nothing", "/watch/x.flv", "/d?dn=" + play, "/d", "/v1/resolve?domain=" + play, "/v1/resolve?domain=x"} {
			for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
				r := ask(t, h, north4, method+" "+uri+" HTTP/1.1\nHost: "+play+"\n"+origin+"\n\n")
				var got []string
				for _, v := range r.Header.PeekAll("Access-Control-Allow-Origin") {
					got = append(got, string(v))
				}
				if strings.Join(got, "|") != want || string(r.Header.Peek("Vary")) != vary {
					t.Errorf("%s %s with %q: origins %q, Vary %q, want %q %q", method, uri, origin, got, r.Header.Peek("Vary"), want, vary)
				}
			}
		}
	}
	f(any, "Accept: */*", "*", "")
	f(any, "Origin: https://b.example", "*", "")
	f(any, "Origin: null", "*", "")
	f(some, "Accept: */*", "", "Origin")
	f(some, "Origin: https://a.example", "https://a.example", "Origin")
	f(some, "Origin: null", "null", "Origin")
	f(some, "Origin: https://b.example", "", "Origin")
	f(none, "Origin: https://a.example", "", "")
}

// Who asks is found behind trusted proxies, and nowhere else.
func TestClient(t *testing.T) {
	h := newHTTP(t, newKeys(t), func(c *HTTPConfig) { c.TrustedProxies = []string{"10.0.0.0/8", "::1"} })
	f := func(from string, want string, https bool, fields ...string) {
		t.Helper()
		var ctx fasthttp.RequestCtx
		var req fasthttp.Request
		for _, line := range fields {
			name, value, _ := strings.Cut(line, ": ")
			req.Header.Add(name, value)
		}
		ctx.Init(&req, &net.TCPAddr{IP: net.ParseIP(from)}, nil)
		got := h.settings.Load().clientOf(&ctx)
		if got.addr.String() != want || got.https != https {
			t.Errorf("from %s with %q: %v https %v, want %s %v", from, fields, got.addr, got.https, want, https)
		}
	}
	f("1.2.3.4", "1.2.3.4", false)
	f("::ffff:1.2.3.4", "1.2.3.4", false)
	f("2001:db8::1", "2001:db8::1", false)
	f("1.2.3.4", "1.2.3.4", false, "X-Forwarded-For: 5.6.7.8", "X-Forwarded-Proto: https")
	f("10.0.0.1", "5.6.7.8", true, "X-Forwarded-For: 5.6.7.8", "X-Forwarded-Proto: HTTPS")
	f("10.0.0.1", "5.6.7.8", false, "X-Forwarded-For: 9.9.9.9, 5.6.7.8,10.0.0.2", "X-Forwarded-Proto: http")
	f("10.0.0.1", "5.6.7.8", false, "X-Forwarded-For: 9.9.9.9", "X-Forwarded-For: 5.6.7.8")
	f("10.0.0.1", "10.0.0.3", false, "X-Forwarded-For: 10.0.0.3,10.0.0.2")
	f("10.0.0.1", "10.0.0.1", false, "X-Forwarded-For: 5.6.7.8, nonsense")
	f("10.0.0.1", "10.0.0.2", false, "X-Forwarded-For: nonsense, 10.0.0.2")
	f("10.0.0.1", "10.0.0.1", false, "X-Forwarded-For: ")
	f("::1", "2001:db8::7", false, "X-Forwarded-For: [2001:db8::7]:443")
	f("::1", "5.6.7.8", false, "X-Forwarded-For: 5.6.7.8:443")
}

// The short way to a name gives what the long one gives.
func TestStreamName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.StringMatching(`/?(live|watch|[a-zA-Z0-9_.\- ]{0,4})(/[a-z/.\-\x00\xff?]{0,3}){0,3}`).Draw(t, "path")
		got, err := streamName([]byte(path))
		want, wantErr := stream.ParsePath(path)
		if got != want || (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: %q %v, want %q %v", path, got, err, want, wantErr)
		}
	})
	long := "live/" + strings.Repeat("x", stream.MaxName-5)
	if got, err := streamName([]byte(long)); string(got) != long || err != nil {
		t.Errorf("the longest name: %q %v", got, err)
	}
	if got, err := streamName([]byte(long + "x")); err == nil {
		t.Errorf("too long a name: %q", got)
	}
}

func TestAuthority(t *testing.T) {
	f := func(uri, host, rest string) {
		t.Helper()
		h, r := authority([]byte(uri))
		if string(h) != host || string(r) != rest {
			t.Errorf("%s: %q %q, want %q %q", uri, h, r, host, rest)
		}
	}
	f("/live/room.flv?u=http://x/", "", "/live/room.flv?u=http://x/")
	f("http://a:80/live/room.flv?b", "a:80", "/live/room.flv?b")
	f("http://a?b", "a", "?b")
	f("http://a", "a", "")
	f("*", "", "*")
	f("", "", "")
}

func TestAccessWords(t *testing.T) {
	f := func(word string, want sched.Access, ok bool) {
		t.Helper()
		if got, known := accessOf([]byte(word)); got != want || known != ok {
			t.Errorf("%q: %v %v, want %v %v", word, got, known, want, ok)
		}
	}
	f("wifi", sched.AccessFixed, true)
	f("fixed", sched.AccessFixed, true)
	f("5g", sched.AccessMobile, true)
	f("mobile", sched.AccessMobile, true)
	f("unknown", sched.AccessUnknown, true)
	f("6g", sched.AccessUnknown, false)
	for _, a := range []sched.Access{sched.AccessUnknown, sched.AccessFixed, sched.AccessMobile} {
		f(a.String(), a, true)
	}
}
