package e2e

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/pires/go-proxyproto"

	"millrace/internal/rtmp"
)

// behind dials as a proxy that says, by a header of the given version, that it
// speaks for client.
func behind(version byte, client string) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		from, err := net.ResolveTCPAddr("tcp", client)
		if err != nil {
			return nil, err
		}
		_, err = proxyproto.HeaderProxyFromAddrs(version, from, c.RemoteAddr()).WriteTo(c)
		return c, err
	}
}

// peers returns who publishes and plays, "action peer" each.
func peers(t *testing.T, n *Node) string {
	t.Helper()
	var got struct {
		Sessions []struct{ Action, Peer string }
	}
	readJSON(t, n.URL("admin", "/v1/sessions"), &got)
	var out []string
	for _, s := range got.Sessions {
		out = append(out, s.Action+" "+s.Peer)
	}
	return strings.Join(out, ", ")
}

// view opens a stream and returns when it plays.
func view(t *testing.T, client *http.Client, url string, header ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if b := make([]byte, 100); resp.StatusCode == http.StatusOK {
		if _, err := resp.Body.Read(b); err != nil {
			t.Fatal(err)
		}
	}
	return resp
}

// TestForwardedFor: a trusted proxy says who the viewer is; another cannot.
func TestForwardedFor(t *testing.T) {
	f := func(proxies, want string) {
		t.Helper()
		n := StartNode(t, "--set", "httpflv.trusted_proxies="+proxies)
		defer publish(t, n.URL("rtmp", "/live/a"))()
		awaitStream(t, n, "live/a")
		view(t, http.DefaultClient, n.URL("http", "/live/a.flv"), "X-Forwarded-For", "203.0.113.9")
		if got := peers(t, n); !strings.Contains(got, want) {
			t.Errorf("with trusted proxies %s: %s; want %s", proxies, got, want)
		}
	}
	f("[127.0.0.0/8]", "play 203.0.113.9:0")
	f("[10.0.0.0/8]", "play 127.0.0.1:")
}

// TestProxyProtocol: both versions on both listeners, and nothing without it.
func TestProxyProtocol(t *testing.T) {
	n := StartNode(t, "--set", "listen.proxy_protocol=[127.0.0.1]", "--set", "listen.proxy_timeout=30s")
	for version, client := range map[byte]string{1: "203.0.113.1:4001", 2: "[2001:db8::2]:4002"} {
		name := "/live/" + string('0'+rune(version))
		cfg := rtmp.DefaultClientConfig()
		cfg.Dial = behind(version, client)
		defer publishBy(t, cfg, n.URL("rtmp", name))()
		awaitStream(t, n, name[1:])
		tr := &http.Transport{DialContext: behind(version, client)}
		view(t, &http.Client{Transport: tr}, n.URL("http", name+".flv"))
		defer tr.CloseIdleConnections()
		got := peers(t, n)
		for _, want := range []string{"publish " + client, "play " + client} {
			if !strings.Contains(got, want) {
				t.Errorf("version %d: %s; want %s", version, got, want)
			}
		}
	}
	for _, scheme := range []string{"rtmp", "http"} {
		c, err := net.Dial("tcp", n.Addr(scheme))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write([]byte("GET /live/1.flv HTTP/1.1\r\nHost: x\r\n\r\n"))
		if k, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s without a header is answered with %d bytes", scheme, k)
		}
		c.Close()
	}
	if _, metrics := get(t, n.URL("admin", "/metrics")); !strings.Contains(metrics, `millrace_listen_refused_total{listener="rtmp",reason="bad_proxy_header"} 1`) {
		t.Error("the refusal is not counted")
	}
}
