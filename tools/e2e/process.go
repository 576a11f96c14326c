// Package e2e drives the built programs as their users do: as processes, with flags,
// files and signals, against ffmpeg, curl and a browser.
//
// A test starts a node with [StartNode] or a scheduler with [StartScheduler], on ports
// that the kernel chose and that are read from the program's own log, and uses its
// addresses. What the program logged is shown when the test fails.
package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for something that must happen; on a busy
// machine it takes seconds, otherwise milliseconds.
const patience = time.Minute

// require is the variable that makes a missing program a failure. CI sets it.
const require = "E2E_REQUIRE"

// Program returns the path of an outside program. Without it the test is skipped,
// with the reason printed, or fails where nothing may be missing.
func Program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + name) // where servers are, and not everybody looks
	}
	switch {
	case err == nil:
		return path
	case os.Getenv(require) != "":
		t.Fatalf("%s is not installed, and %s is set", name, require)
	}
	missing.note(name, t.Name())
	t.Skipf("skipped: %s is not installed (apt-get install %s)", name, debian(name))
	return ""
}

// debian returns the Debian package that has a program.
func debian(program string) string {
	switch program {
	case "ffprobe":
		return "ffmpeg"
	case "dig":
		return "dnsutils"
	}
	return program
}

// missing are the outside programs for want of which tests were skipped. That of a
// test that is skipped is shown with -v only; these are told at the end of the run.
var missing skips

type skips struct {
	mu    sync.Mutex
	tests map[string][]string // by program
}

func (s *skips) note(program, test string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tests == nil {
		s.tests = make(map[string][]string)
	}
	s.tests[program] = append(s.tests[program], test)
}

// report returns a line for each program.
func (s *skips) report() (lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, program := range slices.Sorted(maps.Keys(s.tests)) {
		tests := s.tests[program]
		lines = append(lines, fmt.Sprintf("SKIPPED for want of %s (apt-get install %s): %s",
			program, debian(program), strings.Join(tests, ", ")))
	}
	return lines
}

// failures are the tests that failed. Each says so at length; their names are told at the
// end of the run.
var failures failed

type failed struct {
	mu    sync.Mutex
	tests []string
}

func (f *failed) note(test string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.tests, test) {
		f.tests = append(f.tests, test)
	}
}

// report returns a line for each test.
func (f *failed) report() (lines []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, test := range f.tests {
		lines = append(lines, "FAILED "+test)
	}
	return lines
}

// A log is shown to its last lines, each cut off, so that the failure is not lost in it.
const (
	shownLines = 40
	shownWidth = 300
)

// tail returns what is shown of a log.
func tail(lines []string) string {
	left := max(0, len(lines)-shownLines)
	var out []string
	if left > 0 {
		out = append(out, fmt.Sprintf("… %d lines before", left))
	}
	for _, l := range lines[left:] {
		if len(l) > shownWidth {
			l = l[:shownWidth] + "…"
		}
		out = append(out, l)
	}
	return strings.Join(out, "\n")
}

// showLogs shows the logs in a folder.
func showLogs(t *testing.T, dir string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, f := range files {
		b, _ := os.ReadFile(f)
		t.Logf("%s:\n%s", filepath.Base(f), tail(strings.Split(strings.TrimSpace(string(b)), "\n")))
	}
}

// built holds the programs that were built for this run of the tests.
var built struct {
	sync.Mutex
	dir  string
	errs map[string]error
}

// ready is the variable that names a folder of programs that are built already, to
// repeat single tests without waiting for that.
const ready = "E2E_BIN"

// Build returns the path of the program in the package at path, such as "cmd/node",
// built once for the whole run.
func Build(t *testing.T, path string) string {
	t.Helper()
	t.Cleanup(func() { // who runs a program comes here
		if t.Failed() {
			failures.note(t.Name())
		}
	})
	if dir := os.Getenv(ready); dir != "" {
		return filepath.Join(dir, filepath.Base(path))
	}
	built.Lock()
	defer built.Unlock()
	if built.errs == nil {
		dir, err := os.MkdirTemp("", "millrace-e2e-")
		if err != nil {
			t.Fatal(err)
		}
		built.dir, built.errs = dir, make(map[string]error)
	}
	program := filepath.Join(built.dir, filepath.Base(path))
	err, known := built.errs[path]
	if !known {
		cmd := exec.Command("go", "build", "-o", program, "millrace/"+path)
		if out, failed := cmd.CombinedOutput(); failed != nil {
			err = fmt.Errorf("go build %s: %w\n%s", path, failed, out)
		}
		built.errs[path] = err
	}
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// cleanUp removes what was built.
func cleanUp() {
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
}

// Line is one line of a node's log.
type Line map[string]any

// Text returns an attribute as text, "" when the line has none of that name.
func (l Line) Text(name string) string {
	if v, ok := l[name]; ok {
		return fmt.Sprint(v)
	}
	return ""
}

// Process is a program that was started by a test.
type Process struct {
	Cmd *exec.Cmd

	// Guarded by mu.
	mu    sync.Mutex
	lines []Line
	raw   []string
	news  chan struct{} // closed and replaced with every line
	ended bool
	err   error
}

// Start starts a program whose log is JSON lines on stderr. It is killed when the
// test ends, if it still runs then, and its output is shown when the test failed.
func Start(t *testing.T, env []string, program string, args ...string) *Process {
	t.Helper()
	p := &Process{Cmd: exec.Command(program, args...), news: make(chan struct{})}
	p.Cmd.Env = append(os.Environ(), env...)
	p.Cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := p.Cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Cmd.Stdout = os.Stderr
	if err := p.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.note(s.Text())
		}
		err := p.Cmd.Wait()
		p.mu.Lock()
		p.ended, p.err = true, err
		close(p.news)
		p.news = make(chan struct{})
		p.mu.Unlock()
	}()
	t.Cleanup(func() {
		p.Cmd.Process.Kill()
		<-read
		if t.Failed() {
			t.Logf("output of %s:\n%s", filepath.Base(program), tail(p.raw))
		}
	})
	return p
}

