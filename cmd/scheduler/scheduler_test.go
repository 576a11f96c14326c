package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"millrace/internal/config"
	"millrace/internal/run"
	"millrace/internal/runtest"
)

func TestMain(m *testing.M) { runtest.Main(m) }

// shortest writes the files that the program shows to those who start it with nothing,
// and returns their names by their own.
func shortest(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	out := map[string]string{}
	parts := regexp.MustCompile(`(?m)^  ([a-z]+\.(?:yaml|txt)).*\n((?:    .*\n)+)`).FindAllStringSubmatch(shortestFiles, -1)
	for _, p := range parts {
		out[p[1]] = filepath.Join(dir, p[1])
		runtest.Write(t, out[p[1]], regexp.MustCompile(`(?m)^    `).ReplaceAllString(p[2], ""))
	}
	if len(out) != 3 {
		t.Fatalf("%d files are shown: %v", len(out), out)
	}
	return out
}

// trial is a scheduler in this process.
type trial struct {
	*scheduler
	file  string
	files map[string]string
	log   *runtest.Journal
}

// built returns a scheduler on ports of its own, of the shortest files, with text as
// its settings. It does not run; its listeners are closed at the end of the test.
func built(t *testing.T, text string) *trial {
	t.Helper()
	tr := &trial{file: filepath.Join(t.TempDir(), "scheduler.yaml"), files: shortest(t), log: &runtest.Journal{}}
	runtest.Write(t, tr.file, text)
	src := config.Sources{File: tr.file}
	for _, scheme := range []string{"dns", "http", "admin"} {
		src.Flags = append(src.Flags, config.Flag{Name: "--" + scheme, Key: "address." + scheme, Text: "127.0.0.1:0"})
	}
	for key, name := range map[string]string{"nodes": "nodes.yaml", "domains": "domains.yaml", "coverage": "coverage.txt"} {
		src.Flags = append(src.Flags, config.Flag{Name: "--" + key, Key: "files." + key, Text: tr.files[name]})
	}
	loaded, err := config.Load(config.DefaultScheduler(), src)
	if err != nil {
		t.Fatal(err)
	}
	if tr.scheduler, err = build(loaded, src, run.NewLog(loaded.Config.Log.Level, loaded.Config.Log.Format, tr.log)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.doors.Close)
	return tr
}

// start runs the scheduler until the test ends.
func (tr *trial) start(t *testing.T) {
	t.Helper()
	runtest.Start(t, 2, func(end <-chan os.Signal) error { return tr.Run(run.Signals{End: end}) })
}

// addr returns where the listener of a scheme is.
func (tr *trial) addr(scheme string) string { return tr.doors.Addr(scheme).String() }

// TestShortestFiles: what is shown to newcomers works, with the commands beside it.
func TestShortestFiles(t *testing.T) {
	files := shortest(t)
	var out, errs runtest.Journal
	code := program([]string{
		"--check-config", "--nodes", files["nodes.yaml"], "--domains", files["domains.yaml"], "--coverage", files["coverage.txt"],
	}, nil, run.Signals{}, &out, &errs)
	if code != run.OK || !strings.Contains(out.String(), "the configuration is good") {
		t.Errorf("exit code %d: %s%s", code, out.String(), errs.String())
	}
	d := config.DefaultScheduler().Address
	for _, addr := range []string{"-p " + strings.TrimPrefix(d.DNS, ":"), "127.0.0.1" + d.HTTP} {
		if !strings.Contains(shortestFiles, addr) {
			t.Errorf("the commands do not ask at %s", addr)
		}
	}
}

// TestProgram: a signal drains, and the exit code of the program tells a drain
// from a refusal, which says what to do.
func TestProgram(t *testing.T) {
	files := shortest(t)
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	runtest.Write(t, broken, "domains:\n  - {nmae: play.live.test}\n")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	busy := taken.Addr().String()

	f := func(want int, says string, args ...string) {
		t.Helper()
		end := make(chan os.Signal, 2)
		end <- syscall.SIGTERM
		end <- syscall.SIGTERM
		var out, errs runtest.Journal
		if code := program(args, []string{"PATH=/bin"}, run.Signals{End: end}, &out, &errs); code != want {
			t.Errorf("%v: exit code %d, want %d: %s", args, code, want, errs.String())
		}
		if !strings.Contains(out.String()+errs.String(), says) {
			t.Errorf("%v does not say %q: %s%s", args, says, out.String(), errs.String())
		}
	}
	with := func(args ...string) []string {
		return append([]string{
			"--nodes", files["nodes.yaml"], "--domains", files["domains.yaml"],
			"--dns", "127.0.0.1:0", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0",
		}, args...)
	}
	f(run.OK, "millrace scheduler", "--version")
	f(run.OK, "--coverage", "--help")
	f(run.Refused, "--nonsense", "--nonsense")
	f(run.Refused, "KEY=VALUE", with("--set", "nothing")...)
	f(run.Refused, "The shortest files")
	f(run.Refused, "domains is missing", "--nodes", files["nodes.yaml"])
	f(run.Refused, "/nowhere", with("--nodes", "/nowhere", "--check-config")...)
	f(run.Refused, broken+":2: ", with("--domains", broken, "--check-config")...)
	f(run.Refused, broken+":2: ", with("--domains", broken)...)
	f(run.Refused, "address.http: ", with("--http", busy)...)
	f(run.Refused, "or stop the other program", with("--dns", busy)...)
	f(run.Refused, "cluster: ", with("--cluster-key", "short")...)
	f(run.Refused, "probe.concurrency", with("--set", "listen.max_connections=1000000", "--set", "probe.concurrency=20001")...)
	f(run.OK, `"msg":"ended"`, with()...)
}

func TestBanner(t *testing.T) {
	tr := built(t, "")
	var b bytes.Buffer
	tr.Banner(&b)
	for _, o := range tr.doors.Opened() {
		host, port, _ := net.SplitHostPort(o.Addr.String())
		if !strings.Contains(b.String(), o.Addr.String()) && !strings.Contains(b.String(), "dig @"+host+" -p "+port+" play.live.test") {
			t.Errorf("the banner lacks %s of %s:\n%s", o.Addr, o.Scheme, b.String())
		}
	}
	for _, want := range []string{"Host: play.live.test", "/live/NAME.flv", "/v1/resolve?domain=play.live.test", "/v1/nodes"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the banner lacks %s:\n%s", want, b.String())
		}
	}
}
