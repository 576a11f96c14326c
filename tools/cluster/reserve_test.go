package cluster

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestReserve: what the kernel does with a port that is reserved. Nobody is given it who
// asks for any, and who asks for it gets it, one at a time.
func TestReserve(t *testing.T) {
	var own reservations
	defer own.close()
	addr, err := own.free(loopback)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // a node, and the same again
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatalf("listen on what is reserved: %v", err)
		}
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		in, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if second, err := net.Listen("tcp", addr); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("a second listener: %v and %v, want it refused", second, err)
		}
		in.Close() // its port stays in a state of waiting
		c.Close()
		ln.Close()
	}
	own.close()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatalf("after the end: %v", err)
	}
	ln.Close()
}

// TestReserveAll takes thousands of ports: none is given twice, neither to another
// who reserves nor to a listener on any port nor to an outgoing connection.
func TestReserveAll(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	n := int(min(limit.Cur/4, 4000))
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	var own, other reservations
	defer own.close()
	defer other.close()
	seen := map[string]bool{server.Addr().String(): true}
	take := func(what, addr string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if seen[addr] {
			t.Fatalf("%s: %s was given before", what, addr)
		}
	}
	for range n {
		addr, err := own.free(loopback)
		take("reserve", addr, err)
		seen[addr] = true
	}
	for range n / 4 {
		addr, err := other.free(loopback)
		take("another reserves", addr, err)
		seen[addr] = true
	}
	for range n / 2 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		take("any", ln.Addr().String(), nil)
		ln.Close()
		c, err := net.Dial("tcp", server.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		take("outgoing", c.LocalAddr().String(), nil)
		c.Close()
	}
}

// listen is the variable that makes the test binary listen at its value until it is
// killed, with a connection open.
const listen = "CLUSTER_TEST_LISTEN"

func listenForever(addr string) error {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	if _, err := os.Stdout.WriteString("ready\n"); err != nil {
		return err
	}
	for {
		if _, err := ln.Accept(); err != nil {
			return err
		}
	}
}

// TestReserveKilled: who was killed with connections open finds its port free, and
// nobody else had it meanwhile.
func TestReserveKilled(t *testing.T) {
	var own reservations
	defer own.close()
	addr, err := own.free(loopback)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for range 3 {
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), listen+"="+addr)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_, err = bufio.NewReader(out).ReadString('\n')
		if err == nil {
			var c net.Conn
			if c, err = net.Dial("tcp", addr); err == nil {
				defer c.Close()
			}
		}
		cmd.Process.Kill()
		cmd.Wait()
		if err != nil {
			t.Fatalf("%v; %s", err, stderr.String())
		}
	}
}
