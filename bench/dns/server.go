package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"
)

// serverCore is the core that the server has to itself.
const serverCore = 0

func loadCores() (set unix.CPUSet) {
	for i := range runtime.NumCPU() {
		if i != serverCore {
			set.Set(i)
		}
	}
	return set
}

// onCores calls start on a thread of some cores; a process that it starts stays there.
func onCores(set unix.CPUSet, start func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			done <- fmt.Errorf("keep to some cores: %w", err)
			return
		}
		done <- start()
	}()
	return <-done
}

// server is a server under measurement.
type server struct {
	cmd  *exec.Cmd
	addr string
	log  string // file with its output
	done chan error
}

// start runs a server on its core and waits until it answers.
func (b *bench) start(ctx context.Context, name string) (*server, error) {
	s := &server{done: make(chan error, 1), log: filepath.Join(b.dir, name+".log")}
	var err error
	if s.addr, err = freeAddr(); err != nil {
		return nil, err
	}
	switch name {
	case "ours", "fixed":
		s.cmd = exec.Command(b.self, "-serve", name, "-addr", s.addr, "-edges", strconv.Itoa(b.edges))
	case "coredns":
		if err := writeZone(b.dir, s.addr); err != nil {
			return nil, err
		}
		s.cmd = exec.Command(b.coredns, "-conf", "Corefile")
	default:
		return nil, fmt.Errorf("there is no such server: ours, fixed and coredns are")
	}
	log, err := os.Create(s.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = b.dir, log, log
	var core unix.CPUSet
	core.Set(serverCore)
	if err := onCores(core, s.cmd.Start); err != nil {
		return nil, err
	}
	go func() { s.done <- s.cmd.Wait() }()
	if err := s.ready(ctx); err != nil {
		s.stop()
		return nil, fmt.Errorf("%w: %s", err, s.tail())
	}
	return s, nil
}

// ready waits until the server answers.
func (s *server) ready(ctx context.Context) error {
	q := new(dns.Msg)
	q.SetQuestion(nameOf(1), dns.TypeA)
	var last error
	for range 300 {
		_, _, last = (&dns.Client{Timeout: time.Second}).ExchangeContext(ctx, q, s.addr)
		if last == nil {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case err := <-s.done:
			s.done <- err
			return fmt.Errorf("it ended: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return last
}

func (s *server) pid() int { return s.cmd.Process.Pid }

// stop ends the server and waits for it.
func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-s.done:
	case <-time.After(3 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.done
	}
}

// tail returns the end of what the server said.
func (s *server) tail() string {
	b, _ := os.ReadFile(s.log)
	return string(b[max(0, len(b)-2000):])
}

// freeAddr returns an address that is free for UDP and TCP.
func freeAddr() (string, error) {
	for {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		addr := ln.Addr().String()
		c, err := net.ListenPacket("udp", addr)
		_ = ln.Close()
		if err == nil {
			return addr, c.Close()
		}
	}
}

const corednsVersion = "1.15.0"

// buildCoreDNS builds CoreDNS from the module proxy, in a folder outside the module.
func buildCoreDNS(ctx context.Context, dir string) (string, error) {
	src := filepath.Join(dir, "coredns-src")
	if err := os.Mkdir(src, 0o755); err != nil {
		return "", err
	}
	out := filepath.Join(dir, "coredns")
	fmt.Println("building CoreDNS, which takes minutes; -coredns PATH takes one that is built already")
	for _, args := range [][]string{
		{"mod", "init", "peer"},
		{"mod", "edit", "-require", "github.com/coredns/coredns@v" + corednsVersion},
		{"build", "-o", out, "github.com/coredns/coredns"},
	} {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = src
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		if text, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, text[max(0, len(text)-500):])
		}
	}
	return out, nil
}

// writeZone writes the zone file and the configuration of CoreDNS: nothing but the zone,
// with the addresses that ours answers with as well.
func writeZone(dir, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	var z strings.Builder
	fmt.Fprintf(&z, "$ORIGIN %s.\n@ 3600 IN SOA ns1 hostmaster 1 3600 600 604800 60\n@ 3600 IN NS ns1\nns1 3600 IN A 192.0.2.53\n", zone)
	for i := range names {
		for j := range 3 {
			fmt.Fprintf(&z, "%s 60 IN A 198.18.%d.%d\n", nameOf(i), i>>8, (i+j)%256)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "zone"), []byte(z.String()), 0o644); err != nil {
		return err
	}
	conf := fmt.Sprintf("%s:%s {\n\tbind %s\n\tfile zone\n}\n", zone, port, host)
	return os.WriteFile(filepath.Join(dir, "Corefile"), []byte(conf), 0o644)
}
