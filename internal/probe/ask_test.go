package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"millrace/internal/auth"
	"millrace/internal/sched"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const clusterKey = "a-key-of-the-whole-cluster"

func newCluster(t testing.TB, keys ...string) *auth.Cluster {
	t.Helper()
	c, err := auth.NewCluster(auth.ClusterConfig{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var quiet = slog.New(slog.DiscardHandler)

// answers serves one connection of a probe: it reads requests and writes for each what
// reply says; an empty reply closes the connection.
func answers(reply func(request string) string) func(net.Conn) {
	return func(conn net.Conn) {
		defer conn.Close()
		buf := make([]byte, 4096)
		for {
			n := 0
			for !strings.Contains(string(buf[:n]), "\r\n\r\n") {
				m, err := conn.Read(buf[n:])
				if err != nil {
					return
				}
				n += m
			}
			text := reply(string(buf[:n]))
			if text == "" {
				return
			}
			if _, err := io.WriteString(conn, text); err != nil {
				return
			}
		}
	}
}

// ok is an answer of status 200.
func ok(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func not(status int, reason string) string {
	return fmt.Sprintf("HTTP/1.1 %d No\r\nMillrace-Reason: %s\r\nContent-Length: 3\r\n\r\nno\n", status, reason)
}

// pipes dials into serve.
func pipes(wg *sync.WaitGroup, serve func(net.Conn)) Dial {
	return func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		wg.Go(func() { serve(there) })
		return here, nil
	}
}

func failing(err error) Dial {
	return func(context.Context, string, string) (net.Conn, error) { return nil, err }
}

// probeOnce probes node e1, whose edge is what dial leads to.
func probeOnce(t *testing.T, cluster *auth.Cluster, dial Dial) result {
	t.Helper()
	p, err := New(DefaultConfig(), "s1", cluster, dial, nil, func([]sched.Observation) {}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	n := edge("e1")
	targets := targetsOf(&n)
	return p.probe(t.Context(), &targets[0])
}

func edge(id string) sched.Node {
	return sched.Node{ID: id, Role: "edge", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}, HTTPPort: 8080, Capacity: 1}
}

func TestOutcomes(t *testing.T) {
	healthy := func(figures string) func(string) string {
		return func(request string) string {
			if strings.HasPrefix(request, "GET /healthz ") {
				return ok("ok\n")
			}
			return figures
		}
	}
	const fine = `{"node":"e1","draining":false,"full":false,"load":1000,"viewers":3,"refused":2,"streams":["live/a","live/b"]}`
	cases := []struct {
		name   string
		signed bool
		reply  func(string) string
		want   Outcome
	}{
		{"healthy", false, healthy(""), Up},
		{"healthy, with figures", true, healthy(ok(fine)), Up},
		{"draining", false, func(string) string { return not(503, "draining") }, Draining},
		{"full", false, func(string) string { return not(503, "over_limit") }, Full},
		{"reason in the body", false, func(string) string { return "HTTP/1.1 503 No\r\nContent-Length: 9\r\n\r\ndraining\n" }, Draining},
		{"draining, say the figures", true, healthy(ok(`{"node":"e1","draining":true}`)), Draining},
		{"full, say the figures", true, healthy(ok(`{"node":"e1","full":true}`)), Full},
		{"another fault", false, func(string) string { return not(503, "internal") }, BadStatus},
		{"a page that is missing", false, func(string) string { return not(404, "") }, BadStatus},
		{"a redirect", false, func(string) string {
			return "HTTP/1.1 302 Found\r\nLocation: http://192.0.2.9/\r\nContent-Length: 0\r\n\r\n"
		}, BadStatus},
		{"figures refused", true, healthy(not(403, "bad_signature")), NoFigures},
		{"no node of ours", true, healthy(not(404, "")), NoFigures},
		{"another node", true, healthy(ok(`{"node":"e2"}`)), WrongNode},
		{"figures are no JSON", true, healthy(ok(`hello`)), BadAnswer},
		{"no id", true, healthy(ok(`{}`)), BadAnswer},
		{"load below zero", true, healthy(ok(`{"node":"e1","load":-1}`)), BadAnswer},
		{"load beyond reason", true, healthy(ok(`{"node":"e1","load":9007199254740992}`)), BadAnswer},
		{"load is no number", true, healthy(ok(`{"node":"e1","load":1e400}`)), BadAnswer},
		{"viewers below zero", true, healthy(ok(`{"node":"e1","viewers":-1}`)), BadAnswer},
		{"a stream that is none", true, healthy(ok(`{"node":"e1","streams":["../../etc"]}`)), BadAnswer},
		{"too many streams", true, healthy(ok(`{"node":"e1","streams":[` + strings.Repeat(`"a/b",`, maxStreams) + `"a/b"]}`)), BadAnswer},
		{"too much", true, healthy(ok(strings.Repeat("x", maxFigures+1))), BadAnswer},
		{"a header without an end", false, func(string) string { return "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 1<<20) }, BadAnswer},
		{"a body without an end", false, func(string) string {
			return "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + strings.Repeat("x", 1<<20)
		}, BadAnswer},
		{"a length that lies", false, func(string) string { return "HTTP/1.1 200 OK\r\nContent-Length: 9999999999999\r\n\r\nx" }, Timeout},
		{"half a line", false, func(string) string { return "HTTP/1.1 20" }, Timeout},
		{"no HTTP", false, func(string) string { return "SSH-2.0-OpenSSH_9.9\r\n\r\n" }, BadAnswer},
		{"silence", false, func(string) string { time.Sleep(time.Hour); return "" }, Timeout},
		{"closes", false, func(string) string { return "" }, Reset},
		{"closes in the middle", false, func() func(string) string {
			asked := false
			return func(string) string {
				if asked = !asked; !asked {
					return ""
				}
				return "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nok"
			}
		}(), Timeout}, // it says nothing more, and is not asked again
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var wg sync.WaitGroup
				cluster := newCluster(t)
				if tc.signed {
					cluster = newCluster(t, clusterKey)
				}
				begun := time.Now()
				r := probeOnce(t, cluster, pipes(&wg, answers(tc.reply)))
				if r.outcome != tc.want {
					t.Errorf("outcome %v (%v), want %v", r.outcome, r.err, tc.want)
				}
				if took, most := time.Since(begun), DefaultConfig().Timeout; took > most {
					t.Errorf("took %v, at most %v are allowed", took, most)
				}
				if (r.figures != nil) != (tc.signed && tc.want <= Full) {
					t.Errorf("figures are %+v", r.figures)
				}
				wg.Wait()
			})
		})
	}
}

// TestDialFaults: what the network says of an edge.
func TestDialFaults(t *testing.T) {
	wrapped := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
	}
	for _, tc := range []struct {
		err  error
		want Outcome
	}{
		{wrapped(syscall.ECONNREFUSED), Refused},
		{wrapped(syscall.ECONNRESET), Reset},
		{wrapped(syscall.ETIMEDOUT), Timeout},
		{wrapped(syscall.EHOSTUNREACH), Unreachable},
		{wrapped(syscall.ENETUNREACH), Unreachable},
		{wrapped(syscall.EMFILE), Unreachable},
		{&net.DNSError{Err: "no such host", Name: "e1", IsNotFound: true}, Unreachable},
		{&net.DNSError{Err: "timeout", Name: "e1", IsTimeout: true}, Timeout},
		{context.DeadlineExceeded, Timeout},
		{fmt.Errorf("tls: %w", tls.AlertError(40)), BadTLS},
		{&tls.CertificateVerificationError{Err: errors.New("expired")}, BadTLS},
	} {
		if r := probeOnce(t, newCluster(t), failing(tc.err)); r.outcome != tc.want || r.figures != nil {
			t.Errorf("%v: outcome %v, want %v", tc.err, r.outcome, tc.want)
		}
	}
}

