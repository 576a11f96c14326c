package faultnet

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// memory is a network within a bubble of synctest.
type memory struct {
	conns chan net.Conn // unbuffered, never closed
	done  chan struct{}
	once  sync.Once
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error {
	m.once.Do(func() { close(m.done) })
	return nil
}

func (m *memory) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func (m *memory) dial() net.Conn {
	near, far := net.Pipe()
	m.conns <- far
	return near
}

// virtual runs do with a link in a bubble: near dials, far is what the target gets.
func virtual(t *testing.T, cfg Config, do func(l *TCP, dial func() net.Conn, far <-chan net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{conns: make(chan net.Conn), done: make(chan struct{})}
		far := make(chan net.Conn, 16)
		l, err := NewTCP("", func(string) (net.Listener, error) { return m, nil }, func(context.Context) (net.Conn, error) {
			ours, theirs := net.Pipe()
			far <- theirs
			return ours, nil
		}, cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		do(l, m.dial, far)
	})
}

// took returns how long reading n bytes takes.
func took(t *testing.T, c net.Conn, n int) time.Duration {
	t.Helper()
	begin := time.Now()
	if _, err := io.ReadFull(c, make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	return time.Since(begin)
}

func TestDelay(t *testing.T) {
	cfg := Config{Up: Fault{Delay: 30 * time.Millisecond}, Down: Fault{Delay: 50 * time.Millisecond}}
	virtual(t, cfg, func(_ *TCP, dial func() net.Conn, far <-chan net.Conn) {
		near := dial()
		defer near.Close()
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { near.Write([]byte("request")) })
		begin := time.Now()
		target := <-far
		defer target.Close()
		if got := time.Since(begin); got != 80*time.Millisecond {
			t.Errorf("the target was reached after %v, want a round trip of 80ms", got)
		}
		if got := took(t, target, 7); got != 30*time.Millisecond {
			t.Errorf("the request took %v, want 30ms more", got)
		}
		wg.Go(func() { target.Write([]byte("answer")) })
		if got := took(t, near, 6); got != 50*time.Millisecond {
			t.Errorf("the answer took %v, want 50ms", got)
		}
	})
}

func TestRate(t *testing.T) {
	virtual(t, Config{Down: Fault{Rate: 100_000}}, func(l *TCP, dial func() net.Conn, far <-chan net.Conn) {
		near := dial()
		defer near.Close()
		target := <-far
		defer target.Close()
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { target.Write(make([]byte, 1_000_000)) })
		if got := took(t, near, 200_000); got < 1900*time.Millisecond || got > 2*time.Second {
			t.Errorf("200,000 bytes at 100,000 a second took %v", got)
		}
		l.Set(Fault{}, Fault{Rate: 10_000})
		if got := took(t, near, 50_000); got < 4700*time.Millisecond || got > 5*time.Second {
			t.Errorf("50,000 bytes at 10,000 a second took %v", got)
		}
		l.Set(Fault{}, Fault{})
		if got := took(t, near, 750_000); got != 0 {
			t.Errorf("the rest took %v without a limit", got)
		}
	})
}

// TestRateIsOfTheLink: two connections have one rate together, in equal shares.
func TestRateIsOfTheLink(t *testing.T) {
	virtual(t, Config{Down: Fault{Rate: 100_000}}, func(_ *TCP, dial func() net.Conn, far <-chan net.Conn) {
		var wg sync.WaitGroup
		var near [2]net.Conn
		for i := range near {
			near[i] = dial()
			defer near[i].Close()
			target := <-far
			defer target.Close()
			wg.Go(func() { target.Write(make([]byte, 50_000)) })
		}
		begin := time.Now()
		for _, c := range near {
			wg.Go(func() { io.ReadFull(c, make([]byte, 50_000)) })
		}
		wg.Wait()
		if got := time.Since(begin); got < 900*time.Millisecond || got > time.Second {
			t.Errorf("100,000 bytes of two connections at 100,000 a second took %v", got)
		}
	})
}

// TestLongFreeze: nothing comes for as long as it lasts, nothing is lost, and what is
// taken in meanwhile is bounded.
func TestLongFreeze(t *testing.T) {
	virtual(t, Config{}, func(l *TCP, dial func() net.Conn, far <-chan net.Conn) {
		near := dial()
		defer near.Close()
		target := <-far
		defer target.Close()
		l.Freeze()
		begin := time.Now()
		go func() {
			time.Sleep(time.Hour)
			l.Thaw()
		}()
		var wrote time.Duration
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			target.Write(make([]byte, defaultBuffer+32<<10))
			wrote = time.Since(begin)
			target.Close()
		})
		took(t, near, defaultBuffer+32<<10)
		if got := time.Since(begin); got != time.Hour {
			t.Errorf("the bytes took %v, want the hour of the freeze", got)
		}
		if _, err := near.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("got %v, want the end", err)
		}
		if wrote != time.Hour {
			t.Errorf("all was taken in after %v, before the freeze was over", wrote)
		}
	})
}

func TestLossStalls(t *testing.T) {
	virtual(t, Config{Seed: 1, Down: Fault{Loss: 0.01}}, func(l *TCP, dial func() net.Conn, far <-chan net.Conn) {
		near := dial()
		defer near.Close()
		target := <-far
		defer target.Close()
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			for range 1000 {
				target.Write(make([]byte, packet))
				time.Sleep(time.Millisecond)
			}
		})
		stalls := 0
		for range 1000 {
			if took(t, near, packet) > 100*time.Millisecond {
				stalls++
			}
		}
		if lost := l.Stats().Down.Lost; lost < 3 || lost > 30 || stalls == 0 || stalls > int(lost) {
			t.Errorf("%d packets of 1000 lost, %d stalls; want about ten lost", lost, stalls)
		}
	})
}
