package faultnet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a link on loopback with a target that hands out its connections.
type rig struct {
	*TCP
	far chan net.Conn // capacity 16, never closed: accepted by the target
}

func newRig(t *testing.T, cfg Config) *rig {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{far: make(chan net.Conn, 16)}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			r.far <- c
		}
	})
	if r.TCP, err = ListenTCP("127.0.0.1:0", ln.Addr().String(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Close()
		ln.Close()
		wg.Wait()
		for len(r.far) > 0 {
			(<-r.far).Close()
		}
	})
	return r
}

// patience is how long a test waits for what must happen.
const patience = time.Minute

func (r *rig) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c
}

// pair returns both ends of a connection through the link, over which a byte has
// gone each way.
func (r *rig) pair(t *testing.T) (near, far net.Conn) {
	t.Helper()
	near = r.dial(t)
	far = <-r.far
	t.Cleanup(func() { far.Close() })
	far.SetDeadline(time.Now().Add(patience))
	b := make([]byte, 1)
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		if _, err := way[0].Write(b); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(way[1], b); err != nil {
			t.Fatal(err)
		}
	}
	return near, far
}

// silent wants nothing, no end either, to come within a short time.
func silent(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read %d bytes and %v, want silence", n, err)
	}
	c.SetReadDeadline(time.Now().Add(patience))
}

func wantError(t *testing.T, c net.Conn, want error) {
	t.Helper()
	if _, err := io.Copy(io.Discard, c); !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

// TestPassesAll: both ways at once, every byte, and each end by itself.
func TestPassesAll(t *testing.T) {
	for name, f := range map[string]Fault{
		"nothing":  {},
		"trouble":  {Delay: 2 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.01, Stall: 5 * time.Millisecond, Rate: 20 << 20},
		"a buffer": {Buffer: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{Seed: 3, Up: f, Down: f})
			near, far := r.pair(t)
			data := make([]byte, 1<<20)
			for i := range data {
				data[i] = byte(rand.Uint32())
			}
			var wg sync.WaitGroup
			for _, c := range []net.Conn{near, far} {
				wg.Go(func() {
					if _, err := c.Write(data); err != nil {
						t.Error(err)
					}
					c.(*net.TCPConn).CloseWrite()
				})
				wg.Go(func() {
					if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, data) {
						t.Errorf("got %d bytes and %v, want the %d bytes that were sent", len(got), err, len(data))
					}
				})
			}
			wg.Wait()
			if s := r.Stats(); s.Up.Bytes != 1<<20+1 || s.Down.Bytes != 1<<20+1 || s.Accepted != 1 || s.Failed != 0 {
				t.Errorf("stats %+v", s)
			}
		})
	}
}

func TestReset(t *testing.T) {
	r := newRig(t, Config{})
	near, far := r.pair(t)
	r.Freeze() // a reset that is ordered passes all the same
	r.Reset()
	wantError(t, near, syscall.ECONNRESET)
	wantError(t, far, syscall.ECONNRESET)
	r.Thaw()
	r.pair(t)
}

// TestResetByAnEnd: what one side does reaches the other.
func TestResetByAnEnd(t *testing.T) {
	r := newRig(t, Config{})
	near, far := r.pair(t)
	abort(far)
	wantError(t, near, syscall.ECONNRESET)
	near, far = r.pair(t)
	abort(near)
	wantError(t, far, syscall.ECONNRESET)
}

func TestHalfOpen(t *testing.T) {
	r := newRig(t, Config{})
	near, far := r.pair(t)
	r.HalfOpen()
	wantError(t, far, syscall.ECONNRESET)
	for range 3 {
		if _, err := near.Write(make([]byte, 1000)); err != nil {
			t.Fatalf("near was told: %v", err)
		}
		silent(t, near)
	}
	r.pair(t) // another connection works
	near.Close()
}

