package httpflv

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/auth"
	"millrace/internal/session"
)

func TestAnswers(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	s := n.publish("live/a")
	s.headers()
	s.frames(3, 100)
	n.publish("live/deep/er")

	f := func(name, request string, status int, text string, headers ...string) {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", n.addr)
			if err != nil {
				t.Fatal(err)
			}
			r := ask(t, conn, request)
			if r.resp.StatusCode != status {
				t.Fatalf("status %d, want %d", r.resp.StatusCode, status)
			}
			if status >= 400 {
				if b := body(t, r); !strings.Contains(b, text) || strings.Count(b, "\n") > 0 {
					t.Errorf("body %q, want one line with %q", b, text)
				}
				if cc := r.resp.Header.Get("Cache-Control"); cc != "no-store" {
					t.Errorf("Cache-Control %q", cc)
				}
			}
			if got := r.resp.Header.Values("Access-Control-Allow-Origin"); len(got) != 1 || got[0] != "*" {
				t.Errorf("Access-Control-Allow-Origin %q, want one *", got)
			}
			for _, h := range headers {
				k, v, _ := strings.Cut(h, ": ")
				if got := r.resp.Header.Get(k); got != v {
					t.Errorf("%s is %q, want %q", k, got, v)
				}
			}
		})
	}
	req := func(method, path, version, extra string) string {
		return method + " " + path + " " + version + "\r\nHost: x\r\n" + extra + "\r\n"
	}
	const v11, v10 = "HTTP/1.1", "HTTP/1.0"
	f("plain", req("GET", "/live/a.flv", v11, ""), 200, "", "Content-Type: video/x-flv", "Cache-Control: no-cache, no-store", "Accept-Ranges: none", "Content-Length: ")
	f("escaped", req("GET", "/live/%61.flv?x=1", v11, ""), 200, "")
	f("double slash", req("GET", "//live//a.flv", v11, ""), 200, "")
	f("range is ignored", req("GET", "/live/a.flv", v11, "Range: bytes=100-\r\n"), 200, "", "Content-Range: ", "Accept-Ranges: none")
	f("range in 1.0", req("GET", "/live/a.flv", v10, "Range: bytes=0-\r\n"), 200, "")
	f("missing", req("GET", "/live/b.flv", v11, ""), 404, "nobody publishes live/b")
	f("missing in 1.0", req("GET", "/live/b.flv", v10, ""), 404, "nobody publishes live/b")
	f("no page", req("GET", "/index.html", v11, ""), 404, "/APP/NAME.flv")
	f("no app", req("GET", "/a.flv", v11, ""), 400, "/APP/NAME")
	f("empty", req("GET", "/.flv", v11, ""), 400, "empty")
	f("dots", req("GET", "/live/../a.flv", v11, ""), 400, "..")
	f("control character", req("GET", "/live/%00a.flv", v11, ""), 400, "cannot stand in it")
	f("not UTF-8", req("GET", "/live/%ff.flv", v11, ""), 400, "UTF-8")
	f("endless", req("GET", "/live/"+strings.Repeat("x", 600)+".flv", v11, ""), 400, "longer than")
	f("post", req("POST", "/live/a.flv", v11, "Content-Length: 0\r\n"), 405, "GET only", "Allow: GET, HEAD, OPTIONS")
	f("put", req("PUT", "/live/a.flv", v11, "Content-Length: 0\r\n"), 405, "GET only", "Allow: GET, HEAD, OPTIONS")
	f("options", req("OPTIONS", "/live/a.flv", v11, "Origin: https://x\r\nAccess-Control-Request-Method: GET\r\n"), 204, "",
		"Access-Control-Allow-Methods: GET, HEAD, OPTIONS", "Allow: GET, HEAD, OPTIONS")
	f("options of a missing one", req("OPTIONS", "/live/none.flv", v11, ""), 204, "")
	f("garbage", "\x16\x03\x01\x02\r\n\r\n", 400, "could not be read")
	f("nothing of it is quoted", "GET /live/a.flv?key=hush HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "headers: too many host headers): ask")
	f("big header", req("GET", "/live/a.flv", v11, "Cookie: "+strings.Repeat("c", maxHeader)+"\r\n"), 431, "cookies")
	f("big body", "POST /live/a.flv HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n", 413, "over")
	f("websocket of another version", req("GET", "/live/a.flv", v11, "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 8\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"), 426, "version 13", "Sec-Websocket-Version: 13")
	f("websocket without a key", req("GET", "/live/a.flv", v11, "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"), 400, "16 bytes")
}

