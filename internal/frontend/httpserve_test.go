package frontend

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp/fasthttputil"
	"go.uber.org/goleak"

	"millrace/internal/address"
)

func TestHTTPConfig(t *testing.T) {
	f := func(change func(*HTTPConfig), want string) {
		t.Helper()
		cfg := DefaultHTTPConfig()
		change(&cfg)
		err := cfg.Validate()
		switch {
		case want == "" && err != nil:
			t.Errorf("%v, want no error", err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("error %v, want one with %q", err, want)
		case err != nil && strings.Contains(err.Error(), "hush"):
			t.Errorf("error %q repeats a secret", err)
		}
	}
	secrets := func(id string, list ...string) func(*HTTPConfig) {
		return func(c *HTTPConfig) { c.Resolve.Secrets = map[string][]string{id: list} }
	}
	f(func(*HTTPConfig) {}, "")
	f(func(c *HTTPConfig) { c.DefaultDomain = "Play.Example.com." }, "")
	f(func(c *HTTPConfig) { c.DefaultDomain = "http://play" }, "default_domain: ")
	f(func(c *HTTPConfig) { c.Origins = []string{"null", "https://a.example:8443"} }, "")
	f(func(c *HTTPConfig) { c.Origins = []string{"https://a.example/"} }, "origins: ")
	f(func(c *HTTPConfig) { c.TrustedProxies = []string{"10.0.0.0/33"} }, "trusted_proxies: ")
	f(func(c *HTTPConfig) { c.ReadTimeout = 0 }, "read_timeout: is 0s, must be 100ms to 1m0s")
	f(func(c *HTTPConfig) { c.IdleTimeout = time.Hour }, "idle_timeout: is 1h0m0s")
	f(func(c *HTTPConfig) { c.TicketLife = 0 }, "ticket_life: is 0s, must be 1s to 10m0s")
	f(func(c *HTTPConfig) { c.Resolve.Rate = -1 }, "resolve.rate: ")
	f(func(c *HTTPConfig) { c.Resolve.Rate, c.Resolve.Burst = 0, 0 }, "")
	f(func(c *HTTPConfig) { c.Resolve.Burst = 63 }, "resolve.burst: is 63, must be 64")
	f(func(c *HTTPConfig) { c.Resolve.Unlimited = []string{"x"} }, "resolve.unlimited: ")
	f(func(c *HTTPConfig) { c.Explain.Token = "hush" }, "explain.token: must be 16 to 256")
	f(func(c *HTTPConfig) { c.Explain.Token = "hush hush hush hush" }, "explain.token: must be 16 to 256")
	f(func(c *HTTPConfig) { c.TrustedProxies = []string{"::ffff:10.0.0.0/104", "10.0.0.1"} }, "")
	f(func(c *HTTPConfig) { c.TrustedProxies = make([]string, address.MaxPrefixes+1) }, "trusted_proxies: has 4097 entries")
	f(secrets("", appSecret), `resolve.secrets: the app id ""`)
	f(secrets("app", appSecret, otherSecret), "")
	f(secrets("app"), "resolve.secrets.app: has 0 secrets, must have 1 to 4")
	f(secrets("app", "hush"), "resolve.secrets.app: secret number 1 must be 16 to 256 bytes")
	f(secrets("a b", appSecret), `resolve.secrets: the app id "a b" must be`)

	h := newHTTP(t, newKeys(t), nil)
	if err := h.SetConfig(HTTPConfig{}); err == nil {
		t.Error("a bad configuration is taken")
	}
	wantRefused(t, get(t, h, north4, "1.2.3.4", "/live/room.flv"), 404, "unknown_domain", "1.2.3.4")
	cfg := DefaultHTTPConfig()
	cfg.DefaultDomain = play
	if err := h.SetConfig(cfg); err != nil {
		t.Fatal(err)
	}
	if r := get(t, h, north4, "1.2.3.4", "/live/room.flv"); r.StatusCode() != 302 {
		t.Errorf("after a reload with a default domain: %d", r.StatusCode())
	}
}

// serveHTTP runs an HTTP on ln until the test ends.
func serveHTTP(t *testing.T, ln net.Listener, change func(*HTTPConfig), log io.Writer) *HTTP {
	t.Helper()
	cfg := DefaultHTTPConfig()
	if change != nil {
		change(&cfg)
	}
	h, err := NewHTTP(cfg, newDecider(t, plan(), time.Now(), nil), newKeys(t, clusterKey), ln, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return h
}

func TestServe(t *testing.T) {
	defer goleak.VerifyNone(t,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2")) // ends with its next sleep
	var log bytes.Buffer
	t.Run("plain", func(t *testing.T) {
		ln := fasthttputil.NewInmemoryListener()
		serveHTTP(t, ln, func(c *HTTPConfig) { c.DefaultDomain = play }, &log)
		f := func(send, want string, never ...string) {
			t.Helper()
			c, err := ln.Dial()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, strings.ReplaceAll(send, "\n", "\r\n")); err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(c)
			if !strings.HasPrefix(string(got), want) {
				t.Errorf("%q: %.200q, want %q", send, got, want)
			}
			for _, s := range never {
				if strings.Contains(string(got), s) {
					t.Errorf("%q: %q has %q", send, got, s)
				}
			}
		}
		f("GET /live/room.flv HTTP/1.0\n\n", "HTTP/1.1 302 Found\r\n")
		f("HEAD /live/room.flv HTTP/1.1\nHost: x\nConnection: close\n\n", "HTTP/1.1 302 Found\r\n", string(followText))
		f("HEAD /d?dn="+play+" HTTP/1.1\nHost: x\nConnection: close\n\n", "HTTP/1.1 200 OK\r\n", "192.0.2.11")
		f("GET http://"+play+"/live/room.flv?a=b HTTP/1.1\nHost: other\nConnection: close\n\n", "HTTP/1.1 302 Found\r\n")
		f("GET /"+strings.Repeat("x", maxHead)+" HTTP/1.1\n\n", "HTTP/1.1 431 ")
		f("POST /v1/resolve HTTP/1.1\nHost: x\nContent-Length: 70000\n\n", "HTTP/1.1 413 ")
		f("nonsense\n\n", "HTTP/1.1 400 ")
		// What the library quotes of a request is not passed on, and not kept.
		for _, line := range []string{"GET nowhere HTTP/1.1", "GET / HTTP/x y", "GET / HTTP/1.1\nA : b", "GET / HTTP/1.1\nHost: a\nHost: b"} {
			f(line+"\nAuthorization: Bearer hush\n\n", "HTTP/1.1 400 ", "hush", "buffer size")
		}
	})
	if !strings.Contains(log.String(), "requests refused") || !strings.Contains(log.String(), "reason=bad_request") {
		t.Errorf("the log has no refusals: %s", log.String())
	}
	if strings.Contains(log.String(), "hush") {
		t.Errorf("the log has a token: %s", log.String())
	}
	if strings.Contains(log.String(), "xxxxxxxx"+strings.Repeat("x", maxLogged)) {
		t.Error("the log has a whole long path")
	}
}

// A player that came over TLS is sent on over TLS.
func TestServeTLS(t *testing.T) {
	cert := httptest.NewUnstartedServer(nil)
	cert.StartTLS()
	defer cert.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveHTTP(t, tls.NewListener(ln, cert.TLS), func(c *HTTPConfig) { c.DefaultDomain = play }, io.Discard)
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()
	r, err := client.Get("https://" + ln.Addr().String() + "/live/room.flv?a=1")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if got := r.Header.Get("Location"); r.StatusCode != 302 || !strings.HasPrefix(got, "https://north-1.cdn.example.com:8443/live/room.flv?a=1&mr=") {
		t.Errorf("%d %q", r.StatusCode, got)
	}
}

func TestRunEndsWithItsListener(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h, err := NewHTTP(DefaultHTTPConfig(), newDecider(t, plan(), time.Now(), nil), newKeys(t), ln, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	if err := h.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "serve HTTP on 127.0.0.1:") {
		t.Errorf("Run on a closed listener: %v", err)
	}
	cfg := DefaultHTTPConfig()
	cfg.TicketLife = -1
	if _, err := NewHTTP(cfg, nil, nil, ln, nil); err == nil {
		t.Error("a bad configuration is accepted")
	}
}

func TestStats(t *testing.T) {
	h := newHTTP(t, newKeys(t), nil)
	get(t, h, north4, play, "/live/room.flv")
	get(t, h, north4, play, "/live/room.flv")
	get(t, h, north4, "x", "/live/room.flv")
	get(t, h, north4, "empty.cdn.example.com", "/live/room.flv")
	get(t, h, north4, "x", "/d?dn="+play+",x")
	get(t, h, north4, "x", "/v1/resolve?domain="+play+"&domain=x")
	get(t, h, north4, "x", "/nothing")
	want := []HTTPCount{
		{"redirect", "placed", 2},
		{"redirect", "no_edges", 1},
		{"redirect", "unknown_domain", 1},
		{"resolve", "placed", 1},
		{"resolve", "unknown_domain", 1},
		{"plain", "placed", 1},
		{"plain", "unknown_domain", 1},
		{"none", "not_found", 1},
	}
	if got := h.Stats(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
