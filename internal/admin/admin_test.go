package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/internal/listen"
	"millrace/internal/session"
	"millrace/internal/stream"
	"millrace/internal/upstream"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// One for the whole process, for the Date header.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		// Sees at its next tick, ten seconds apart, that the server has ended.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
	)
}

// bench is a node with an admin server that runs.
type bench struct {
	t        *testing.T
	hub      *stream.Hub
	table    *session.Table
	server   *Server
	base     string
	client   *http.Client
	draining atomic.Bool
}

func start(t *testing.T, cfg NodeConfig) *bench {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, cfg, ln)
}

func startOn(t *testing.T, cfg NodeConfig, ln net.Listener) *bench {
	t.Helper()
	hub, err := stream.NewHub(stream.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, hub: hub, table: session.NewTable(), client: &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}}
	cluster, err := auth.NewCluster(auth.ClusterConfig{})
	if err != nil {
		t.Fatal(err)
	}
	origin, err := upstream.New(upstream.DefaultConfig(), upstream.Options{Self: "here", Hub: hub, Cluster: cluster, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	node := Program{
		Kind: "node", ID: "here", Role: "center", Version: "1.2.3", Revision: "abc", Started: time.Now(), Draining: b.draining.Load,
		API: NewNode(cfg, "here", hub, b.table, origin, log),
		Figures: func() []Figure {
			return []Figure{{Name: "millrace_test_things_total", Help: "Things.", Counter: true, Labels: []string{"kind", "odd"}, Value: 7}, {Name: "millrace_test_level", Value: 1}}
		},
	}
	b.serve(cfg.Config, ln, node, log)
	return b
}

// serve runs the admin server of a program until the test ends.
func (b *bench) serve(cfg Config, ln net.Listener, of Program, log *slog.Logger) {
	b.t.Helper()
	var err error
	if b.server, err = New(cfg, ln, of, log); err != nil {
		ln.Close()
		b.t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	b.base = "http://127.0.0.1:" + port
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan error, 1)
	go func() { done <- b.server.Run(ctx) }()
	b.t.Cleanup(func() {
		b.client.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("run: %v", err)
		}
	})
}

