package httpflv

import (
	"bufio"
	"bytes"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/internal/session"
	"millrace/internal/stream"
)

// FuzzRequest gives the handler whatever the HTTP library can read as a request.
func FuzzRequest(f *testing.F) {
	hub, err := stream.NewHub(stream.DefaultConfig())
	if err != nil {
		f.Fatal(err)
	}
	p, err := hub.Publish(time.Now(), "live/a", "owner", nil)
	if err != nil {
		f.Fatal(err)
	}
	if err := p.Write(time.Now(), flv.New(flv.Video, 0, picture(true, 10, 0))); err != nil {
		f.Fatal(err)
	}
	gate, err := auth.NewGate(auth.DefaultConfig())
	if err != nil {
		f.Fatal(err)
	}
	cluster, err := auth.NewCluster(auth.ClusterConfig{})
	if err != nil {
		f.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.Origins = []string{"https://a.example", "null"}
	cfg.TrustedProxies = []string{"127.0.0.0/8"}
	log := slog.New(slog.DiscardHandler)
	s, err := New(cfg, nil, newFanout(cfg, log), hub, gate, session.NewTable(), Identity{ID: "here", Cluster: cluster}, nil, log)
	if err != nil {
		f.Fatal(err)
	}
	for _, x := range []string{
		get11("/live/a.flv"),
		"GET /live/a.flv HTTP/1.0\r\n\r\n",
		"HEAD /live/%61.flv?x=%0d%0a HTTP/1.1\r\nHost: x\r\nOrigin: null\r\n\r\n",
		"OPTIONS /live/a.flv HTTP/1.1\r\nHost: x\r\nOrigin: https://a.example\r\n\r\n",
		"GET http://host/live/a.flv HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 1.2.3.4, [::1]:5, x\r\n\r\n",
		"GET /live/a%2Fb.flv HTTP/1.1\r\nHost: x\r\nX-Real-IP: 1.2.3.4\r\n\r\n",
		"GET /live/a.flv HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
		"POST /live/a.flv HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
		"GET /live/a.flv HTTP/1.1\r\nHost: x\r\nVia: 1.1 there (millrace)\r\nMillrace-Purpose: peer\r\nMillrace-Resume: 500\r\n\r\n",
		"GET /live/a.flv HTTP/1.1\r\nHost: x\r\nVia: 1.0 squid, 1.1 here (millrace)\r\nMillrace-Purpose: pull\r\n\r\n",
		"GET /live/%ff%00.flv HTTP/1.1\r\nHost: x\r\nOrigin: a\tb\r\n\r\n",
	} {
		f.Add([]byte(x))
	}
	known := []int{200, 204, 400, 403, 404, 405, 426, 508}
	f.Fuzz(func(t *testing.T, in []byte) {
		var req fasthttp.Request
		if err := req.ReadLimitBody(bufio.NewReaderSize(bytes.NewReader(in), maxHeader), maxBody); err != nil {
			return
		}
		var ctx fasthttp.RequestCtx
		ctx.Init(&req, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, nil)
		s.handle(&ctx)
		if ctx.Hijacked() {
			if !ctx.IsGet() {
				t.Errorf("a stream for %s", ctx.Method())
			}
			return
		}
		if !slices.Contains(known, ctx.Response.StatusCode()) {
			t.Errorf("status %d", ctx.Response.StatusCode())
		}
		if ctx.Response.StatusCode() == 200 && !ctx.IsHead() {
			t.Error("200 without a stream")
		}
		resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(ctx.Response.String())), &http.Request{Method: string(ctx.Method())})
		if err != nil {
			t.Fatalf("unreadable answer %q: %v", ctx.Response.String(), err)
		}
		resp.Body.Close()
		if v := resp.Header.Values("Access-Control-Allow-Origin"); len(v) > 1 || len(v) == 1 && !slices.Contains(cfg.Origins, v[0]) {
			t.Errorf("Access-Control-Allow-Origin %q", v)
		}
	})
}
