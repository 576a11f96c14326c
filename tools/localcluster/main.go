// Command localcluster runs the whole system on this machine: nodes, a router that plans
// for them and has a console, a scheduler in front of the edges. It publishes to it, says
// where to watch, shows what flows where, and breaks what it is told to break. It is what
// `make demo` runs.
//
//	localcluster                              two centers, two relays, three edges, a router, a scheduler
//	localcluster --http :8081 --rtmp :1936    where the first edge is, if :8080 is taken
//	localcluster --print-topology > my.yaml   the file to change
//	localcluster --topology my.yaml
//	localcluster --json --for 30s < commands  for scripts
//
// Commands are read from the terminal, or line by line from any other input:
//
//	kill relay-1            kill -9
//	freeze edge-1>relay-1   a link, from who connects to the one it connects to
//	slow relay-1 600        what leaves it, kbit/s
//	delay edge-1>relay-1 80 everything on it comes later, ms
//	kill router-1           nobody who watches notices
//	heal relay-1 · restart relay-1 · help · urls · quit
//
// On a terminal the table is drawn again and again; elsewhere it is printed when
// something in it has changed, or with --json a line with everything in it. The first
// edge listens where a node without configuration does, the others from --port on,
// four ports each: HTTP, RTMP, admin, and one for other nodes; then comes the scheduler,
// with DNS in place of RTMP, and the router, with HTTP and admin. Each edge has an address of its own, 127.0.0.1,
// 127.0.0.2 and so on, because that is what DNS tells apart. Whatever way it ends, its
// nodes end with it. Exit code 0 after quit, Ctrl-C or the time of --for, 1 when
// something failed, 2 when it could not start.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"millrace/tools/cluster"
)

const (
	exitOK      = 0
	exitFailed  = 1
	exitRefused = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// settings are the command line.
type settings struct {
	topology  string
	print     bool
	node      string
	scheduler string
	router    string
	port      int
	front     cluster.Ports // of the first edge; what is empty there has a default
	logs      string
	every     time.Duration
	duration  time.Duration
	json      bool
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	f := flag.NewFlagSet("localcluster", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&s.topology, "topology", "", "YAML file of nodes, links and streams; without one the default is run")
	f.BoolVar(&s.print, "print-topology", false, "print the default topology and exit")
	f.StringVar(&s.node, "node", beside("node"), "the node program")
	f.StringVar(&s.scheduler, "scheduler", beside("scheduler"), "the scheduler program; empty for none")
	f.StringVar(&s.router, "router", beside("router"), "the router program; empty for none")
	f.IntVar(&s.port, "port", 21000, "first port, four for each node; 0 takes what is free")
	f.StringVar(&s.front.HTTP, "http", "", "where the first edge serves players (:8080)")
	f.StringVar(&s.front.RTMP, "rtmp", "", "where the first edge takes publishers (:1935)")
	f.StringVar(&s.front.Admin, "admin", "", "where the first edge answers operators (127.0.0.1:9090)")
	f.StringVar(&s.logs, "logs", "", "directory for what nodes log; without one it is thrown away at the end")
	f.DurationVar(&s.every, "every", 0, "time between two looks (1s, and 5s where the table is printed)")
	f.DurationVar(&s.duration, "for", 0, "end after this time; 0 is until it is told to")
	f.BoolVar(&s.json, "json", false, "print a JSON object a line instead of the table")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	switch {
	case f.NArg() > 0:
		return s, fmt.Errorf("what is %q? localcluster takes flags only", f.Arg(0))
	case s.port < 0 || s.port > 60000:
		return s, fmt.Errorf("--port %d: use 1 to 60000, or 0 for any", s.port)
	case s.every < 0 || s.duration < 0:
		return s, errors.New("--every and --for cannot be negative")
	}
	return s, errors.Join(checkAddr("http", s.front.HTTP), checkAddr("rtmp", s.front.RTMP), checkAddr("admin", s.front.Admin))
}

// beside returns the path of a program that was built together with this one.
func beside(name string) string {
	self, err := os.Executable()
	if err != nil {
		return filepath.Join("bin", name)
	}
	return filepath.Join(filepath.Dir(self), name)
}

// load reads the topology that the settings name.
func (s settings) load() (cluster.Topology, error) {
	if s.topology == "" {
		return cluster.Default()
	}
	file, err := os.Open(s.topology)
	if err != nil {
		return cluster.Topology{}, err
	}
	defer file.Close()
	t, err := cluster.Read(bufio.NewReader(file))
	if err != nil {
		return t, fmt.Errorf("%s: %w", s.topology, err)
	}
	return t, nil
}

// run is the program. It returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	s, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err == nil && s.print {
		stdout.Write(cluster.DefaultFile())
		return exitOK
	}
	var t cluster.Topology
	if err == nil {
		t, err = s.load()
	}
	if err != nil {
		fmt.Fprintln(stderr, "localcluster:", err)
		return exitRefused
	}
	own := s.logs == ""
	if own {
		s.logs, err = os.MkdirTemp("", "localcluster-")
	} else {
		err = os.MkdirAll(s.logs, 0o755)
	}
	if err != nil {
		fmt.Fprintln(stderr, "localcluster:", err)
		return exitRefused
	}
	code := s.serve(ctx, t, stdin, stdout, stderr)
	if own && code == exitOK {
		os.RemoveAll(s.logs)
	} else if own {
		os.Remove(s.logs) // if nothing was started it is empty
	}
	return code
}

