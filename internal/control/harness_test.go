package control

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"

	"millrace/internal/auth"
)

func TestMain(m *testing.M) {
	// The HTTP library starts one goroutine that keeps the date of all its servers, for
	// ever. It must not belong to a test.
	here, there := net.Pipe()
	go func() {
		_, _ = here.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
		_, _ = here.Read(make([]byte, 1024))
		here.Close()
	}()
	_ = (&fasthttp.Server{Handler: func(*fasthttp.RequestCtx) {}}).ServeConn(there)
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		// It sleeps for ten seconds at a time, also when its server has been shut down.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

const clusterKey = "a-key-of-the-whole-cluster"

var silent = slog.New(slog.DiscardHandler)

func newCluster(t testing.TB, keys ...string) *auth.Cluster {
	t.Helper()
	c, err := auth.NewCluster(auth.ClusterConfig{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newServer(t testing.TB, cluster *auth.Cluster) *Server {
	t.Helper()
	s, err := NewServer(DefaultServerConfig(), cluster, silent)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// network is servers in memory, by host:port. Those that are not there refuse.
type network struct {
	wg sync.WaitGroup

	mu     sync.Mutex
	serve  map[string]func(net.Conn)
	open   map[string][]net.Conn
	dialed []string // in order
}

// set replaces what is at addr, nil for nothing, and closes the connections that were
// open to what was there before.
func (n *network) set(addr string, serve func(net.Conn)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.serve == nil {
		n.serve, n.open = map[string]func(net.Conn){}, map[string][]net.Conn{}
	}
	n.serve[addr] = serve
	for _, conn := range n.open[addr] {
		conn.Close()
	}
	delete(n.open, addr)
}

// http answers at addr with what s handles.
func (n *network) http(addr string, s *Server) {
	n.handle(addr, func(ctx *fasthttp.RequestCtx) {
		if !s.Handle(ctx) {
			ctx.SetStatusCode(fasthttp.StatusNotFound)
		}
	})
}

func (n *network) handle(addr string, h fasthttp.RequestHandler) {
	n.set(addr, func(conn net.Conn) {
		_ = (&fasthttp.Server{Handler: h}).ServeConn(conn)
		conn.Close()
	})
}

// raw answers each connection to addr with text, whatever is asked.
func (n *network) raw(addr, text string) {
	n.set(addr, func(conn net.Conn) {
		defer conn.Close()
		_, _ = conn.Read(make([]byte, 4096))
		_, _ = conn.Write([]byte(text))
	})
}

func (n *network) dial(_ context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dialed = append(n.dialed, addr)
	serve := n.serve[addr]
	if serve == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	here, there := net.Pipe()
	n.open[addr] = append(n.open[addr], there)
	n.wg.Go(func() { serve(there) })
	return here, nil
}

// dials returns how often each address was dialled since the last call.
func (n *network) dials() map[string]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := map[string]int{}
	for _, addr := range n.dialed {
		out[addr]++
	}
	n.dialed = nil
	return out
}

// get asks a server in memory as a plain client does, and returns the whole answer.
func get(t *testing.T, s *Server, method, target string, header ...string) string {
	t.Helper()
	here, there := net.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = (&fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
			if !s.Handle(ctx) {
				ctx.SetStatusCode(fasthttp.StatusTeapot)
			}
		}}).ServeConn(there)
		there.Close()
	})
	head := strings.Join(header, "\r\n")
	if head != "" {
		head += "\r\n"
	}
	if _, err := fmt.Fprintf(here, "%s %s HTTP/1.1\r\nHost: s1\r\nConnection: close\r\n%s\r\n", method, target, head); err != nil {
		t.Fatal(err)
	}
	b, err := readAll(here, 1<<24)
	if err != nil {
		t.Fatal(err)
	}
	here.Close()
	wg.Wait()
	return string(b)
}