func TestFreeze(t *testing.T) {
	r := newRig(t, Config{})
	near, far := r.pair(t)
	leaving, left := r.pair(t)
	r.Freeze()
	far.Write([]byte("held"))
	leaving.Close()
	silent(t, near)
	silent(t, left)
	fresh := r.dial(t)
	fresh.Write([]byte("hello"))
	silent(t, fresh)
	if len(r.far) > 0 {
		t.Error("the target was reached")
	}
	if !r.Stats().Frozen {
		t.Error("stats do not say that the link is frozen")
	}
	r.Thaw()
	b := make([]byte, 4)
	if _, err := io.ReadFull(near, b); err != nil || string(b) != "held" {
		t.Errorf("got %q and %v, want what was held", b, err)
	}
	wantError(t, left, nil)
	target := <-r.far
	defer target.Close()
	if _, err := io.ReadFull(target, b); err != nil || string(b) != "hell" {
		t.Errorf("the target got %q and %v", b, err)
	}
}

func TestRefuse(t *testing.T) {
	r := newRig(t, Config{Down: Fault{Delay: time.Millisecond}})
	near, far := r.pair(t)
	for range 2 {
		if err := r.Refuse(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := net.Dial("tcp", r.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("got %v, want a refusal", err)
	}
	if !r.Stats().Refusing {
		t.Error("stats do not say that the link refuses")
	}
	far.Write([]byte{1})
	if _, err := io.ReadFull(near, make([]byte, 1)); err != nil {
		t.Errorf("a connection from before has ended: %v", err)
	}
	for range 2 {
		if err := r.Heal(); err != nil {
			t.Fatal(err)
		}
	}
	r.pair(t)
}

// TestTargetIsGone: near is reset instead of being refused.
func TestTargetIsGone(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	l, err := ListenTCP("127.0.0.1:0", ln.Addr().String(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr())
	if err == nil { // else the reset was quicker than the return
		_, err = c.Read(make([]byte, 1))
		c.Close()
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a reset", err)
	}
	l.Close()
	if s := l.Stats(); s.Failed != 1 || s.Open != 0 {
		t.Errorf("stats %+v, want one failed", s)
	}
}

// TestClose: it waits for all, whatever state they are in, and is the end.
func TestClose(t *testing.T) {
	r := newRig(t, Config{})
	r.pair(t)
	r.pair(t)
	r.HalfOpen()
	r.pair(t)
	r.Freeze()
	r.dial(t).Write([]byte("never arrives"))
	for range 2 {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if s := r.Stats(); s.Open != 0 {
		t.Errorf("%d connections are left", s.Open)
	}
	if err := r.Accept(); !errors.Is(err, ErrClosed) {
		t.Errorf("accept after the end: %v", err)
	}
	if err := r.Heal(); !errors.Is(err, ErrClosed) {
		t.Errorf("heal after the end: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	if _, err := ListenTCP("127.0.0.1:0", "127.0.0.1:1", Config{Up: Fault{Loss: 2}}); err == nil {
		t.Error("a link with a bad fault")
	}
	if _, err := ListenTCP("nowhere", "127.0.0.1:1", Config{}); err == nil {
		t.Error("a link on a bad address")
	}
	r := newRig(t, Config{})
	if err := r.Set(Fault{}, Fault{Rate: -1}); err == nil {
		t.Error("a bad fault was set")
	}
}

// TestBufferBounds: a link whose far side does not read takes in a bounded amount.
func TestBufferBounds(t *testing.T) {
	r := newRig(t, Config{Up: Fault{Rate: 1, Buffer: 64 << 10}})
	near := r.dial(t)
	far := <-r.far
	defer far.Close()
	near.(*net.TCPConn).SetWriteBuffer(32 << 10)
	near.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
	n, err := near.Write(make([]byte, 64<<20))
	if !errors.Is(err, os.ErrDeadlineExceeded) || n > 4<<20 {
		t.Errorf("wrote %d bytes and %v, want to be held up within some hundred KiB", n, err)
	}
}

func BenchmarkTCP(b *testing.B) {
	far, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer far.Close()
	l, err := ListenTCP("127.0.0.1:0", far.Addr().String(), Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	near, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", l.Addr())
	if err != nil {
		b.Fatal(err)
	}
	target, err := far.Accept()
	if err != nil {
		b.Fatal(err)
	}
	defer target.Close()
	buf := make([]byte, 16<<10)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := near.Write(buf); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(target, buf); err != nil {
			b.Fatal(err)
		}
	}
	near.Close()
}
