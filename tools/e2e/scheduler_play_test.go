package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// placeLive is place with a stream that both edges have.
func placeLive(t *testing.T, args ...string) *placing {
	t.Helper()
	p := place(t, args...)
	for _, n := range []*Node{p.north, p.south} {
		publishClip(t, n.URL("rtmp", "/live/demo"))
		awaitStream(t, n, "live/demo")
	}
	return p
}

// viewers returns the agents of those who play at an edge.
func viewers(t *testing.T, n *Node) string {
	t.Helper()
	_, sessions := get(t, n.URL("admin", "/v1/sessions?action=play"))
	return sessions
}

// TestSchedulerRedirects follows redirects with curl: what they say, and that what
// they lead to is the stream, at the right edge.
func TestSchedulerRedirects(t *testing.T) {
	p := placeLive(t)
	live := p.URL("http", "/live/demo.flv")
	from := func(client string) []string { return []string{"-H", "X-Forwarded-For: " + client} }
	base := func(n *Node) string {
		return strings.Replace(n.URL("http", ""), "[::]", "127.0.0.1", 1)
	}
	f := func(location string, args ...string) {
		t.Helper()
		status, header, body := curl(t, args...)
		if status != "HTTP/1.1 302 Found" || !regexp.MustCompile("^"+location+"$").MatchString(header["location"]) {
			t.Errorf("%v: %s to %q, want %s", args, status, header["location"], location)
		}
		if !strings.Contains(header["cache-control"], "no-store") || header["access-control-allow-origin"] != "*" {
			t.Errorf("%v: %v", args, header)
		}
		if bytes.Contains(body, []byte("FLV")) {
			t.Errorf("%v: a body %.40q", args, body)
		}
	}
	const ticket = `mr=\d+-[0-9a-f]{32}`
	quote := regexp.QuoteMeta
	f(quote(base(p.north)+"/live/demo.flv?")+ticket, live)
	f(quote(base(p.north)+"/live/demo.flv?")+ticket, append(from(northern), live)...)
	f(quote(base(p.south)+"/live/demo.flv?")+ticket, append(from(southern), live)...)
	f(quote(base(p.south)+"/live/demo.flv?a=1&b=%2F&")+ticket, append(from(southern), live+"?a=1&b=%2F")...)
	f(quote(base(p.north)+"/live/demo.flv?")+ticket, "-H", "Host: "+domain, live)
	f(quote(base(p.north)+"/live/demo.flv?")+ticket, "-H", "Origin: http://page.example", live)
	f(quote(base(p.north)+"/live/demo.flv?")+ticket, "--head", live)

	status, header, _ := curl(t, "-X", "OPTIONS", "-H", "Origin: http://page.example", "-H", "Access-Control-Request-Method: GET", live)
	if status != "HTTP/1.1 204 No Content" || header["access-control-allow-origin"] != "*" {
		t.Errorf("a preflight: %s %v", status, header)
	}
	if status, _, body := curl(t, p.URL("http", "/live/demo.m3u8")); !strings.Contains(status, "404") || len(body) == 0 {
		t.Errorf("another format: %s %s", status, body)
	}

	// Followed, it is the stream.
	cmd := exec.Command(Program(t, "curl"), append([]string{"-sL", "-m", "60", "-A", "follower/1"}, append(from(southern), live)...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 100_000)
	if _, err := io.ReadFull(out, head); err != nil || !bytes.HasPrefix(head, []byte("FLV\x01\x05")) {
		t.Errorf("followed: %v, %.20q", err, head)
	}
	if at := viewers(t, p.south); !strings.Contains(at, "follower/1") {
		t.Errorf("the south has viewers %s", at)
	}
	if at := viewers(t, p.north); strings.Contains(at, "follower/1") {
		t.Errorf("the north has viewers %s", at)
	}
	cmd.Process.Kill()
	_ = cmd.Wait() // killed

	// What HTTP-DNS says is the same.
	for client, addr := range map[string]string{northern: "127.0.0.1", southern: "127.0.0.2"} {
		if _, body := get(t, p.URL("http", "/d?dn="+domain+"&ip="+client+"&ttl=1")); strings.TrimSpace(body) != addr+",60" {
			t.Errorf("/d says %q of a client at %s, want %s", body, client, addr)
		}
		if _, body := get(t, p.URL("http", "/v1/resolve?domain="+domain+"&ip="+client)); !strings.Contains(body, `"v4":"`+addr+`"`) {
			t.Errorf("/v1/resolve says %q of a client at %s, want %s", body, client, addr)
		}
		if _, body := get(t, p.URL("admin", "/v1/explain?domain="+domain+"&ip="+client)); !strings.Contains(body, `"addr4": "`+addr+`"`) || !strings.Contains(body, "coverage") {
			t.Errorf("/v1/explain says %q of a client at %s, want %s", body, client, addr)
		}
	}
}

// TestSchedulerFFmpeg plays through the redirect, as players on a desktop do.
func TestSchedulerFFmpeg(t *testing.T) {
	Program(t, "ffmpeg")
	p := placeLive(t)
	headers := "X-Forwarded-For: " + southern + "\r\n"
	out := output(t, "ffmpeg", "-nostdin", "-v", "error", "-progress", "-", "-headers", headers, "-i", p.URL("http", "/live/demo.flv"), "-t", "2", "-f", "null", "-")
	frames := regexp.MustCompile(`frame=\s*(\d+)`).FindAllStringSubmatch(out, -1)
	if len(frames) == 0 || frames[len(frames)-1][1] == "0" {
		t.Errorf("ffmpeg decodes nothing: %s", out)
	}
	if _, metrics := get(t, p.south.URL("admin", "/metrics")); !strings.Contains(metrics, `millrace_session_opened_total{action="play",protocol="http-flv"} 1`) {
		t.Error("it did not play in the south")
	}
}

// playerPage is a page of somebody else's site, which plays from the scheduler with
// the player of the watch page.
const playerPage = `<!doctype html><video id="video" muted autoplay></video><pre id="cover"></pre>
<script src="%[1]s/watch/mpegts.js"></script>
<script>
const video = document.getElementById("video");
fetch("%[2]s", {headers: {}}).then(async (res) => {
  document.body.dataset.url = res.url;
  document.body.dataset.redirected = res.redirected;
  res.body.cancel();
  const player = mpegts.createPlayer({type: "flv", isLive: true, url: "%[2]s"});
  player.on(mpegts.Events.ERROR, (type, detail, info) => { document.getElementById("cover").innerText = [type, detail, info.msg].join(" "); });
  player.attachMediaElement(video);
  player.load();
  player.play();
}).catch((e) => { document.getElementById("cover").innerText = String(e); });
</script>`

// TestSchedulerBrowser plays on a page of another site, from the scheduler's address
// through the redirect to an edge: three origins, and CORS at each step.
func TestSchedulerBrowser(t *testing.T) {
	tab := browser(t)
	p := placeLive(t)
	edge := strings.Replace(p.north.URL("http", ""), "[::]", "127.0.0.1", 1)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, playerPage, edge, p.URL("http", "/live/demo.flv?from=page"))
	}))
	defer site.Close()
	page := open(t, tab, site.URL)
	page.awaitPictures(30)
	if url := eval[string](page, "document.body.dataset.url"); !strings.HasPrefix(url, edge+"/live/demo.flv?from=page&mr=") || eval[string](page, "document.body.dataset.redirected") != "true" {
		t.Errorf("the page was led to %s", url)
	}
	if _, metrics := get(t, p.URL("admin", "/metrics")); !strings.Contains(metrics, `millrace_http_requests_total{face="redirect",reason="placed"} 2`) {
		t.Error("the redirects are not counted")
	}
}

