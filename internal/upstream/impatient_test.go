package upstream

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// deaf has the kernel drop all that comes in on a connection, so that nothing of it is
// acknowledged: as if the machine were gone.
func deaf(t *testing.T, c net.Conn) {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	nothing := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}
	if e := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing[0]})
	}); e != nil || err != nil {
		t.Fatal(e, err)
	}
}

// A center whose machine is gone is left within a second and a half, however little is
// pushed to it.
func TestPushToWhoIsGone(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := impatient(new(net.Dialer).DialContext)(t.Context(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	deaf(t, in)
	began := time.Now()
	ended := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 1))
		ended <- err
	}()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			took := time.Since(began)
			t.Logf("it ended with %v after %v", err, took)
			if took < time.Second {
				t.Error("that is no time for a network to recover")
			}
			return
		case <-tick.C:
			if time.Since(began) > patience {
				t.Fatal("nobody noticed")
			}
			_, _ = c.Write([]byte("a picture"))
		}
	}
}
