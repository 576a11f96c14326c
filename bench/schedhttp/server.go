package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"

	"millrace/internal/auth"
	"millrace/internal/frontend"
	"millrace/internal/geo"
	"millrace/internal/sched"
)

// serverCore is the core that the server under test has for itself; the load takes the
// others.
const serverCore = 0

// keepOff keeps this process off a core, where there is more than one.
func keepOff(core int) error {
	var set unix.CPUSet
	for i := range runtime.NumCPU() {
		if i != core || runtime.NumCPU() == 1 {
			set.Set(i)
		}
	}
	return pin(set)
}

// pin binds every thread that this process has, and so all that it will have.
func pin(set unix.CPUSet) error {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range tasks {
		var id int
		if _, err := fmt.Sscan(t.Name(), &id); err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(id, &set); err != nil && err != unix.ESRCH {
			return fmt.Errorf("bind to cores: %w", err)
		}
	}
	return nil
}

// serve is the server under test, on one core.
func serve(ctx context.Context, o options) error {
	runtime.GOMAXPROCS(1)
	var set unix.CPUSet
	set.Set(serverCore)
	if err := pin(set); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	if o.serve == "constant" {
		return serveConstant(ctx, ln)
	}
	return serveScheduler(ctx, ln, o)
}

// serveConstant answers what is known before it is asked for.
func serveConstant(ctx context.Context, ln net.Listener) error {
	body := []byte("this player's edge is at Location\n")
	s := &fasthttp.Server{
		Handler: func(ctx *fasthttp.RequestCtx) {
			ctx.Response.Header.SetContentType("text/plain; charset=utf-8")
			ctx.Response.SetBodyRaw(body)
		},
		NoDefaultServerHeader: true,
	}
	defer context.AfterFunc(ctx, func() { _ = s.Shutdown() })()
	return s.Serve(ln)
}

// Names of the world of the scheduler.
const (
	domain  = "play.cdn.example.com"
	regions = 20
	key     = "0123456789abcdef-bench"
)

var isps = []string{"telecom", "unicom", "mobile"}

// serveScheduler answers with the faces of the scheduler, whose view is renewed every
// second as it is in real life.
func serveScheduler(ctx context.Context, ln net.Listener, o options) error {
	cluster, err := auth.NewCluster(auth.ClusterConfig{Keys: []string{key}})
	if err != nil {
		return err
	}
	coverage, err := geo.ParseCoverage([]byte(coverage()))
	if err != nil {
		return err
	}
	table, err := geo.NewTable(coverage, nil, geo.Options{})
	if err != nil {
		return err
	}
	plan, err := sched.Compile(snapshot(o.edges), table.Pairs())
	if err != nil {
		return err
	}
	s := sched.New()
	swap := func() { s.Swap(sched.NewView(plan, table, state(plan, time.Now()))) }
	swap()
	go func() {
		for tick := time.NewTicker(time.Second); ctx.Err() == nil; <-tick.C {
			swap()
		}
	}()
	cfg := frontend.DefaultHTTPConfig()
	cfg.DefaultDomain = domain
	cfg.Resolve.Rate, cfg.Resolve.Burst = 10_000, 1_000_000 // counted, but never reached
	h, err := frontend.NewHTTP(cfg, s, cluster, ln, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return h.Run(ctx)
}

// coverage gives each of the loopback networks, from which the load comes, a place.
func coverage() string {
	var b strings.Builder
	for i := range 256 {
		fmt.Fprintf(&b, "127.%d.0.0/16 r%d %s\n", i, i%regions, isps[i/regions%len(isps)])
	}
	return b.String()
}

func snapshot(edges int) *sched.Snapshot {
	s := &sched.Snapshot{Version: 1, Domains: []sched.Domain{{Name: domain, Redirect: true, HTTPDNS: true}}}
	for i := range regions {
		lat, lon := 20+float64(i%5)*6, 80+float64(i/5)*12
		s.Regions = append(s.Regions, sched.Region{Name: fmt.Sprintf("r%d", i), Lat: &lat, Lon: &lon})
	}
	for i := range edges {
		s.Nodes = append(s.Nodes, sched.Node{
			ID: fmt.Sprintf("edge-%d", i), Role: "edge", Region: fmt.Sprintf("r%d", i%regions), ISPs: []string{isps[i/regions%len(isps)]},
			Addresses: []netip.Addr{netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)}), netip.AddrFrom16([16]byte{0x24, 15: byte(i), 14: byte(i >> 8)})},
			HTTPPort:  8080, Capacity: 1250 << 20,
		})
	}
	return s
}

// state has every edge up, with loads from none to half of the capacity.
func state(p *sched.Plan, now time.Time) *sched.State {
	s := &sched.State{At: now}
	h := sched.Health{Status: sched.Up, At: now, Up: now}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		s.Nodes = append(s.Nodes, sched.NodeState{ID: n.ID, V4: h, V6: h, Load: n.Capacity * int64(i%50) / 100})
	}
	return s
}

// process is a server under test.
type process struct {
	cmd  *exec.Cmd
	addr string
}

// start runs this program as a server.
func start(ctx context.Context, o options, what string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, self, "-serve", what, "-edges", fmt.Sprint(o.edges))
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil && err != io.EOF {
		return nil, err
	}
	return &process{c, strings.TrimSpace(addr)}, nil
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Wait()
}

// cpu is the time that the server has used.
func (p *process) cpu() (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(b), ") ") // the name of the program may hold anything
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0, fmt.Errorf("unreadable: %s", b)
	}
	var user, system int64
	if _, err := fmt.Sscan(f[11]+" "+f[12], &user, &system); err != nil {
		return 0, err
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100 everywhere
	return time.Duration(user+system) * tick, nil
}
