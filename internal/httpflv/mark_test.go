package httpflv

import (
	"bufio"
	"bytes"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"pgregory.net/rapid"

	"millrace/internal/auth"
	"millrace/internal/session"
)

// header reads the header lines of a request as the server does.
func header(t testing.TB, lines string) (*fasthttp.Request, bool) {
	t.Helper()
	var req fasthttp.Request
	err := req.Read(bufio.NewReaderSize(strings.NewReader("GET /live/a.flv HTTP/1.1\r\nHost: x\r\n"+lines+crlf), maxHeader))
	return &req, err == nil
}

func TestParseMarks(t *testing.T) {
	// want is the way, or a part of the error's text.
	f := func(name, lines, want string, reason session.Reason) {
		t.Helper()
		req, ok := header(t, lines)
		if !ok {
			t.Fatalf("%s: unreadable", name)
		}
		m, ok, err := ParseMarks("live/a", req.Header.PeekAll)
		if reason != session.None {
			d, denied := err.(*auth.Denied)
			if !denied || d.Reason != reason || !strings.Contains(d.Text, want) || ok {
				t.Errorf("%s: %v %v, want %v with %q", name, ok, err, reason, want)
			}
			return
		}
		if got := strings.Join(m.Mark.Via, " "); err != nil || got != want || ok != (want != "") {
			t.Errorf("%s: via %q %v %v, want %q", name, got, ok, err, want)
		}
		if ok && (m.Mark.Stream != "live/a" || m.Mark.Node != m.Mark.Via[len(m.Mark.Via)-1]) {
			t.Errorf("%s: %+v", name, m.Mark)
		}
	}
	const pull = "Millrace-Purpose: pull\r\n"
	f("a player", "", "", session.None)
	f("a player behind proxies", "Via: 1.1 vegur, 1.0 cache:80 (squid)\r\n", "", session.None)
	f("a node", pull+"Via: 1.1 e1 (millrace)\r\n", "e1", session.None)
	f("two nodes", pull+"Via: 1.1 e1 (millrace), 1.1 r.2_x (millrace)\r\n", "e1 r.2_x", session.None)
	f("two lines", pull+"Via: 1.1 e1 (millrace)\r\nVia: HTTP/1.1  r2\t(millrace) \r\n", "e1 r2", session.None)
	f("case of the names", "millrace-purpose: pull\r\nvia: 1.1 E1 (millrace)\r\n", "E1", session.None)
	f("proxies between", pull+"Via: 1.0 fred, 1.1 e1 (millrace), 1.1 p.example.net (Apache/1.1), 1.1 r2 (millrace),, 2 h3\r\n", "e1 r2", session.None)
	f("tricky comments", pull+`Via: 1.1 p (a, 1.1 x (millrace), \) "(b"),), 1.1 r2 (millrace)`+crlf, "r2", session.None)
	f("a stray bracket", pull+"Via: 1.1 p), 1.1 r2 (millrace)\r\n", "r2", session.None)
	f("a comment without an end", pull+"Via: 1.1 p (x, 1.1 r2 (millrace)\r\n", "comment", session.BadRequest)
	f("no way", pull, "Via does not name", session.BadRequest)
	f("only proxies", pull+"Via: 1.1 vegur\r\n", "Via does not name", session.BadRequest)
	f("no id", pull+"Via: 1.1 (millrace)\r\n", "usable id", session.BadRequest)
	f("nothing but the comment", pull+"Via: (millrace)\r\n", "usable id", session.BadRequest)
	f("id with a colon", pull+"Via: 1.1 a:1 (millrace)\r\n", "usable id", session.BadRequest)
	f("two ids", pull+"Via: 1.1 a b (millrace)\r\n", "usable id", session.BadRequest)
	f("long id", pull+"Via: 1.1 "+strings.Repeat("a", 65)+" (millrace)\r\n", "usable id", session.BadRequest)
	f("long way", pull+"Via: "+strings.Repeat("1.1 a (millrace), ", 33)+crlf, "over 32 nodes", session.TooManyHops)
	f("unknown purpose", "Millrace-Purpose: fun\r\nVia: 1.1 e1 (millrace)\r\n", "purpose", session.BadRequest)
	f("a push", "Millrace-Purpose: push\r\nVia: 1.1 e1 (millrace)\r\n", "purpose", session.BadRequest)
	f("two purposes", pull+pull+"Via: 1.1 e1 (millrace)\r\n", "more than once", session.BadRequest)
	f("two signatures", pull+"Via: 1.1 e1 (millrace)\r\nMillrace-Signature: a\r\nMillrace-Signature: b\r\n", "more than once", session.BadRequest)
	for _, s := range []string{"-1", "1s", "600001", "99999999999999999999", "1.5"} {
		f("resume "+s, pull+"Via: 1.1 e1 (millrace)\r\nMillrace-Resume: "+s+crlf, "milliseconds up to 600000", session.BadRequest)
	}
	f("resume twice", pull+"Via: 1.1 e1 (millrace)\r\nMillrace-Resume: 1\r\nMillrace-Resume: 1\r\n", "more than once", session.BadRequest)
}

