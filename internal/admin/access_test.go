package admin

import (
	"log/slog"
	"net"
	"strings"
	"testing"
)

const token = "a-token-of-enough-letters"

func TestTokenIsAsked(t *testing.T) {
	cfg := DefaultNodeConfig()
	cfg.Token = token
	b := start(t, cfg)
	f := func(path, authorization string, want int) {
		t.Helper()
		status, body := b.ask("GET", path, "Authorization", authorization)
		if status != want {
			t.Errorf("%s with %q: got %d %s, want %d", path, authorization, status, body, want)
		}
	}
	f("/v1/streams", "Bearer "+token, 200)
	f("/v1/streams", "Bearer "+token+"x", 401)
	f("/v1/streams", "Bearer "+token[:10], 401)
	f("/v1/streams", "Bearer ", 401)
	f("/v1/streams", "Basic "+token, 401)
	f("/v1/streams", token, 401)
	f("/metrics", "", 401)
	f("/debug/pprof/", "", 401)
	f("/", "", 401)
	f("/healthz", "", 200)

	// A reload changes it.
	cfg.Token = "another-token-of-letters"
	if err := b.server.SetConfig(cfg.Config); err != nil {
		t.Fatal(err)
	}
	f("/v1/streams", "Bearer "+token, 401)
	f("/v1/streams", "Bearer "+cfg.Token, 200)
	cfg.Token = "short"
	if err := b.server.SetConfig(cfg.Config); err == nil || strings.Contains(err.Error(), "short") {
		t.Errorf("a bad token: %v", err)
	}
	f("/v1/streams", "Bearer another-token-of-letters", 200)
}

// TestStrangers is about pages in the browser of somebody on this machine.
func TestStrangers(t *testing.T) {
	b := start(t, DefaultNodeConfig())
	own := strings.TrimPrefix(b.base, "http://")
	f := func(method, path string, want int, headers ...string) {
		t.Helper()
		if status, body := b.ask(method, path, headers...); status != want {
			t.Errorf("%s %s %v: got %d %s, want %d", method, path, headers, status, body, want)
		}
	}
	kick := "/v1/sessions/1" // nobody: 404 when let through
	f("GET", "/v1/streams", 200)
	f("GET", "/v1/streams", 200, "Host", "localhost:9090")
	f("GET", "/v1/streams", 200, "Host", "LOCALHOST")
	f("GET", "/v1/streams", 200, "Host", "[::1]:9090")
	f("GET", "/v1/streams", 403, "Host", "evil.example:9090")
	f("GET", "/v1/streams", 403, "Host", "localhost.evil.example")
	f("GET", "/v1/streams", 403, "Host", "192.0.2.1:9090")
	f("DELETE", kick, 403, "Host", "evil.example")
	f("DELETE", kick, 404)
	f("DELETE", kick, 404, "Origin", b.base)
	f("DELETE", kick, 404, "Sec-Fetch-Site", "same-origin")
	f("DELETE", kick, 404, "Sec-Fetch-Site", "none")
	f("DELETE", kick, 403, "Sec-Fetch-Site", "cross-site")
	f("DELETE", kick, 403, "Sec-Fetch-Site", "same-site")
	f("DELETE", kick, 403, "Origin", "http://evil.example")
	f("DELETE", kick, 403, "Origin", "null")
	f("DELETE", kick, 403, "Origin", "http://127.0.0.1:1")
	f("POST", "/v1/streams/a/b/kick?who=all", 403, "Origin", "https://evil.example")
	f("POST", "/v1/streams/a/b/kick?who=all", 404, "Origin", "http://"+own)
	f("GET", "/debug/pprof/cmdline", 403, "Sec-Fetch-Site", "cross-site")
	f("GET", "/v1/streams", 200, "Sec-Fetch-Site", "cross-site") // it cannot read the answer
}

func TestOtherMachinesNeedToken(t *testing.T) {
	ln, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	_, err = New(DefaultConfig(), ln, Program{}, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "token is empty") || !strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("without a token: %v", err)
	}
	cfg := DefaultNodeConfig()
	cfg.Token = token
	b := startOn(t, cfg, ln)
	if status, _ := b.ask("GET", "/v1/streams", "Host", "node.example", "Authorization", "Bearer "+token); status != 200 {
		t.Errorf("with the token: %d", status)
	}
	if err := b.server.SetConfig(DefaultConfig()); err == nil {
		t.Error("a reload takes the token away from an open address")
	}
}

func TestConfigValidate(t *testing.T) {
	f := func(c NodeConfig, want string) {
		t.Helper()
		err := c.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f(DefaultNodeConfig(), "")
	f(NodeConfig{Config: Config{Token: token}}, "")
	f(NodeConfig{Config: Config{Token: strings.Repeat("x", maxToken)}}, "")
	f(NodeConfig{Config: Config{Token: "fifteen letters"}}, "token must be 16 to 256")
	f(NodeConfig{Config: Config{Token: strings.Repeat("x", maxToken+1)}}, "token must be 16 to 256")
	f(NodeConfig{Config: Config{Token: "sixteen letters\n and more"}}, "token must be 16 to 256")
	f(NodeConfig{MetricStreams: -1}, "metric_streams is -1: use 0 to 10000")
	f(NodeConfig{MetricStreams: 10_001}, "metric_streams is 10001")
}
