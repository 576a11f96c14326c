package httpflv

import (
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/auth"
	"millrace/internal/session"
	"millrace/internal/stream"
)

// placer sends everybody to one edge, but who has the right ticket.
type placer struct {
	base   string // empty: nobody is sent on
	ticket string

	// Guarded by mu.
	mu    sync.Mutex
	asked []placed
}

// placed is one call of Elsewhere.
type placed struct {
	client netip.Addr
	host   string
	https  bool
	name   stream.Name
	uri    string
}

func (p *placer) Elsewhere(_ time.Time, client netip.Addr, host string, https bool, name stream.Name, uri string) (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, placed{client, host, https, name, uri})
	return p.base + uri, p.base != ""
}

func (p *placer) CheckTicket(_ time.Time, name stream.Name, ticket string) bool {
	return ticket == p.ticket && name == "live/a"
}

func (p *placer) calls() []placed {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// startPlacing starts a node whose players p places.
func startPlacing(t *testing.T, cfg Config, access auth.Config, ln net.Listener, p *placer, nodesOnly bool) *node {
	t.Helper()
	cluster, err := auth.NewCluster(auth.ClusterConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return startAs(t, cfg, access, ln, Identity{ID: "here", Cluster: cluster, Placer: p, NodesOnly: nodesOnly})
}

func TestElsewhere(t *testing.T) {
	p := &placer{base: "http://[2001:db8::1]:8080", ticket: "good"}
	cfg := quickly()
	cfg.TrustedProxies = []string{"127.0.0.1"}
	n := startPlacing(t, cfg, auth.DefaultConfig(), listen(t), p, false)
	n.publish("live/a").frames(3, 100)

	f := func(name, request string, want placed) {
		t.Run(name, func(t *testing.T) {
			before := len(p.calls())
			conn, err := net.Dial("tcp", n.addr)
			if err != nil {
				t.Fatal(err)
			}
			r := ask(t, conn, request)
			if r.resp.StatusCode != 302 {
				t.Fatalf("status %d, want 302", r.resp.StatusCode)
			}
			asked := p.calls()[before:]
			if len(asked) != 1 || asked[0] != want {
				t.Errorf("asked %+v, want %+v", asked, want)
			}
			for field, value := range map[string]string{
				"Location": p.base + want.uri, "Cache-Control": "no-store",
				"Access-Control-Allow-Origin": "*", reasonField: "elsewhere",
			} {
				if got := r.resp.Header.Values(field); len(got) != 1 || got[0] != value {
					t.Errorf("%s is %q, want once %q", field, got, value)
				}
			}
			if r.resp.Close {
				t.Error("the connection is closed")
			}
		})
	}
	one := netip.MustParseAddr("127.0.0.1")
	f("plain", get11("/live/a.flv"), placed{one, "x", false, "live/a", "/live/a.flv"})
	f("a stream that nobody publishes", get11("/live/none.flv"), placed{one, "x", false, "live/none", "/live/none.flv"})
	f("query", get11("/live/a.flv?b=1&a=%20&a"), placed{one, "x", false, "live/a", "/live/a.flv?b=1&a=%20&a"})
	f("forged ticket", get11("/live/a.flv?mr=bad&b=1"), placed{one, "x", false, "live/a", "/live/a.flv?b=1"})
	f("ticket for another stream", get11("/live/b.flv?b=1&mr=good"), placed{one, "x", false, "live/b", "/live/b.flv?b=1"})
	f("odd bytes", get11("/live/%C3%A9%20%22x.flv?b=\"\xff\u00e9"), placed{one, "x", false, "live/é \"x", "/live/%C3%A9%20%22x.flv?b=\"%FF%C3%A9"})
	f("double slash", get11("//live//a.flv"), placed{one, "x", false, "live/a", "/live/a.flv"})
	f("head", "HEAD /live/a.flv HTTP/1.1\r\nHost: x\r\n\r\n", placed{one, "x", false, "live/a", "/live/a.flv"})
	f("1.0", "GET /live/a.flv HTTP/1.0\r\nHost: play.example:8080\r\nConnection: keep-alive\r\n\r\n", placed{one, "play.example:8080", false, "live/a", "/live/a.flv"})
	f("proxy", "GET /live/a.flv HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Proto: http, HTTPS\r\nOrigin: https://site\r\n\r\n",
		placed{netip.MustParseAddr("203.0.113.9"), "x", true, "live/a", "/live/a.flv"})

	if got := n.table.Refusals()[session.HTTPFLV][session.Elsewhere]; got != 10 {
		t.Errorf("%d counted, want 10", got)
	}
	if len(n.hub.Streams()) != 1 || n.fan.Stats().Viewers != 0 {
		t.Errorf("left: %d streams, %+v", len(n.hub.Streams()), n.fan.Stats())
	}
}

// TestElsewhereHeadHasNoBody reads what comes behind the header.
func TestElsewhereHeadHasNoBody(t *testing.T) {
	n := startPlacing(t, quickly(), auth.DefaultConfig(), listen(t), &placer{base: "http://there"}, false)
	conn, err := net.Dial("tcp", n.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, "HEAD /live/a.flv HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(raw), crlf+crlf)
	if !ok || rest != "" || !strings.HasPrefix(head, "HTTP/1.1 302 ") || !strings.Contains(head, "Location: http://there/live/a.flv") {
		t.Errorf("got %q", raw)
	}
}

// TestElsewhereIsNotFor are those who are served or refused here, whatever the placer
// would say.
func TestElsewhereIsNotFor(t *testing.T) {
	access := auth.DefaultConfig()
	access.PlaySecrets = []string{"a secret of some length"}
	signed := auth.SignPlay(access.PlaySecrets[0], "live/a", time.Now().Add(time.Hour))
	p := &placer{base: "http://there", ticket: "good"}
	n := startPlacing(t, quickly(), access, listen(t), p, false)
	n.publish("live/a").frames(3, 100)
	open := startPlacing(t, quickly(), auth.DefaultConfig(), listen(t), p, false)
	open.publish("live/a").frames(3, 100)

	f := func(name string, n *node, path, extra string, status int) {
		t.Run(name, func(t *testing.T) {
			before := len(p.calls())
			conn, err := net.Dial("tcp", n.addr)
			if err != nil {
				t.Fatal(err)
			}
			r := ask(t, conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\n"+extra+"\r\n")
			if r.resp.StatusCode != status || r.resp.Header.Get("Location") != "" {
				t.Errorf("status %d, want %d; %v", r.resp.StatusCode, status, r.resp.Header)
			}
			if asked := p.calls()[before:]; len(asked) > 0 {
				t.Errorf("the placer was asked: %+v", asked)
			}
		})
	}
	const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
	f("without a signature", n, "/live/a.flv", "", 401)
	f("with a wrong one", n, "/live/a.flv?expires=99999999999&sign=00", "", 401)
	f("with a ticket", n, "/live/a.flv?"+signed+"&mr=good", "", 200)
	f("with the ticket first", n, "/live/a.flv?mr=good&"+signed, "", 200)
	f("with a ticket alone", n, "/live/a.flv?mr=good", "", 401)
	f("a ticket is used again", open, "/live/a.flv?mr=good", "", 200)
	f("websocket", open, "/live/a.flv", upgrade, 101)
	f("node", open, "/live/a.flv", "Via: 1.1 edge (millrace)\r\nMillrace-Purpose: pull\r\n", 200)
	f("bad name", open, "/live/../a.flv", "", 400)

	open.server.Drain()
	f("draining, with a ticket", open, "/live/a.flv?mr=good", "", 503)
	if r := open.get(get11("/live/a.flv")); r.resp.StatusCode != 302 {
		t.Errorf("draining, without a ticket: %d, want 302", r.resp.StatusCode)
	}
	p.base = ""
	if r := open.get(get11("/live/a.flv")); r.resp.StatusCode != 503 {
		t.Errorf("draining, with nowhere to go: %d, want 503", r.resp.StatusCode)
	}
}

func TestElsewhereOverTLS(t *testing.T) {
	p := &placer{base: "https://there", ticket: "good"}
	cert, pool := certificate(t)
	ln := tls.NewListener(listen(t), &tls.Config{Certificates: []tls.Certificate{cert}})
	n := startPlacing(t, quickly(), auth.DefaultConfig(), ln, p, false)
	conn, err := tls.Dial("tcp", n.addr, &tls.Config{RootCAs: pool, ServerName: "localhost"})
	if err != nil {
		t.Fatal(err)
	}
	if r := ask(t, conn, get11("/live/a.flv")); r.resp.StatusCode != 302 {
		t.Errorf("status %d, want 302", r.resp.StatusCode)
	}
	if asked := p.calls(); len(asked) != 1 || !asked[0].https {
		t.Errorf("asked %+v, want https", asked)
	}
}

func TestElsewhereIsNotForTheNodesPort(t *testing.T) {
	p := &placer{base: "http://there"}
	n := startPlacing(t, quickly(), auth.DefaultConfig(), listen(t), p, true)
	if r := n.get(get11("/live/a.flv")); r.resp.StatusCode != 403 || len(p.calls()) > 0 {
		t.Errorf("status %d, asked %+v", r.resp.StatusCode, p.calls())
	}
}

// TestOriginBehindARedirect: a browser that was sent on from one site to another says
// that the page has no origin.
func TestOriginBehindARedirect(t *testing.T) {
	cfg := quickly()
	cfg.Origins = []string{"https://site"}
	p := &placer{base: "http://there", ticket: "good"}
	placing := startPlacing(t, cfg, auth.DefaultConfig(), listen(t), p, false)
	placing.publish("live/a").frames(3, 100)
	// An edge that places nobody can be sent players all the same.
	plain := startOn(t, cfg, auth.DefaultConfig(), listen(t))
	ticket := plain.signing().SignTicket(time.Now(), "live/a", time.Minute)
	plain.publish("live/a").frames(3, 100)

	f := func(n *node, query, origin string, status int, want string) {
		t.Helper()
		r := n.get("GET /live/a.flv?" + query + " HTTP/1.1\r\nHost: x\r\nOrigin: " + origin + "\r\n\r\n")
		got := r.resp.Header.Values("Access-Control-Allow-Origin")
		if r.resp.StatusCode != status || strings.Join(got, ",") != want || r.resp.Header.Get("Vary") != "Origin" {
			t.Errorf("%q from %s: %d %v, want %d and %q", query, origin, r.resp.StatusCode, r.resp.Header, status, want)
		}
	}
	f(placing, "", "https://site", 302, "https://site")
	f(placing, "", "null", 302, "")
	f(placing, "mr=bad", "null", 302, "")
	f(placing, "mr=good", "null", 200, "null")
	f(placing, "mr=good", "https://site", 200, "https://site")
	f(placing, "mr=good", "https://other", 200, "")
	f(plain, "mr="+ticket, "null", 200, "null")
	f(plain, "mr="+ticket+"0", "null", 200, "")
	f(plain, "", "null", 200, "")
}

func TestCutTicket(t *testing.T) {
	f := func(query, rest, ticket string) {
		t.Helper()
		if r, k := cutTicket(query); r != rest || k != ticket {
			t.Errorf("%q: %q and %q, want %q and %q", query, r, k, rest, ticket)
		}
	}
	f("", "", "")
	f("a=1&b", "a=1&b", "")
	f("mr=1-a", "", "1-a")
	f("mr=1-a&x=2", "x=2", "1-a")
	f("x=2&mr=1-a", "x=2", "1-a")
	f("x=2&mr=1-a&y=3", "x=2&y=3", "1-a")
	f("mr=1&mr=2", "", "1")
	f("mr=&mr=2", "", "2")
	f("mr&x", "x", "")
	f("xmr=1&mrx=2&MR=3&x=mr=4", "xmr=1&mrx=2&MR=3&x=mr=4", "")
	f("&&mr=1&&", "&&&", "1")
}

func TestEscaped(t *testing.T) {
	f := func(query, want string) {
		t.Helper()
		if got := escaped(query); got != want {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
	f("a=%20&b=1+2;~", "a=%20&b=1+2;~")
	f("a b\r\nc\x00", "a%20b%0D%0Ac%00")
	f("\x7f\xff", "%7F%FF")
}

func FuzzCutTicket(f *testing.F) {
	f.Add("mr=1-a&x=2")
	f.Add("&mr&=mr&mr==&%6dr=1")
	f.Fuzz(func(t *testing.T, query string) {
		rest, _ := cutTicket(query)
		if again, ticket := cutTicket(rest); again != rest || ticket != "" {
			t.Errorf("%q: %q still has the ticket %q", query, rest, ticket)
		}
		p := play{name: "live/a", query: rest}
		for _, c := range []byte(p.uri()) {
			if c <= ' ' || c >= 0x7f {
				t.Fatalf("%q: %q cannot stand in a header", query, p.uri())
			}
		}
	})
}
