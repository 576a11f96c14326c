package listen

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"millrace/internal/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

// start returns a Listener on a free port of loopback, closed when the test ends.
func start(t *testing.T, change func(*Config)) *Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	l, err := New(cfg, ln, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return l
}

func dial(t *testing.T, l *Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute)) // so that a fault fails, not hangs
	return c
}

func accept(t *testing.T, l *Listener) net.Conn {
	t.Helper()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// gone waits until the other side has closed c.
func gone(t *testing.T, c net.Conn) {
	t.Helper()
	if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read %d bytes, %v, want the end of the connection", n, err)
	}
}

func wantRefused(t *testing.T, l *Listener, want map[session.Reason]uint64) {
	t.Helper()
	got := l.Stats().Refused
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("refused %v, want %v", got, want)
	}
}

func TestPlainConnection(t *testing.T) {
	l := start(t, nil)
	client := dial(t, l)
	if _, err := client.Write([]byte("PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n")); err != nil {
		t.Fatal(err)
	}
	c := accept(t, l)
	if got, want := c.RemoteAddr().String(), client.LocalAddr().String(); got != want {
		t.Errorf("an untrusted peer passes for %s, want its own %s", got, want)
	}
	b := make([]byte, 5)
	if _, err := io.ReadFull(c, b); err != nil || string(b) != "PROXY" {
		t.Errorf("read %q, %v, want the bytes untouched", b, err)
	}
	if TCPConn(c) == nil || TCPConn(client) == nil {
		t.Error("no TCP connection found below")
	}
	if s := l.Stats(); s.Open != 1 || s.Addresses != 1 || s.Accepted != 1 {
		t.Errorf("stats %+v, want one connection", s)
	}
	for range 3 {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if s := l.Stats(); s.Open != 0 || s.Addresses != 0 {
		t.Errorf("stats %+v after close, want none open", s)
	}
}

func TestLimits(t *testing.T) {
	l := start(t, func(c *Config) { c.MaxConnections = 3; c.MaxPerAddress = 2 })
	dial(t, l)
	dial(t, l)
	one, _ := accept(t, l), accept(t, l)

	// Accept keeps refusing until there is one to hand out.
	next := make(chan net.Conn)
	go func() {
		c, _ := l.Accept()
		next <- c
	}()
	gone(t, dial(t, l))
	wantRefused(t, l, map[session.Reason]uint64{session.AddressLimit: 1})
	if s := l.Stats(); s.Open != 2 {
		t.Errorf("%d open, want 2", s.Open)
	}
	_ = one.Close()
	dial(t, l)
	defer (<-next).Close()

	cfg := DefaultConfig()
	cfg.MaxConnections, cfg.MaxPerAddress = 2, 0
	if err := l.SetConfig(cfg); err != nil {
		t.Fatal(err)
	}
	gone(t, dial(t, l))
	wantRefused(t, l, map[session.Reason]uint64{session.AddressLimit: 1, session.OverLimit: 1})
	cfg.MaxConnections = 0
	if err := l.SetConfig(cfg); err == nil {
		t.Error("a bad configuration was taken")
	}
	cfg.MaxConnections = 3
	if err := l.SetConfig(cfg); err != nil {
		t.Fatal(err)
	}
	dial(t, l)
	accept(t, l)
}

// A dual-stack socket shows IPv4 peers as ::ffff:a.b.c.d; nobody above must see that.
func TestMappedAddress(t *testing.T) {
	ln, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	l, err := New(DefaultConfig(), ln, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", ln.Addr().(*net.TCPAddr).Port))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c := accept(t, l)
	if a := c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr(); !a.Is4() {
		t.Errorf("address %v, want it in four bytes", a)
	}
}

func TestCloseEndsAccept(t *testing.T) {
	for _, first := range []bool{true, false} {
		l := start(t, nil)
		ended := make(chan error, 1)
		if first { // Accept may also come after Close
			go func() { _, err := l.Accept(); ended <- err }()
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if !first {
			_, err := l.Accept()
			ended <- err
		}
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept: %v, want net.ErrClosed", err)
		}
	}
}

// failing is a listener whose Accept returns what is sent to it.
type failing struct {
	results chan any
	closed  chan struct{}
	once    sync.Once
}

func newFailing() *failing { return &failing{results: make(chan any), closed: make(chan struct{})} }

func (f *failing) Accept() (net.Conn, error) {
	select {
	case r := <-f.results:
		if err, ok := r.(error); ok {
			return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", err)}
		}
		return r.(net.Conn), nil
	case <-f.closed:
		return nil, net.ErrClosed
	}
}

func (f *failing) Close() error   { f.once.Do(func() { close(f.closed) }); return nil }
func (f *failing) Addr() net.Addr { return &net.TCPAddr{} }

func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		inner := newFailing()
		l, err := New(DefaultConfig(), inner, slog.New(slog.NewTextHandler(&out, nil)))
		if err != nil {
			t.Fatal(err)
		}
		conns := make(chan net.Conn)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					close(conns)
					return
				}
				conns <- c
			}
		}()
		began := time.Now()
		var waits []time.Duration
		for range 11 {
			inner.results <- syscall.EMFILE // taken when the pump is back from its wait
			waits = append(waits, time.Since(began))
			began = time.Now()
		}
		want := "[0s 5ms 10ms 20ms 40ms 80ms 160ms 320ms 640ms 1s 1s]"
		if got := fmt.Sprint(waits); got != want {
			t.Errorf("waits %s, want %s", got, want)
		}
		a, b := net.Pipe()
		inner.results <- b
		if c := <-conns; TCPConn(c) != nil || c.RemoteAddr() == nil {
			t.Error("a connection without TCP below")
		} else {
			_ = c.Close()
		}
		_ = a.Close()
		inner.results <- syscall.ENFILE
		began = time.Now()
		inner.results <- syscall.ECONNABORTED
		if d := time.Since(began); d != backoffMin {
			t.Errorf("first wait after a success: %v, want %v", d, backoffMin)
		}
		synctest.Wait()
		if n := l.Stats().AcceptErrors; n != 13 {
			t.Errorf("%d errors counted, want 13", n)
		}
		if err := l.Close(); err != nil { // in the middle of a wait
			t.Fatal(err)
		}
		if _, ok := <-conns; ok {
			t.Error("a connection after Close")
		}
		// Over 4.275 s of errors: one at once, and then one a second.
		if n := strings.Count(out.String(), "cannot accept"); n != 5 {
			t.Errorf("%d lines of log, want 5:\n%s", n, out.String())
		}
	})
}

