package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// curlBytes is how much of an answer is read: a stream never ends by itself.
const curlBytes = 30_000

// curl runs curl and returns head and body of the answer.
func curl(t *testing.T, args ...string) (status string, header map[string]string, body []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, Program(t, "curl"), append([]string{"-s", "-i", "-N"}, args...)...)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(io.LimitReader(pipe, curlBytes))
	if err != nil {
		t.Error(err)
	}
	if len(out) == curlBytes {
		cancel() // there is enough
	}
	if err := cmd.Wait(); err != nil && len(out) < curlBytes {
		t.Fatalf("curl %s: %v", strings.Join(args, " "), err)
	}
	head, body, ok := bytes.Cut(out, []byte("\r\n\r\n"))
	if !ok {
		t.Fatalf("curl %s: no answer: %q", strings.Join(args, " "), out)
	}
	lines := strings.Split(string(head), "\r\n")
	header = map[string]string{}
	for _, l := range lines[1:] {
		name, value, _ := strings.Cut(l, ": ")
		name = strings.ToLower(name)
		if old, twice := header[name]; twice {
			t.Errorf("curl %s: %s comes twice: %q and %q", strings.Join(args, " "), name, old, value)
		}
		header[name] = value
	}
	return lines[0], header, body
}

// TestCurl asks as curl, and the tools built like it, do.
func TestCurl(t *testing.T) {
	n := StartNode(t)
	publishClip(t, n.URL("rtmp", "/live/demo"))
	awaitStream(t, n, "live/demo")
	live, none := n.URL("http", "/live/demo.flv"), n.URL("http", "/live/none.flv")

	type want struct {
		status string
		header map[string]string // "" wants it absent
		flv    bool
		empty  bool
	}
	f := func(name string, w want, args ...string) {
		t.Helper()
		status, header, body := curl(t, args...)
		if status != w.status {
			t.Errorf("%s: %q, want %q", name, status, w.status)
		}
		for k, v := range w.header {
			if header[k] != v {
				t.Errorf("%s: %s is %q, want %q", name, k, header[k], v)
			}
		}
		if header["access-control-allow-origin"] == "" {
			t.Errorf("%s: no CORS header, so a page cannot even read the status", name)
		}
		if isFLV := bytes.HasPrefix(body, []byte("FLV\x01\x05")); isFLV != w.flv {
			t.Errorf("%s: begins with an FLV header of both tracks: %v, want %v: %.60q", name, isFLV, w.flv, body)
		}
		if w.empty && len(body) > 0 {
			t.Errorf("%s: a body of %d bytes, want none", name, len(body))
		}
		if w.flv && len(body) < 20_000 {
			t.Errorf("%s: %d bytes", name, len(body))
		}
	}
	isFLV := map[string]string{"content-type": "video/x-flv", "content-length": ""}
	f("GET", want{"HTTP/1.1 200 OK", isFLV, true, false}, live)
	f("HTTP/1.0", want{
		"HTTP/1.1 200 OK",
		map[string]string{"content-type": "video/x-flv", "content-length": "", "transfer-encoding": "", "connection": "close"},
		true, false,
	}, "-0", live)
	f("Range", want{"HTTP/1.1 200 OK", isFLV, true, false}, "-H", "Range: bytes=100-", live)
	f("Range, from 0", want{"HTTP/1.1 200 OK", isFLV, true, false}, "-r", "0-", live)
	f("HEAD", want{"HTTP/1.1 200 OK", map[string]string{"content-type": "video/x-flv"}, false, true}, "-I", live)
	f("HEAD, missing", want{"HTTP/1.1 404 Not Found", nil, false, true}, "-I", none)
	f("missing", want{"HTTP/1.1 404 Not Found", nil, false, false}, none)
	f("OPTIONS", want{"HTTP/1.1 204 No Content", nil, false, true},
		"-X", "OPTIONS", "-H", "Origin: https://example.com", "-H", "Access-Control-Request-Method: GET", live)
	f("from a page", want{"HTTP/1.1 200 OK", isFLV, true, false}, "-H", "Origin: https://example.com", live)
	f("a query that nobody asked for", want{"HTTP/1.1 200 OK", isFLV, true, false}, live+"?t=1&u=%2F")
	f("POST", want{"HTTP/1.1 405 Method Not Allowed", nil, false, false}, "-X", "POST", live)
	f("a name that is none", want{"HTTP/1.1 400 Bad Request", nil, false, false}, n.URL("http", "/live/%00.flv"))
}

// TestCurlCounts: what curl saved is a file that ffprobe takes.
func TestCurlCounts(t *testing.T) {
	Program(t, "ffprobe")
	n := StartNode(t)
	publishClip(t, n.URL("rtmp", "/live/demo"))
	awaitStream(t, n, "live/demo")
	file := filepath.Join(t.TempDir(), "live.flv")
	cmd := exec.Command(Program(t, "curl"), "-s", "-m", "8", "-o", file, n.URL("http", "/live/demo.flv"))
	if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() != 28 {
		t.Fatal(err)
	}
	// The last tag may be cut off, of which ffprobe says nothing.
	if v, a := packets(t, file); v < 60 || a < 90 {
		t.Errorf("%d pictures and %d audio frames in eight seconds", v, a)
	}
}

// TestKeys: publish keys and signed URLs with the built node, as the README shows.
func TestKeys(t *testing.T) {
	const secret = "0123456789abcdef0123456789abcdef"
	n := StartNode(t, "--set", "auth.publish_keys={live: [correct-horse-battery]}", "--set", fmt.Sprintf("auth.play_secrets=[%q]", secret))
	status, _, _ := curl(t, n.URL("http", "/live/show.flv"))
	if !strings.Contains(status, "401") {
		t.Errorf("without a signature: %s, want 401", status)
	}
	publishClip(t, n.URL("rtmp", "/live/show?key=correct-horse-battery"))
	awaitStream(t, n, "live/show")

	// The recipe of the README, as it stands there, run by a shell.
	Program(t, "openssl")
	recipe := regexp.MustCompile("(?s)```sh\n([^`]*openssl[^`]*)```").FindStringSubmatch(readRepo(t, "README.md"))
	if recipe == nil {
		t.Fatal("the README does not show how to sign")
	}
	cmd := exec.Command("sh", "-c", recipe[1])
	cmd.Env = []string{"SECRET=" + secret, "PATH=" + os.Getenv("PATH")}
	url, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	_, query, _ := strings.Cut(strings.TrimSpace(string(url)), "?")
	status, _, body := curl(t, n.URL("http", "/live/show.flv?"+query))
	if !strings.Contains(status, "200") || !bytes.HasPrefix(body, []byte("FLV")) {
		t.Errorf("with %s: %s, want a stream", query, status)
	}
	status, _, _ = curl(t, n.URL("http", "/live/other.flv?"+query))
	if !strings.Contains(status, "401") && !strings.Contains(status, "403") {
		t.Errorf("with the signature of another stream: %s, want a refusal", status)
	}
}