func (p *Process) note(text string) {
	var l Line
	_ = json.Unmarshal([]byte(text), &l) // other output has no attributes
	p.mu.Lock()
	defer p.mu.Unlock()
	p.raw = append(p.raw, text)
	p.lines = append(p.lines, l)
	close(p.news)
	p.news = make(chan struct{})
}

// Await returns the first line of the log, from the beginning, for which match
// holds. The test fails when there is none in time.
func (p *Process) Await(t *testing.T, what string, match func(Line) bool) Line {
	t.Helper()
	timeout := time.After(patience)
	for seen := 0; ; {
		p.mu.Lock()
		lines, news, ended := p.lines, p.news, p.ended
		p.mu.Unlock()
		for ; seen < len(lines); seen++ {
			if match(lines[seen]) {
				return lines[seen]
			}
		}
		if ended {
			t.Fatalf("%s: the program ended without it", what)
		}
		select {
		case <-news:
		case <-timeout:
			t.Fatalf("%s: not in the log after %v", what, patience)
		}
	}
}

// AwaitMessage waits for a line with the given msg and attributes, name and value
// in turn.
func (p *Process) AwaitMessage(t *testing.T, msg string, attrs ...string) Line {
	t.Helper()
	return p.Await(t, fmt.Sprint(msg, attrs), func(l Line) bool {
		if l.Text("msg") != msg {
			return false
		}
		for i := 0; i+1 < len(attrs); i += 2 {
			if l.Text(attrs[i]) != attrs[i+1] {
				return false
			}
		}
		return true
	})
}

// AwaitText waits for a line that holds some text, for programs whose log is no JSON.
func (p *Process) AwaitText(t *testing.T, text string) {
	t.Helper()
	timeout := time.After(patience)
	for {
		p.mu.Lock()
		news, ended := p.news, p.ended
		found := slices.ContainsFunc(p.raw, func(line string) bool { return strings.Contains(line, text) })
		p.mu.Unlock()
		if found {
			return
		}
		if ended {
			t.Fatalf("%s: the program ended without it", text)
		}
		select {
		case <-news:
		case <-timeout:
			t.Fatalf("%s: not in the log after %v", text, patience)
		}
	}
}

// Signal sends a signal.
func (p *Process) Signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// Exit waits for the end and returns the exit code.
func (p *Process) Exit(t *testing.T) int {
	t.Helper()
	timeout := time.After(patience)
	for {
		p.mu.Lock()
		news, ended := p.news, p.ended
		p.mu.Unlock()
		if ended {
			return p.Cmd.ProcessState.ExitCode()
		}
		select {
		case <-news:
		case <-timeout:
			t.Fatalf("still running after %v", patience)
		}
	}
}

// Output returns all that the program wrote so far.
func (p *Process) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.raw, "\n")
}

// Service is a running program that listens.
type Service struct {
	*Process
	addr map[string]string
}

// Node is a running node.
type Node struct{ *Service }

// StartNode starts the built node with every listener on a port of its own, and
// the given flags after that. It returns when the node is ready.
func StartNode(t *testing.T, args ...string) *Node {
	t.Helper()
	return StartNodeEnv(t, nil, args...)
}

// StartNodeEnv is StartNode with environment variables.
func StartNodeEnv(t *testing.T, env []string, args ...string) *Node {
	t.Helper()
	return &Node{started(t, Start(t, env, Build(t, "cmd/node"), append(slices.Clone(nodePorts), args...)...))}
}

// StartNodeLimited is StartNode with a limit of file descriptors.
func StartNodeLimited(t *testing.T, descriptors int, args ...string) *Node {
	t.Helper()
	shell := []string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, descriptors), Build(t, "cmd/node")}
	return &Node{started(t, Start(t, nil, "/bin/sh", append(append(shell, nodePorts...), args...)...))}
}

// Scheduler is a running scheduler.
type Scheduler struct{ *Service }

// StartScheduler starts the built scheduler with every listener on a port of its own,
// and the given flags after that. It returns when the scheduler is ready.
func StartScheduler(t *testing.T, args ...string) *Scheduler {
	t.Helper()
	return &Scheduler{started(t, Start(t, nil, Build(t, "cmd/scheduler"), append(slices.Clone(schedulerPorts), args...)...))}
}

// The flags of a program beside others of its kind.
var (
	nodePorts      = []string{"--rtmp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--log-format", "json"}
	schedulerPorts = []string{"--dns", "127.0.0.1:0", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--log-format", "json"}
)

// started waits until a program is ready.
func started(t *testing.T, p *Process) *Service {
	t.Helper()
	s := &Service{Process: p, addr: make(map[string]string)}
	s.AwaitMessage(t, "ready")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lines {
		if l.Text("msg") == "listening" {
			s.addr[l.Text("scheme")] = l.Text("addr")
		}
	}
	return s
}

// URL returns the address of the listener for a scheme (rtmp, rtmps, http, https,
// ws, admin, internal) with a path behind it.
func (s *Service) URL(scheme, path string) string {
	listener := map[string]string{"ws": "http", "wss": "https"}[scheme]
	if listener == "" {
		listener = scheme
	}
	if scheme == "admin" || scheme == "internal" {
		scheme = "http"
	}
	return scheme + "://" + s.addr[listener] + path
}

// Addr returns host and port of the listener for a scheme.
func (s *Service) Addr(scheme string) string { return s.addr[scheme] }