func TestBrokenSocketEndsAccept(t *testing.T) {
	inner := newFailing()
	l, err := New(DefaultConfig(), inner, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { inner.results <- syscall.EINVAL }()
	for range 2 {
		if _, err := l.Accept(); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("accept: %v, want EINVAL", err)
		}
	}
}

type loop struct{ net.Conn }

func (l loop) NetConn() net.Conn { return l }

func TestTCPConn(t *testing.T) {
	if TCPConn(nil) != nil || TCPConn(loop{}) != nil {
		t.Error("found a TCP connection where there is none")
	}
}

func TestValidate(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	f := func(change func(*Config), want string) {
		t.Helper()
		cfg := DefaultConfig()
		change(&cfg)
		err := cfg.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	f(func(c *Config) { c.MaxPerAddress, c.UserTimeout = 0, 0 }, "")
	f(func(c *Config) {
		c.ProxyProtocol = []string{"10.0.0.0/8", "::1", "::ffff:10.0.0.0/104", "fe80::1%eth0"}
	}, "")
	f(func(c *Config) { c.MaxConnections = 0 }, "max_connections: is 0, must be 1 to 1000000")
	f(func(c *Config) { c.MaxPerAddress = -1 }, "max_per_address: is -1, must be 1 to 1000000, or 0 for no limit")
	f(func(c *Config) { c.ProxyProtocol = []string{"10.0.0.0/8", "proxy"} }, `proxy_protocol: "proxy" is not an address`)
	f(func(c *Config) { c.ProxyProtocol = make([]string, 5000) }, "proxy_protocol: has 5000 entries, must have 0 to 4096")
	f(func(c *Config) { c.ProxyTimeout = 0 }, "proxy_timeout: is 0s, must be 100ms to 1m0s")
	f(func(c *Config) { c.KeepAlive = 0 }, "keep_alive: is 0s, must be 1s to 1h0m0s")
	f(func(c *Config) { c.UserTimeout = 1 }, "user_timeout: is 1ns, must be 1s to 1h0m0s, or 0 for the kernel's")
	if _, err := New(Config{}, nil, nil); err == nil {
		t.Error("New took an empty configuration")
	}
}

// TestBudget has two listeners share what one process has.
func TestBudget(t *testing.T) {
	b := NewBudget(3)
	one, two := start(t, nil), start(t, func(c *Config) { c.MaxConnections = 2 })
	one.Share(b)
	two.Share(b)
	dial(t, two)
	dial(t, two)
	accept(t, two)
	accept(t, two)
	gone(t, dial(t, two)) // its own limit
	dial(t, one)
	held := accept(t, one)
	gone(t, dial(t, one))
	wantRefused(t, one, map[session.Reason]uint64{session.OverLimit: 1})
	if b.Open() != 3 {
		t.Errorf("%d are open", b.Open())
	}
	_ = held.Close()
	dial(t, one)
	accept(t, one)
	if b.Open() != 3 {
		t.Errorf("%d are open", b.Open())
	}
}
