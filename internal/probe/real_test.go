package probe_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/auth"
	"millrace/internal/httpflv"
	"millrace/internal/probe"
	"millrace/internal/sched"
	"millrace/internal/stream"
)

// first probes one edge over loopback and returns the first observation of it.
func first(t *testing.T, n sched.Node, conf *tls.Config, keys ...string) sched.Observation {
	t.Helper()
	cluster, err := auth.NewCluster(auth.ClusterConfig{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan sched.Observation, 1)
	var once sync.Once
	cfg := probe.Config{Interval: 200 * time.Millisecond, Timeout: time.Minute, Concurrency: 4}
	p, err := probe.New(cfg, "s1", cluster, nil, conf, func(obs []sched.Observation) {
		once.Do(func() { got <- obs[0] })
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	p.SetNodes([]sched.Node{n})
	o := <-got
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	return o
}

// TestLoopback probes real sockets: what the kernel says comes out as words.
func TestLoopback(t *testing.T) {
	healthy := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			w.WriteHeader(http.StatusNotFound)
		}
	})
	srv := httptest.NewServer(healthy)
	defer srv.Close()
	secure := httptest.NewTLSServer(healthy)
	defer secure.Close()
	trusted := x509.NewCertPool()
	trusted.AddCert(secure.Certificate())

	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := ln.Addr().String()
	ln.Close()

	node := func(addr string) sched.Node {
		ap := netip.MustParseAddrPort(strings.TrimPrefix(strings.TrimPrefix(addr, "http://"), "https://"))
		n := sched.Node{ID: "e1", Role: "edge", Addresses: []netip.Addr{ap.Addr()}, Capacity: 1}
		if n.HTTPPort = ap.Port(); strings.HasPrefix(addr, "https") {
			n.HTTPPort, n.HTTPSPort, n.Host = 0, ap.Port(), "example.com"
		}
		return n
	}
	check := func(name string, o sched.Observation, up bool, word string) {
		t.Helper()
		if o.Up != up || o.Error != word || o.Node != "e1" || o.Family != sched.V4 {
			t.Errorf("%s: %+v, want up %v and %q", name, o, up, word)
		}
	}
	o := first(t, node(srv.URL), nil)
	check("healthy", o, true, "")
	if o.RTT <= 0 {
		t.Errorf("connected in %v", o.RTT)
	}
	check("nobody listens", first(t, node("http://"+nobody), nil), false, "refused")
	check("a certificate of ours", first(t, node(secure.URL), &tls.Config{RootCAs: trusted}), true, "")
	check("a certificate of strangers", first(t, node(secure.URL), nil), false, "bad_tls")
	wrong := node(secure.URL)
	wrong.Host = "another.test"
	check("another name in the certificate", first(t, wrong, &tls.Config{RootCAs: trusted}), false, "bad_tls")
	plain := node(srv.URL)
	plain.HTTPPort, plain.HTTPSPort = 0, plain.HTTPPort
	check("no TLS there", first(t, plain, nil), false, "bad_tls")
}

// TestNodesUnderstand: a node reads what a probe says, and a probe what a node says.
func TestNodesUnderstand(t *testing.T) {
	const key = "a-key-of-the-whole-cluster"
	cluster, err := auth.NewCluster(auth.ClusterConfig{Keys: []string{key}})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			return
		}
		marks, marked, err := httpflv.ParseMarks("", func(field string) (out [][]byte) {
			for _, v := range r.Header.Values(field) {
				out = append(out, []byte(v))
			}
			return out
		})
		if err == nil {
			err = cluster.Verify(time.Now(), marks.Mark, marks.Signature)
		}
		if !marked || err != nil || marks.Mark.Purpose != auth.Probe || r.URL.Path != "/.well-known/millrace" {
			t.Errorf("%s with %+v: %v", r.URL, marks, err)
		}
		b, err := json.Marshal(httpflv.Figures{
			Node: "e1", Full: true, Load: 12345, Viewers: 6, Refused: 7, Carried: 2, Streams: []stream.Name{"live/a", "live/b"},
		})
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(b)
	}))
	defer srv.Close()
	at := netip.MustParseAddrPort(strings.TrimPrefix(srv.URL, "http://"))
	o := first(t, sched.Node{ID: "e1", Role: "edge", Addresses: []netip.Addr{at.Addr()}, HTTPPort: at.Port(), Capacity: 1}, nil, key)
	want := sched.Figures{Load: 12345, Viewers: 6, Refused: 7, Streams: []stream.Name{"live/a", "live/b"}}
	if !o.Up || !o.Draining || o.Error != "full" || o.Figures == nil || !reflect.DeepEqual(*o.Figures, want) {
		t.Errorf("observed %+v, figures %+v", o, o.Figures)
	}
}