// ask sends a request and returns status and body; headers are name, value, ….
func (b *bench) ask(method, path string, headers ...string) (int, string) {
	b.t.Helper()
	req, err := http.NewRequest(method, b.base+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
			continue
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// get reads a JSON answer into v.
func (b *bench) get(path string, v any) {
	b.t.Helper()
	status, body := b.ask("GET", path)
	if status != 200 {
		b.t.Fatalf("GET %s: %d %s", path, status, body)
	}
	if err := json.Unmarshal([]byte(body), v); err != nil {
		b.t.Fatalf("GET %s: %v in %s", path, err, body)
	}
}

func (b *bench) open(a session.Action, name string, kick func(session.Reason)) *session.Session {
	if kick == nil {
		kick = func(session.Reason) {}
	}
	p := session.HTTPFLV
	if a == session.Publish {
		p = session.RTMP
	}
	return b.table.Open(session.Info{
		Protocol: p, Action: a, Stream: name, Peer: netip.MustParseAddrPort("192.0.2.7:4000"), Agent: "test/1", Started: time.Now(),
	}, kick)
}

// publish makes a live stream with a few tags.
func (b *bench) publish(name string) (*session.Session, *stream.Publisher) {
	b.t.Helper()
	s := b.open(session.Publish, name, nil)
	p, err := b.hub.Publish(time.Now(), stream.Name(name), "me", s)
	if err != nil {
		b.t.Fatal(err)
	}
	write := func(kind flv.Kind, dts int64, payload []byte) {
		if err := p.Write(time.Now(), flv.New(kind, dts, payload)); err != nil {
			b.t.Fatal(err)
		}
	}
	write(flv.Video, 0, append([]byte{0x17, 0, 0, 0, 0}, avcConfig...))
	write(flv.Audio, 0, []byte{0xaf, 0, 0x12, 0x10})
	for i := range int64(60) {
		kind := byte(0x27)
		if i%30 == 0 {
			kind = 0x17
		}
		write(flv.Video, i*40, []byte{kind, 1, 0, 0, 0, 9, 9, 9})
	}
	return s, p
}

func TestHealth(t *testing.T) {
	b := start(t, DefaultNodeConfig())
	if status, body := b.ask("GET", "/healthz"); status != 200 || body != "ok\n" {
		t.Errorf("got %d %q", status, body)
	}
	b.draining.Store(true)
	if status, body := b.ask("GET", "/healthz"); status != 503 || body != "draining\n" {
		t.Errorf("draining: got %d %q", status, body)
	}
}

// TestRefusesUnread: what is too big to be read is refused as all else is.
func TestRefusesUnread(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	guarded, err := listen.New(listen.DefaultConfig(), ln, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	b := startOn(t, NodeConfig{}, guarded)
	if code, body := b.ask("GET", "/healthz", "X-Long", strings.Repeat("x", maxRequest)); code != 431 || !strings.Contains(body, `"reason":"bad_request"`) {
		t.Errorf("a long head: %d %s", code, body)
	}
}

func TestVersion(t *testing.T) {
	b := start(t, DefaultNodeConfig())
	var v Version
	b.get("/v1/version", &v)
	if v.Version != "1.2.3" || v.Revision != "abc" || v.Role != "center" || v.Go == "" || v.Draining {
		t.Errorf("got %+v", v)
	}
}

func TestStream(t *testing.T) {
	b := start(t, DefaultNodeConfig())
	pub, _ := b.publish("live/a")
	v1, v2 := b.open(session.Play, "live/a", nil), b.open(session.Play, "live/a", nil)
	v1.Bytes.Add(100)
	v2.Bytes.Add(11)
	v2.Skip(3, session.SlowTime)

	var s Stream
	b.get("/v1/streams/live/a", &s)
	if s.Name != "live/a" || s.State != "live" || s.Epoch == 0 || s.Viewers != 2 || s.BytesOut != 111 || s.SkippedTags != 3 || s.TagsIn != 62 {
		t.Errorf("got %+v", s)
	}
	if s.Video == nil || s.Video.Codec != "h264" || s.Video.Profile != "High" || s.Video.Level != "3.1" || s.Video.Width != 1280 || s.Video.Height != 720 || s.Video.FPS != 25 || s.Video.GOPms != 1200 {
		t.Errorf("video is %+v", s.Video)
	}
	if s.Audio == nil || s.Audio.Codec != "aac" || s.Audio.Profile != "LC" || s.Audio.SampleRate != 44100 || s.Audio.Channels != 2 {
		t.Errorf("audio is %+v", s.Audio)
	}
	if s.Publisher == nil || s.Publisher.ID != pub.ID || s.Publisher.Protocol != "rtmp" || s.Publisher.Peer != "192.0.2.7:4000" {
		t.Errorf("publisher is %+v", s.Publisher)
	}
	if _, path := b.ask("GET", "/v1/streams/live/a/path"); !strings.Contains(path, `"hops":[],`) || !strings.Contains(path, `"events":[]`) {
		t.Errorf("the path of a stream that is published here: %s", path)
	}
}

func TestStreamsArePaged(t *testing.T) {
	b := start(t, DefaultNodeConfig())
	for i := range 5 {
		b.publish(fmt.Sprintf("live/%d", i))
	}
	var names []string
	after := ""
	for pages := 0; ; pages++ {
		var got Streams
		b.get("/v1/streams?limit=2&after="+after, &got)
		if got.Total != 5 || len(got.Streams) > 2 || pages > 3 {
			t.Fatalf("page %d: %+v", pages, got)
		}
		for _, s := range got.Streams {
			names = append(names, s.Name)
		}
		if after = got.Next; after == "" {
			break
		}
	}
	if got := strings.Join(names, " "); got != "live/0 live/1 live/2 live/3 live/4" {
		t.Errorf("pages add up to %s", got)
	}
}

func TestSessionsArePagedAndFiltered(t *testing.T) {
	b := start(t, DefaultNodeConfig())
	b.open(session.Publish, "live/a", nil)
	for range 4 {
		b.open(session.Play, "live/a", nil)
	}
	b.open(session.Play, "live/b", nil)

	f := func(query string, matching, shown int, next uint64) {
		t.Helper()
		var got Sessions
		b.get("/v1/sessions"+query, &got)
		if got.Matching != matching || len(got.Sessions) != shown || got.Next != next {
			t.Errorf("%s: %d matching, %d shown, next %d; want %d, %d, %d", query, got.Matching, len(got.Sessions), got.Next, matching, shown, next)
		}
	}
	f("", 6, 6, 0)
	f("?stream=live/a", 5, 5, 0)
	f("?stream=/live/a", 5, 5, 0)
	f("?action=publish", 1, 1, 0)
	f("?protocol=http-flv", 5, 5, 0)
	f("?protocol=ws-flv", 0, 0, 0)
	f("?peer=192.0.2.7", 6, 6, 0)
	f("?peer=192.0.2.0/24&stream=live/b", 1, 1, 0)
	f("?peer=198.51.100.0/24", 0, 0, 0)
	f("?limit=4", 6, 4, 4)
	f("?limit=4&after=4", 6, 2, 0)
	f("?limit=2&after=4", 6, 2, 0)

	bad := func(path, want string) {
		t.Helper()
		status, body := b.ask("GET", path)
		var e Error
		if err := json.Unmarshal([]byte(body), &e); err != nil || status != 400 || e.Reason != "bad_request" || !strings.Contains(e.Error, want) {
			t.Errorf("%s: got %d %s, want %s", path, status, body, want)
		}
	}
	bad("/v1/sessions?limit=0", "limit must be 1 to 1000")
	bad("/v1/sessions?limit=1001", "limit must be 1 to 1000")
	bad("/v1/sessions?after=x", "after must be")
	bad("/v1/sessions?action=watch", "action must be")
	bad("/v1/sessions?protocol=srt", "protocol must be")
	bad("/v1/sessions?peer=somebody", "peer must be")
	bad("/v1/streams?limit=x", "limit must be 1 to 1000")
	bad("/v1/sessions/abc", "a session has a number")
}

func TestKick(t *testing.T) {
	b := start(t, DefaultNodeConfig())
	kicked := map[string]int{}
	note := func(who string) func(session.Reason) {
		return func(r session.Reason) {
			if r != session.Kicked {
				t.Errorf("%s is kicked with %v", who, r)
			}
			kicked[who]++
		}
	}
	viewer := b.open(session.Play, "live/a", note("viewer"))
	b.open(session.Play, "live/b", note("other"))
	b.open(session.Publish, "live/a", note("publisher"))

	f := func(method, path string, status int, body string) {
		t.Helper()
		if s, got := b.ask(method, path); s != status || !strings.Contains(got, body) {
			t.Errorf("%s %s: got %d %s, want %d %s", method, path, s, got, status, body)
		}
	}
	one := fmt.Sprintf("/v1/sessions/%d", viewer.ID)
	f("GET", one, 200, `"stream":"live/a"`)
	f("POST", one, 405, "this path takes GET, DELETE")
	f("DELETE", one, 200, `{"kicked":1}`)
	f("DELETE", "/v1/sessions/999", 404, `"reason":"not_found"`)
	f("GET", "/v1/sessions/999", 404, `"reason":"not_found"`)
	f("POST", "/v1/streams/live/a/kick?who=publisher", 200, `{"kicked":1}`)
	f("POST", "/v1/streams/live/a/kick?who=all", 200, `{"kicked":2}`)
	f("POST", "/v1/streams/live/a/kick?who=viewers", 200, `{"kicked":1}`)
	f("POST", "/v1/streams/live/a/kick", 400, "who must be")
	f("POST", "/v1/streams/live/nobody/kick?who=all", 404, "no such stream")
	f("POST", "/v1/streams/live/a", 404, "POST goes to")
	f("DELETE", "/v1/streams/live/a", 405, "this path takes GET, POST")
	f("GET", "/v1/streams/live/nobody", 404, "no such stream")
	f("GET", "/nowhere", 404, "no such path")
	f("POST", "/metrics", 405, "this path takes GET")
	f("GET", "/", 200, "DELETE /v1/sessions/ID")
	f("GET", "/debug/pprof/goroutine?debug=1", 200, "goroutine profile")
	f("HEAD", "/v1/streams", 200, "")
	if kicked["viewer"] != 3 || kicked["publisher"] != 2 || kicked["other"] != 0 {
		t.Errorf("kicked %v", kicked)
	}
}
