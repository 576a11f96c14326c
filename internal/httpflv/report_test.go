package httpflv

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"millrace/internal/auth"
	"millrace/internal/quality"
	"millrace/internal/session"
)

// keptBy starts a node that keeps how its players fare, in one place.
func keptBy(t *testing.T, cfg Config) (*node, *quality.Book) {
	t.Helper()
	cluster, err := auth.NewCluster(auth.ClusterConfig{})
	if err != nil {
		t.Fatal(err)
	}
	book := quality.New(func(a netip.Addr) quality.Place {
		if a.IsLoopback() {
			return quality.Place{Region: "here"}
		}
		return quality.Place{Region: "there"}
	})
	return startAs(t, cfg, auth.DefaultConfig(), listen(t), Identity{ID: "here", Cluster: cluster, Quality: book}), book
}

// post sends a report.
func (n *node) post(method, body string, header http.Header) (*http.Response, string) {
	n.t.Helper()
	req, err := http.NewRequestWithContext(n.t.Context(), method, "http://"+n.addr+reportPath, strings.NewReader(body))
	if err != nil {
		n.t.Fatal(err)
	}
	if header != nil {
		req.Header = header
	}
	tr := &http.Transport{DisableKeepAlives: true}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		n.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		n.t.Fatal(err)
	}
	return resp, string(text)
}

// TestReport: what players send is taken or refused with a reason, and pages of other
// sites may send it if they may play.
func TestReport(t *testing.T) {
	cfg := quickly()
	cfg.Origins, cfg.TrustedProxies = []string{"https://site.test"}, []string{"127.0.0.1"}
	n, book := keptBy(t, cfg)
	f := func(method, body string, header http.Header, status int, reason, says string) {
		t.Helper()
		resp, text := n.post(method, body, header)
		if resp.StatusCode != status || resp.Header.Get(reasonField) != reason || !strings.Contains(text, says) {
			t.Errorf("%s %.40q: %d %q %q, want %d %q %q", method, body, resp.StatusCode, resp.Header.Get(reasonField), text, status, reason, says)
		}
		if origin := header.Get("Origin"); (resp.Header.Get("Access-Control-Allow-Origin") != "") != (origin == "https://site.test") {
			t.Errorf("%s from %q: Access-Control-Allow-Origin %q", method, origin, resp.Header.Get("Access-Control-Allow-Origin"))
		}
	}
	beacon := http.Header{"Content-Type": {"text/plain;charset=UTF-8"}, "Origin": {"https://site.test"}}
	f("POST", `{"stream": "live/a", "played_ms": 1000}`, beacon, 204, "", "")
	f("POST", `{"stream": "live/a", "played_ms": 2000}`, nil, 204, "", "")
	f("POST", `{"stream": "live/a", "played_ms": 4000}`, http.Header{"X-Forwarded-For": {"192.0.2.1"}}, 204, "", "")
	f("POST", `{"stream": "live/a", "played_ms": -1}`, nil, 400, "absurd", "played_ms is -1")
	f("POST", `hello`, nil, 400, "malformed", "send JSON")
	f("POST", strings.Repeat("a", quality.MaxReport+1), nil, 413, "too_big", "at most 4096")
	f("POST", `{"stream": "live/a"}`, http.Header{"Origin": {"https://other.test"}}, 403, "forbidden", "add its origin")
	f("GET", "", nil, 405, "bad_request", "POST")
	if resp, _ := n.post("OPTIONS", "", beacon); resp.StatusCode != 204 || resp.Header.Get("Access-Control-Allow-Methods") != "POST, OPTIONS" {
		t.Errorf("preflight: %d %v", resp.StatusCode, resp.Header)
	}
	played := map[string]time.Duration{}
	for _, g := range book.Take(10) {
		played[g.Region] = g.Played
	}
	if fmt.Sprint(played) != "map[here:3s there:4s]" {
		t.Errorf("played %v", played)
	}
	for range 300 {
		if resp, _ := n.post("POST", `{}`, nil); resp.StatusCode == 429 {
			if resp.Header.Get(reasonField) != "too_many" || resp.Header.Get("Retry-After") == "" {
				t.Errorf("too many: %v", resp.Header)
			}
			return
		}
	}
	t.Error("an address may send without end")
}

// TestNoReports: without a book there is nothing at the path.
func TestNoReports(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	if resp, _ := n.post("POST", `{"stream": "live/a"}`, nil); resp.StatusCode != 404 {
		t.Errorf("%d", resp.StatusCode)
	}
}

// TestSeenByTheNode: viewers on shards and others are noted alike, nodes are not.
func TestSeenByTheNode(t *testing.T) {
	n, book := keptBy(t, quickly())
	n.publish("live/a").frames(3, 100)
	plain := n.get(get11("/live/a.flv"))
	plain.wantFrames(0, 2)
	socket, in := n.dialWS("/live/a.flv")
	if _, err := in.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	below, err := n.below("live/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	plain.conn.Close()
	socket.Close()
	below.Close()
	n.wantEnded(session.PeerClosed, 3)
	var sum quality.Sums
	closed := 0
	// It is noted right behind the end.
	eventually(t, "two viewers have ended", func() bool {
		for _, g := range book.Take(10) {
			sum.Started, sum.FirstByte = sum.Started+g.Started, sum.FirstByte+g.FirstByte
			closed += g.Closes[session.PeerClosed]
		}
		return closed == 2
	})
	if sum.Started != 2 || sum.FirstByte <= 0 || sum.FirstByte > patience {
		t.Errorf("noted %+v, want two viewers that came", sum)
	}
}
