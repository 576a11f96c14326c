package faultnet

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// echo is a target that sends everything back.
func echo(t *testing.T) string {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 2048)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			c.WriteTo(buf[:n], from)
		}
	})
	t.Cleanup(func() { c.Close(); wg.Wait() })
	return c.LocalAddr().String()
}

func newUDP(t *testing.T, target string, cfg Config) (*UDP, net.Conn) {
	t.Helper()
	l, err := ListenUDP("127.0.0.1:0", target, cfg)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("udp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); l.Close() })
	return l, c
}

// ask sends a datagram and returns the answer, or the error within the time.
func ask(c net.Conn, text string, within time.Duration) (string, error) {
	if _, err := c.Write([]byte(text)); err != nil {
		return "", err
	}
	c.SetReadDeadline(time.Now().Add(within))
	buf := make([]byte, 2048)
	n, err := c.Read(buf)
	return string(buf[:n]), err
}

func TestDatagrams(t *testing.T) {
	l, c := newUDP(t, echo(t), Config{Up: Fault{Delay: 5 * time.Millisecond}, Down: Fault{Delay: 5 * time.Millisecond}})
	want := func(text string) {
		t.Helper()
		begin := time.Now()
		got, err := ask(c, text, patience)
		if err != nil || got != text || time.Since(begin) < 10*time.Millisecond {
			t.Fatalf("got %q and %v after %v, want %q after 10ms", got, err, time.Since(begin), text)
		}
	}
	silence := func(taken func(Traffic) uint64) {
		t.Helper()
		if got, err := ask(c, "nobody hears this", 50*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("got %q and %v, want silence", got, err)
		}
		for end := time.Now().Add(patience); taken(l.Stats().Up) == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the link has not seen it")
			}
		}
	}
	want("one")
	l.Freeze()
	silence(func(up Traffic) uint64 { return up.Dropped })
	l.Thaw()
	want("two")
	if err := l.Set(Fault{Loss: 1}, Fault{}); err != nil {
		t.Fatal(err)
	}
	silence(func(up Traffic) uint64 { return up.Lost })
	if err := l.Heal(); err != nil {
		t.Fatal(err)
	}
	want("three")
	s := l.Stats()
	if s.Up.Lost != 1 || s.Up.Dropped != 1 || s.Up.Bytes != 11 || s.Down.Bytes != 11 || s.Open != 1 || s.Accepted != 1 {
		t.Errorf("stats %+v", s)
	}
}

func TestDatagramsRefused(t *testing.T) {
	l, c := newUDP(t, echo(t), Config{})
	if err := l.Refuse(); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(c, "x", patience); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("got %v, want a refusal", err)
	}
	if !l.Stats().Refusing {
		t.Error("stats do not say that the link refuses")
	}
	if err := l.Accept(); err != nil {
		t.Fatal(err)
	}
	if got, err := ask(c, "again", patience); err != nil || got != "again" {
		t.Errorf("got %q and %v after it was opened again", got, err)
	}
	l.Close()
	l.Close()
	if err := l.Accept(); !errors.Is(err, ErrClosed) {
		t.Errorf("accept after the end: %v", err)
	}
}

func TestDatagramsBadConfig(t *testing.T) {
	f := func(addr, target string, cfg Config) {
		t.Helper()
		if l, err := ListenUDP(addr, target, cfg); err == nil {
			l.Close()
			t.Errorf("a link from %q to %q with %+v", addr, target, cfg)
		}
	}
	f("127.0.0.1:0", "127.0.0.1:1", Config{Up: Fault{Loss: -1}})
	f("127.0.0.1", "127.0.0.1:1", Config{})
	f("127.0.0.1:0", "127.0.0.1", Config{})
	_, c := newUDP(t, echo(t), Config{})
	if _, err := ask(c, "", patience); err != nil {
		t.Errorf("an empty datagram: %v", err)
	}
}