var nodeIDs = rapid.StringMatching(`[A-Za-z0-9._-]{1,64}`)

// What a node writes is what another one reads.
func TestMarksRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		via := rapid.SliceOfN(nodeIDs, 1, auth.MaxHops+2).Draw(rt, "via")
		want := Marks{
			Mark: auth.Mark{
				Stream: "live/a", Node: via[len(via)-1], Via: via,
				Purpose: rapid.SampledFrom([]auth.Purpose{auth.Pull, auth.Peer, auth.Trial, auth.Probe}).Draw(rt, "purpose"),
			},
			Signature: rapid.SampledFrom([]string{"", "1800000000:00ff"}).Draw(rt, "signature"),
			Back:      time.Duration(rapid.Int64Range(0, maxBack.Milliseconds()).Draw(rt, "back")) * time.Millisecond,
		}
		req, ok := header(t, string(AppendMarks(nil, want)))
		if !ok {
			rt.Fatalf("unreadable: %q", AppendMarks(nil, want))
		}
		if got, ok, err := ParseMarks("live/a", req.Header.PeekAll); err != nil || !ok || !reflect.DeepEqual(got, want) {
			rt.Fatalf("got %+v %v %v, want %+v", got, ok, err, want)
		}
	})
}

func TestPathRoundTrip(t *testing.T) {
	for _, want := range [][]string{{"r1"}, {"r1", "c1"}, slices.Repeat([]string{strings.Repeat("x", 64)}, maxVia)} {
		answer := append(AppendPath(nil, want), "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"...)
		r := bufio.NewReader(bytes.NewReader(answer))
		first, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := parsePath(first.Header.Get(pathField)); first.StatusCode != http.StatusProcessing || !slices.Equal(got, want) {
			t.Errorf("%d %q, want %q", first.StatusCode, got, want)
		}
		if next, err := http.ReadResponse(r, nil); err != nil || next.StatusCode != http.StatusNotFound {
			t.Errorf("what follows: %v %v", next, err)
		}
	}
	for _, s := range []string{"", ",", "a,", "a b", "a,,b", "é", strings.Repeat("a,", maxVia) + "a"} {
		if p := parsePath(s); p != nil {
			t.Errorf("%q is the path %q", s, p)
		}
	}
}

// FuzzMarks gives ParseMarks whatever the HTTP library can read.
func FuzzMarks(f *testing.F) {
	for _, s := range []string{
		"Millrace-Purpose: pull\r\nVia: 1.1 e1 (millrace), 1.1 p (a\\), (b))\r\nMillrace-Signature: 1:2\r\nMillrace-Resume: 3000\r\n",
		"Millrace-Purpose: trial\r\nVia: 1.1 e1 (millrace)\r\nVia: 1.0 x\r\n",
		"Millrace-Purpose: pull\r\nVia: (((\r\n",
		"Via: 1.1 e1 (millrace)\r\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, lines string) {
		req, readable := header(t, lines)
		if !readable {
			return
		}
		m, ok, err := ParseMarks("live/a", req.Header.PeekAll)
		if err != nil {
			if d, denied := err.(*auth.Denied); !denied || ok || d.Text == "" {
				t.Fatalf("%v %v", ok, err)
			}
			return
		}
		if !ok {
			return
		}
		again, readable := header(t, string(AppendMarks(nil, m)))
		if !readable {
			t.Fatalf("unreadable: %+v", m)
		}
		if n, ok, err := ParseMarks("live/a", again.Header.PeekAll); err != nil || !ok || !reflect.DeepEqual(m, n) {
			t.Fatalf("%+v became %+v %v %v", m, n, ok, err)
		}
	})
}
