// Command demo shows Millrace at work: it starts a node, publishes a clip to it in a
// loop, and prints where to look. `make demo` builds and runs it.
//
//	demo [--rtmp ADDR] [--http ADDR] [--admin ADDR] [--node FILE] [--stream APP/NAME]
//
// The addresses may also come from DEMO_RTMP, DEMO_HTTP and DEMO_ADMIN. Ctrl-C ends
// it and the node; exit code 0 after that, 1 when something failed, 2 when it could
// not start.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	exitOK      = 0
	exitFailed  = 1
	exitRefused = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// settings are the command line.
type settings struct {
	rtmp, http, admin string // addresses to listen on
	node              string // the program
	stream            string // app/name
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	f := flag.NewFlagSet("demo", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&s.rtmp, "rtmp", cmp.Or(os.Getenv("DEMO_RTMP"), ":1935"), "where encoders connect")
	f.StringVar(&s.http, "http", cmp.Or(os.Getenv("DEMO_HTTP"), ":8080"), "where players connect")
	f.StringVar(&s.admin, "admin", cmp.Or(os.Getenv("DEMO_ADMIN"), "127.0.0.1:9090"), "where operators connect")
	f.StringVar(&s.node, "node", beside("node"), "the node program")
	f.StringVar(&s.stream, "stream", "live/demo", "name of the stream, app/name")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if f.NArg() > 0 {
		return s, fmt.Errorf("what is %q? demo takes flags only", f.Arg(0))
	}
	if app, name, ok := strings.Cut(s.stream, "/"); !ok || app == "" || name == "" {
		return s, fmt.Errorf("--stream %q: must be app/name", s.stream)
	}
	return s, nil
}

// beside returns the path of a program that was built together with this one.
func beside(name string) string {
	self, err := os.Executable()
	if err != nil {
		return filepath.Join("bin", name)
	}
	return filepath.Join(filepath.Dir(self), name)
}

// run is the program. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err == nil {
		err = s.free()
	}
	if err != nil {
		fmt.Fprintln(stderr, "demo:", err)
		return exitRefused
	}
	d := &demo{settings: s, out: stdout}
	if err := d.run(ctx); err != nil {
		fmt.Fprintln(stderr, "demo:", err)
		return exitFailed
	}
	return exitOK
}

// free looks whether the three ports can be had, before anything is started: what
// the node would say of it comes too late and is less plain.
func (s settings) free() error {
	var all []error
	for _, p := range []struct{ flag, addr, other string }{
		{"rtmp", s.rtmp, ":1936"},
		{"http", s.http, ":8081"},
		{"admin", s.admin, "127.0.0.1:9091"},
	} {
		ln, err := net.Listen("tcp", p.addr)
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			all = append(all, fmt.Errorf("%s is taken by another program. Choose another port: make demo DEMO='--%s %s'", p.addr, p.flag, p.other))
		case err != nil:
			all = append(all, fmt.Errorf("--%s %s: %w", p.flag, p.addr, err))
		default:
			ln.Close()
		}
	}
	return errors.Join(all...)
}

// url returns the address at which this machine reaches a listener.
func url(scheme, addr, path string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return scheme + "://" + addr + path
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	if scheme == "rtmp" && port == "1935" {
		return "rtmp://" + host + path
	}
	return scheme + "://" + net.JoinHostPort(host, port) + path
}
