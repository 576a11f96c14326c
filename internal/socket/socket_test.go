package socket

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair returns both ends of a connection, the first of them past the runtime.
func pair(t testing.TB) (net.Conn, *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	far, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	near, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return Of(near), far.(*net.TCPConn)
}

// TestCopies: what is written arrives, in order, though neither side takes it at once; and
// writes of several goroutines are not mixed.
func TestCopies(t *testing.T) {
	const writers, each, size = 4, 50, 70_000
	near, far := pair(t)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for range each {
				if n, err := near.Write(bytes.Repeat([]byte{byte(w)}, size)); n != size || err != nil {
					t.Errorf("%d bytes written: %v", n, err)
				}
			}
		})
	}
	got := make([]byte, size)
	for range writers * each {
		if _, err := io.ReadFull(far, got); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, bytes.Repeat(got[:1], size)) {
			t.Fatal("two writes are mixed")
		}
	}
	all.Wait()

	// And back.
	sent := bytes.Repeat([]byte("0123456789"), 1<<18)
	all.Go(func() {
		if _, err := far.Write(sent); err != nil {
			t.Error(err)
		}
		_ = far.CloseWrite()
	})
	back, err := io.ReadAll(near)
	if err != nil || !bytes.Equal(back, sent) {
		t.Errorf("%d of %d bytes came: %v", len(back), len(sent), err)
	}
	all.Wait()
	if n, err := near.Read(nil); n != 0 || err != nil {
		t.Errorf("a read of nothing: %d, %v", n, err)
	}
}

// TestErrors: they are those of a TCP connection.
func TestErrors(t *testing.T) {
	f := func(what, op string, want error, act func(near net.Conn, far *net.TCPConn) error) {
		t.Helper()
		near, far := pair(t)
		err := act(near, far)
		of, ok := errors.AsType[*net.OpError](err)
		if !errors.Is(err, want) || !ok || of.Op != op || of.Source == nil || of.Addr == nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	read := func(c net.Conn) error { _, err := c.Read(make([]byte, 1)); return err }
	flood := func(c net.Conn) error {
		for {
			if _, err := c.Write(make([]byte, 1<<16)); err != nil {
				return err
			}
		}
	}
	f("a reset", "read", syscall.ECONNRESET, func(near net.Conn, far *net.TCPConn) error {
		_ = far.SetLinger(0)
		_ = far.Close()
		return read(near)
	})
	f("the deadline of a read", "read", os.ErrDeadlineExceeded, func(near net.Conn, _ *net.TCPConn) error {
		_ = near.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		return read(near)
	})
	f("the deadline of a write", "write", os.ErrDeadlineExceeded, func(near net.Conn, _ *net.TCPConn) error {
		_ = near.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
		return flood(near)
	})
	f("nobody reads any more", "write", syscall.EPIPE, func(near net.Conn, far *net.TCPConn) error {
		_ = far.SetLinger(0)
		_ = far.Close()
		_ = read(near) // takes the reset
		return flood(near)
	})
	f("closed while it reads", "read", net.ErrClosed, func(near net.Conn, _ *net.TCPConn) error {
		done := make(chan error)
		go func() { done <- read(near) }()
		_ = near.Close()
		return <-done
	})
	f("closed while it writes", "write", net.ErrClosed, func(near net.Conn, far *net.TCPConn) error {
		done := make(chan error)
		go func() { done <- flood(near) }()
		_, _ = far.Read(make([]byte, 1))
		_ = near.Close()
		return <-done
	})
	near, far := pair(t)
	_ = far.CloseWrite()
	if err := read(near); err != io.EOF {
		t.Errorf("the end: %v", err)
	}
}

// TestAllocs: moving bytes makes no garbage.
func TestAllocs(t *testing.T) {
	near, far := pair(t)
	there, here := make([]byte, 1000), make([]byte, 1000)
	if n := testing.AllocsPerRun(100, func() {
		_, _ = near.Write(there)
		_, _ = io.ReadFull(far, here)
		_, _ = far.Write(there)
		_, _ = io.ReadFull(near, here)
	}); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
}

// TestOf: what is no TCP connection stays as it is.
func TestOf(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	defer a.Close()
	if Of(a) != a {
		t.Error("a pipe is wrapped")
	}
}