// serve runs the topology until it is told to end.
func (s settings) serve(ctx context.Context, t cluster.Topology, stdin io.Reader, stdout, stderr io.Writer) int {
	if s.scheduler == "" {
		t.Scheduler = nil
	}
	if s.router == "" {
		t.Routers = nil
	}
	fmt.Fprintf(stderr, "Starting %s. They log to %s\n", programs(t), s.logs)
	c, err := cluster.Start(ctx, t, s.options(t))
	if err != nil {
		if ctx.Err() != nil {
			return exitOK
		}
		fmt.Fprintln(stderr, "localcluster:", err)
		if taken, ok := errors.AsType[cluster.TakenError](err); ok {
			fmt.Fprintf(stderr, "Stop it, or choose other ports:\n  make demo DEMO='%s'\n", s.otherPorts(taken, len(t.Nodes)+1+len(t.Routers)))
		}
		return exitRefused
	}
	if s.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.duration)
		defer cancel()
	}
	loop{system: c, topology: t, every: s.every, face: s.face(stdout), guide: guide(t, c.Ports)}.run(ctx, stdin)
	fmt.Fprintln(stderr, "Ending the nodes.")
	if err := c.Close(); err != nil {
		fmt.Fprintln(stderr, "localcluster:", err)
		return exitFailed
	}
	return exitOK
}

// programs says what a topology runs.
func programs(t cluster.Topology) string {
	what := []string{fmt.Sprintf("%d nodes", len(t.Nodes))}
	if t.Scheduler != nil {
		what = append(what, "a scheduler")
	}
	switch n := len(t.Routers); n {
	case 0:
	case 1:
		what = append(what, "a router")
	default:
		what = append(what, fmt.Sprintf("%d routers", n))
	}
	last := len(what) - 1
	if last == 0 {
		return what[0]
	}
	return strings.Join(what[:last], ", ") + " and " + what[last]
}

// face chooses how to show things.
func (s settings) face(stdout io.Writer) face {
	if s.json {
		return &lines{out: stdout}
	}
	if file, ok := stdout.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return &screen{out: stdout, size: func() (int, int) {
			width, height, err := term.GetSize(int(file.Fd()))
			if err != nil {
				return 80, 24
			}
			return width, height
		}}
	}
	return &printed{out: stdout}
}
