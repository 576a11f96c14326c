package listen

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// half is one end of a pipe of which the sending side alone can be closed, as far as the
// test sees.
type half struct {
	net.Conn
	shut func()
}

func (h *half) CloseWrite() error { h.shut(); return nil }

// lingering returns a connection of l that is closing, the other end of it, and a channel
// that is closed when it is closed.
func lingering(t *testing.T, l *Listener, shut func()) (net.Conn, <-chan struct{}) {
	t.Helper()
	here, there := net.Pipe()
	if !l.limits.enter(1 << 20) {
		t.Fatal("no place")
	}
	c := &Conn{Conn: &half{here, shut}, owner: l, remote: here.RemoteAddr()}
	Linger(c)
	closed := make(chan struct{})
	go func() { defer close(closed); _ = c.Close() }()
	return there, closed
}

// bare returns a Listener that nobody connects to.
func bare(t *testing.T) *Listener {
	t.Helper()
	l, err := New(DefaultConfig(), newFailing(), quiet)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestLingerTime: a peer that trickles on, or that says nothing at all, keeps its
// connection no longer than lingerTime.
func TestLingerTime(t *testing.T) {
	for _, every := range []time.Duration{time.Millisecond, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			l := bare(t)
			began, shut := time.Now(), time.Duration(-1)
			peer, closed := lingering(t, l, func() { shut = time.Since(began) })
			var sender sync.WaitGroup
			sender.Go(func() {
				for tick := time.NewTicker(every); ; <-tick.C {
					if _, err := peer.Write([]byte{0}); err != nil {
						return
					}
				}
			})
			<-closed
			if took := time.Since(began); took != lingerTime || shut != 0 {
				t.Errorf("a byte every %v: closed after %v, for sending after %v", every, took, shut)
			}
			if n := l.Stats().Open; n != 0 {
				t.Errorf("%d connections are counted after it", n)
			}
			sender.Wait()
		})
	}
}

// TestLingerEnds: when the peer closes and when the listener closes, there is nothing more to wait for.
func TestLingerEnds(t *testing.T) {
	f := func(what string, act func(*Listener, net.Conn)) {
		synctest.Test(t, func(t *testing.T) {
			l := bare(t)
			began := time.Now()
			peer, closed := lingering(t, l, func() {})
			synctest.Wait()
			act(l, peer)
			<-closed
			if took := time.Since(began); took != 0 {
				t.Errorf("%s: closed after %v", what, took)
			}
			if n := l.Stats().Open; n != 0 {
				t.Errorf("%s: %d connections are counted after it", what, n)
			}
		})
	}
	f("the peer closes", func(_ *Listener, peer net.Conn) { _ = peer.Close() })
	f("the listener closes", func(l *Listener, _ net.Conn) { _ = l.Close() })
	f("the listener is closed", func(l *Listener, peer net.Conn) {
		_ = peer.Close()
		_ = l.Close()
		_, closed := lingering(t, l, func() { t.Error("it lingers") })
		<-closed
	})
}

// TestLingerPace: of a peer that sends without end much is taken at once and then little,
// and it is not cut off before its time.
func TestLingerPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bare(t)
		began := time.Now()
		peer, closed := lingering(t, l, func() {})
		if n, err := io.CopyN(peer, zeros{}, lingerBytes); err != nil || time.Since(began) != 0 {
			t.Errorf("%d bytes were taken in %v, want %d at once: %v", n, time.Since(began), lingerBytes, err)
		}
		n, err := io.Copy(peer, zeros{})
		if about := int64(lingerTime / lingerPace * lingerStep); err == nil || n > about+lingerStep || n < about-2*lingerStep {
			t.Errorf("%d bytes more were taken, want about %d: %v", n, about, err)
		}
		<-closed
		if took := time.Since(began); took < lingerTime || took > lingerTime+lingerPace {
			t.Errorf("closed after %v, want %v, or a pace later", took, lingerTime)
		}
	})
}

// zeros is what a peer sends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestLingerBound: of more than may linger the rest closes at once, and a place that has
// become free is taken again.
func TestLingerBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bare(t)
		began := time.Now()
		var peers []net.Conn
		var all []<-chan struct{}
		for range maxLingering {
			peer, closed := lingering(t, l, func() {})
			peers, all = append(peers, peer), append(all, closed)
		}
		synctest.Wait()
		if n := l.Stats().Open; n != maxLingering {
			t.Errorf("%d connections linger, want %d", n, maxLingering)
		}
		for range 3 {
			_, closed := lingering(t, l, func() { t.Error("one too many lingers") })
			<-closed
		}
		_ = peers[0].Close()
		<-all[0]
		_, again := lingering(t, l, func() {})
		for _, closed := range append(all, again) {
			<-closed
		}
		if took := time.Since(began); took != lingerTime {
			t.Errorf("all are closed after %v", took)
		}
	})
}

// TestLingerUnderTLS: a mark on TLS is one on what is below it, and nothing else lingers.
func TestLingerUnderTLS(t *testing.T) {
	cert, err := LoadCertificate(issue(t, t.TempDir(), 7))
	if err != nil {
		t.Fatal(err)
	}
	l := start(t, nil)
	ln := tls.NewListener(l, cert.Config())
	for _, marked := range []bool{true, false} {
		client := tls.Client(dial(t, l), &tls.Config{InsecureSkipVerify: true})
		c, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		var server sync.WaitGroup
		server.Go(func() {
			_, _ = c.Read(make([]byte, 1))
			_, _ = io.WriteString(c, "no\n")
			if marked {
				Linger(c)
			}
			_ = c.Close()
		})
		_, sent := io.Copy(client, io.LimitReader(zeros{}, 8<<20))
		answer, got := bufio.NewReader(client).ReadString('\n')
		if marked && (sent != nil || got != nil || answer != "no\n") {
			t.Errorf("sent all: %v; answer %q, %v", sent, answer, got)
		}
		if !marked && sent == nil {
			t.Error("what is not marked lingers")
		}
		_ = client.Close()
		server.Wait()
	}
}