// TestWatchPageIsSentOn: the page of an edge that does not suit the player is sent to
// the other edge when it begins to play, and plays.
func TestWatchPageIsSentOn(t *testing.T) {
	tab := browser(t)
	p := placeLive(t, "--internal", "127.0.0.1:0")
	// An edge of the south that follows the scheduler; players of this machine are in
	// the north.
	wrong := StartNode(t, "--role", "edge", "--id", "south", "--http", "127.0.0.3:0", "--cluster-key", clusterKey,
		"--set", "scheduling.from="+p.URL("internal", ""), "--set", "scheduling.default_domain="+domain)
	publishClip(t, wrong.URL("rtmp", "/live/demo"))
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(patience); ; <-look.C {
		status, header, _ := curl(t, wrong.URL("http", "/live/demo.flv"))
		if strings.Contains(status, "302") && strings.Contains(header["location"], "mr=") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the edge does not send players on: %s", status)
		}
	}
	page := open(t, tab, wrong.URL("http", "/watch/live/demo"))
	page.awaitState("playing")
	page.awaitPictures(30)
	if at := viewers(t, p.north); !strings.Contains(at, "Chrome") {
		t.Errorf("the north has viewers %s", at)
	}
	if at := viewers(t, wrong); strings.Contains(at, "Chrome") {
		t.Errorf("the wrong edge has viewers %s", at)
	}
}

// TestSchedulerHTTPS: who comes inside TLS is sent to an edge inside TLS.
func TestSchedulerHTTPS(t *testing.T) {
	dir := t.TempDir()
	cert, key := certificate(t, dir, "here")
	inTLS := []string{"--https", "127.0.0.1:0", "--set", "tls.cert_file=" + cert, "--set", "tls.key_file=" + key, "--cluster-key", clusterKey}
	edge := StartNode(t, append(inTLS, "--role", "edge", "--id", "north")...)
	publishClip(t, edge.URL("rtmp", "/live/demo"))
	awaitStream(t, edge, "live/demo")
	port := func(scheme string) string {
		_, port, _ := net.SplitHostPort(edge.Addr(scheme))
		return port
	}
	p := &placing{dir: dir}
	p.write(t, "nodes.yaml", fmt.Sprintf("nodes:\n  - {id: north, role: edge, region: north, isps: [\"*\"], addresses: [127.0.0.1], http_port: %s, https_port: %s, capacity: 125MB}\n", port("http"), port("https")))
	p.write(t, "domains.yaml", domainsOf("60s"))
	p.Scheduler = StartScheduler(t, append(inTLS, "--nodes", p.file("nodes.yaml"), "--domains", p.file("domains.yaml"), "--set", "http.default_domain="+domain)...)
	p.AwaitMessage(t, "edge is up", "node", "north")

	live := p.URL("https", "/live/demo.flv")
	status, header, _ := curl(t, "--cacert", cert, live)
	if base := edge.URL("https", "/live/demo.flv?mr="); status != "HTTP/1.1 302 Found" || !strings.HasPrefix(header["location"], base) {
		t.Errorf("%s to %q, want %s…", status, header["location"], base)
	}
	_, _, body := curl(t, "-L", "--cacert", cert, live)
	if _, body, _ = bytes.Cut(body, []byte("\r\n\r\n")); !bytes.HasPrefix(body, []byte("FLV\x01\x05")) {
		t.Errorf("followed: %.20q", body)
	}
}