func TestHeadStartsNothing(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	s := n.publish("live/a")
	s.frames(3, 100)
	f := func(version, path string, status int, coding string) {
		t.Helper()
		conn, err := net.Dial("tcp", n.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		if _, err := conn.Write([]byte("HEAD " + path + " " + version + "\r\nHost: x\r\nConnection: close\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		var raw strings.Builder
		buf := make([]byte, 4096)
		for {
			k, err := conn.Read(buf)
			raw.Write(buf[:k])
			if err != nil {
				break
			}
		}
		head, rest, ok := strings.Cut(raw.String(), "\r\n\r\n")
		if !ok || rest != "" || !strings.Contains(head, " "+http.StatusText(status)) {
			t.Errorf("%s %s: %q", version, path, raw.String())
		}
		if got := strings.Contains(head, "Transfer-Encoding: chunked"); got != (coding == "chunked") {
			t.Errorf("%s %s: chunked %v: %q", version, path, got, head)
		}
		if status == 200 && (strings.Contains(head, "Content-Length") || !strings.Contains(head, "video/x-flv")) {
			t.Errorf("%s %s: %q", version, path, head)
		}
	}
	f("HTTP/1.1", "/live/a.flv", 200, "chunked")
	f("HTTP/1.0", "/live/a.flv", 200, "")
	f("HTTP/1.1", "/live/b.flv", 404, "")
	if n.fan.Stats().Viewers != 0 || n.table.Len() != 0 || len(n.hub.Streams()) != 1 {
		t.Errorf("HEAD left something: %+v, %d sessions, %d streams", n.fan.Stats(), n.table.Len(), len(n.hub.Streams()))
	}
}

func TestCORS(t *testing.T) {
	f := func(origins []string, origin, want string) {
		t.Helper()
		st := settings{cfg: Config{Origins: origins}}
		if got := st.cors(origin); got != want {
			t.Errorf("origins %q, Origin %q: %q, want %q", origins, origin, got, want)
		}
	}
	const a, v = "Access-Control-Allow-Origin: ", "Vary: Origin\r\n"
	list := []string{"https://a.example", "https://b.example:8443"}
	f([]string{"*"}, "https://a.example", a+"*\r\n")
	f([]string{"*"}, "", a+"*\r\n")
	f([]string{"*"}, "null", a+"*\r\n")
	f(list, "https://b.example:8443", a+"https://b.example:8443\r\n"+v)
	f(list, "https://b.example", v)
	f(list, "", v)
	f(list, "null", v)
	f([]string{"null"}, "null", a+"null\r\n"+v)
	f(nil, "https://a.example", "")
}

func TestPeerBehindProxies(t *testing.T) {
	st, err := newSettings(func() Config {
		c := DefaultConfig()
		c.TrustedProxies = []string{"10.0.0.0/8", "192.0.2.7", "2001:db8::/32"}
		return c
	}())
	if err != nil {
		t.Fatal(err)
	}
	f := func(remote string, want string, headers ...string) {
		t.Helper()
		var ctx fasthttp.RequestCtx
		var req fasthttp.Request
		for _, h := range headers {
			k, v, _ := strings.Cut(h, ": ")
			req.Header.Add(k, v)
		}
		ctx.Init(&req, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(remote)), nil)
		if got := st.peer(&ctx).String(); got != want {
			t.Errorf("from %s with %q: %s, want %s", remote, headers, got, want)
		}
	}
	f("198.51.100.1:5", "198.51.100.1:5")
	f("198.51.100.1:5", "198.51.100.1:5", "X-Forwarded-For: 203.0.113.9") // not trusted
	f("10.1.1.1:5", "10.1.1.1:5")
	f("10.1.1.1:5", "203.0.113.9:0", "X-Forwarded-For: 203.0.113.9")
	f("[::ffff:10.1.1.1]:5", "203.0.113.9:0", "X-Forwarded-For: 203.0.113.9")
	f("10.1.1.1:5", "203.0.113.9:0", "X-Forwarded-For: 1.2.3.4, 203.0.113.9, 10.2.2.2")
	f("10.1.1.1:5", "203.0.113.9:0", "X-Forwarded-For: 1.2.3.4", "X-Forwarded-For: 203.0.113.9, 192.0.2.7")
	f("10.1.1.1:5", "10.2.2.2:0", "X-Forwarded-For: forged, 10.2.2.2")
	f("10.1.1.1:5", "10.1.1.1:5", "X-Forwarded-For: unknown")
	f("10.1.1.1:5", "10.3.3.3:0", "X-Forwarded-For: 10.3.3.3, 10.2.2.2")
	f("10.1.1.1:5", "203.0.113.9:4711", "X-Forwarded-For: 203.0.113.9:4711")
	f("10.1.1.1:5", "[2001:db9::1]:0", "X-Forwarded-For: [2001:db9::1]")
	f("[2001:db8::1]:5", "203.0.113.9:0", "X-Real-IP: 203.0.113.9")
	f("10.1.1.1:5", "203.0.113.9:0", "X-Real-IP: 1.2.3.4", "X-Forwarded-For: 203.0.113.9")
	f("198.51.100.1:5", "198.51.100.1:5", "X-Real-IP: 203.0.113.9")
}

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("default: %v", err)
	}
	f := func(want string, change func(*Config)) {
		t.Helper()
		c := DefaultConfig()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	f("read_timeout: is 0s, must be 100ms to 1m0s", func(c *Config) { c.ReadTimeout = 0 })
	f("max_viewers: is 0", func(c *Config) { c.MaxViewers = 0 })
	f("merge_max: is 5ms, must be 10ms", func(c *Config) { c.MergeMax = 5 * time.Millisecond })
	f("stall_timeout", func(c *Config) { c.StallTimeout = time.Millisecond })
	f("origins", func(c *Config) { c.Origins = []string{"a.example"} })
	f("origins", func(c *Config) { c.Origins = []string{"https://a.example/"} })
	f("trusted_proxies", func(c *Config) { c.TrustedProxies = []string{"10.0.0.0/40"} })
	f("shards", func(c *Config) { c.Shards = -1 })
}

func TestRefusedPlays(t *testing.T) {
	access := auth.DefaultConfig()
	access.PlaySecrets = []string{"0123456789abcdef0123456789abcdef"}
	access.Storm.Free = 1
	n := start(t, quickly(), access)
	s := n.publish("live/a")
	s.frames(3, 100)

	r := n.get(get11("/live/a.flv"))
	if r.resp.StatusCode != 401 || r.resp.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("without a signature: %d %v", r.resp.StatusCode, r.resp.Header)
	}
	if b := body(t, r); !strings.Contains(b, "signed URL") {
		t.Errorf("body %q", b)
	}
	// The second one has to wait, and costs no goroutine while it does.
	asked := time.Now()
	r = n.get("GET /live/a.flv?expires=99999999999&sign=00 HTTP/1.1\r\nHost: x\r\nOrigin: null\r\n\r\n")
	if r.resp.StatusCode != 401 || r.resp.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("with a wrong signature: %d %v", r.resp.StatusCode, r.resp.Header)
	}
	if took := time.Since(asked); took < access.Storm.FirstDelay {
		t.Errorf("told after %v, want at least %v", took, access.Storm.FirstDelay)
	}
	if got := n.table.Refusals()[session.HTTPFLV][session.Unauthorized]; got != 2 {
		t.Errorf("%d refusals counted, want 2", got)
	}
}