// TestWhatIsAsked: the requests as they are sent, on one connection.
func TestWhatIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		var asked []string
		cluster := newCluster(t, clusterKey)
		r := probeOnce(t, cluster, pipes(&wg, answers(func(request string) string {
			asked = append(asked, request)
			return ok(`{"node":"e1","load":7,"streams":["live/a"]}`)
		})))
		wg.Wait()
		if r.outcome != Up || r.figures == nil || r.figures.Load != 7 || len(r.figures.Streams) != 1 {
			t.Fatalf("got %v (%v), %+v", r.outcome, r.err, r.figures)
		}
		signature := cluster.Sign(time.Now(), auth.Mark{Node: "s1", Via: []string{"s1"}, Purpose: auth.Probe})
		want := []string{
			"GET /healthz HTTP/1.1\r\nHost: 192.0.2.1:8080\r\nUser-Agent: millrace\r\n\r\n",
			"GET /.well-known/millrace HTTP/1.1\r\nHost: 192.0.2.1:8080\r\nUser-Agent: millrace\r\nVia: 1.1 s1 (millrace)\r\n" +
				"Millrace-Purpose: probe\r\nMillrace-Signature: " + signature + "\r\nConnection: close\r\n\r\n",
		}
		if strings.Join(asked, "|") != strings.Join(want, "|") {
			t.Errorf("asked\n%q\nwant\n%q", asked, want)
		}
	})
}

// TestClosedInBetween: an edge that closes after each answer is asked on a second
// connection.
func TestClosedInBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		r := probeOnce(t, newCluster(t, clusterKey), pipes(&wg, answers(func(string) string {
			const body = `{"node":"e1","viewers":4}`
			return fmt.Sprintf("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		})))
		wg.Wait()
		if r.outcome != Up || r.figures == nil || r.figures.Viewers != 4 {
			t.Errorf("got %v (%v), %+v", r.outcome, r.err, r.figures)
		}
	})
}

// TestConnectTime: what is reported is how long the connection took to open, not what
// came after.
func TestConnectTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		open := pipes(&wg, answers(func(string) string { time.Sleep(300 * time.Millisecond); return ok("ok") }))
		r := probeOnce(t, newCluster(t), func(ctx context.Context, network, addr string) (net.Conn, error) {
			time.Sleep(40 * time.Millisecond)
			return open(ctx, network, addr)
		})
		wg.Wait()
		if r.outcome != Up || r.rtt != 40*time.Millisecond {
			t.Errorf("%v, connected in %v, want up in 40ms", r.outcome, r.rtt)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		ok("ok\n"), not(503, "draining"), ok(`{"node":"e1","load":1,"streams":["live/a"]}`),
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1", "",
	} {
		f.Add([]byte(s), []byte(s))
	}
	cluster, err := auth.NewCluster(auth.ClusterConfig{Keys: []string{clusterKey}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		synctest.Test(t, func(t *testing.T) {
			var wg sync.WaitGroup
			n := 0
			r := probeOnce(t, cluster, pipes(&wg, answers(func(string) string {
				n++
				return string(map[int][]byte{1: first, 2: second}[n])
			})))
			wg.Wait()
			if r.outcome >= outcomes || r.outcome.Up() && r.err != nil {
				t.Errorf("outcome %v with error %v", r.outcome, r.err)
			}
			if r.figures != nil && (r.figures.Load < 0 || r.figures.Viewers < 0 || len(r.figures.Streams) > maxStreams) {
				t.Errorf("figures %+v", r.figures)
			}
		})
	})
}