func TestOverLimit(t *testing.T) {
	cfg := quickly()
	cfg.MaxViewers = 2
	n := start(t, cfg, auth.DefaultConfig())
	s := n.publish("live/a")
	s.frames(3, 100)
	a, b := n.get(get11("/live/a.flv")), n.get(get11("/live/a.flv"))
	a.wantFrames(0, 2)
	b.wantFrames(0, 2)
	c := n.get(get11("/live/a.flv"))
	if c.resp.StatusCode != 503 || c.resp.Header.Get("Retry-After") == "" {
		t.Errorf("third viewer: %d %v", c.resp.StatusCode, c.resp.Header)
	}
	a.conn.Close()
	n.wantEnded(session.PeerClosed, 1)
	n.get(get11("/live/a.flv")).wantFrames(0, 2)
}

func TestAFloodForMissingNamesLeavesNothing(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	conn, err := net.Dial("tcp", n.addr)
	if err != nil {
		t.Fatal(err)
	}
	const requests = 500
	r := ask(t, conn, strings.Repeat(get11("/live/none.flv"), requests))
	if r.resp.StatusCode != 404 {
		t.Fatalf("status %d", r.resp.StatusCode)
	}
	eventually(t, "all refusals counted", func() bool {
		return n.table.Refusals()[session.HTTPFLV][session.NotFound] == requests
	})
	if len(n.hub.Streams()) != 0 || n.table.Len() != 0 || n.fan.Stats().Viewers != 0 {
		t.Errorf("left: %d streams, %d sessions, %+v", len(n.hub.Streams()), n.table.Len(), n.fan.Stats())
	}
}

// TestRefusalLog: each reason has a line at once, and in each second one more for
// those that followed, with the newest of them.
func TestRefusalLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := &Server{table: session.NewTable(), log: slog.New(slog.NewTextHandler(&out, nil))}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.refusals.run(ctx, s.log); close(done) }()
		for i := range 30 {
			info := session.Info{Protocol: session.HTTPFLV, Stream: fmt.Sprint("live/", i), Peer: netip.MustParseAddrPort(fmt.Sprint("192.0.2.1:", 1000+i))}
			s.refused(info, session.NotFound, "nobody publishes it")
			if i%10 == 0 {
				info.Protocol = session.WSFLV
				s.refused(info, session.Unauthorized, "")
			}
		}
		time.Sleep(1500 * time.Millisecond)
		s.refused(session.Info{Protocol: session.HTTPFLV}, session.NotFound, "")
		cancel()
		<-done
		var got []string
		for line := range strings.Lines(out.String()) {
			_, text, _ := strings.Cut(line, `msg="requests refused" `)
			got = append(got, strings.TrimSpace(text))
		}
		want := []string{
			`count=1 peer=192.0.2.1:1000 protocol=http-flv reason=not_found stream=live/0 detail="nobody publishes it"`,
			`count=1 peer=192.0.2.1:1000 protocol=ws-flv reason=unauthorized stream=live/0`,
			`count=29 peer=192.0.2.1:1029 protocol=http-flv reason=not_found stream=live/29 detail="nobody publishes it"`,
			`count=2 peer=192.0.2.1:1020 protocol=ws-flv reason=unauthorized stream=live/20`,
			`count=1 peer="" protocol=http-flv reason=not_found`,
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if n := s.table.Refusals(); n[session.HTTPFLV][session.NotFound] != 31 || n[session.WSFLV][session.Unauthorized] != 3 {
			t.Errorf("counted %v", n)
		}
	})
}
