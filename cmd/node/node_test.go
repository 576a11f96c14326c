package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"millrace/internal/config"
	"millrace/internal/flv"
	"millrace/internal/run"
	"millrace/internal/runtest"
	"millrace/internal/stream"
)

func TestMain(m *testing.M) { runtest.Main(m) }

// trial is a node in this process.
type trial struct {
	*node
	file string
	log  *runtest.Journal
}

// built returns a node on ports of its own, with text as its file. It does not run;
// its listeners are closed at the end of the test.
func built(t *testing.T, text string) *trial {
	t.Helper()
	tr := &trial{file: filepath.Join(t.TempDir(), "node.yaml"), log: &runtest.Journal{}}
	tr.write(t, text)
	src := config.Sources{File: tr.file}
	for _, scheme := range []string{"rtmp", "http", "admin"} {
		src.Flags = append(src.Flags, config.Flag{Name: "--" + scheme, Key: "address." + scheme, Text: "127.0.0.1:0"})
	}
	loaded, err := config.Load(config.DefaultNode(), src)
	if err != nil {
		t.Fatal(err)
	}
	if tr.node, err = build(loaded, src, run.NewLog(loaded.Config.Log.Level, loaded.Config.Log.Format, tr.log)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.doors.Close)
	return tr
}

func (tr *trial) write(t *testing.T, text string) {
	t.Helper()
	runtest.Write(t, tr.file, text)
}

// start runs the node until the test ends.
func (tr *trial) start(t *testing.T) {
	t.Helper()
	runtest.Start(t, 2, func(end <-chan os.Signal) error { return tr.Run(run.Signals{End: end}) })
}

// url returns an address at the listener of a scheme.
func (tr *trial) url(scheme, path string) string {
	return "http://" + tr.doors.Addr(scheme).String() + path
}

// publish makes a live stream without a connection.
func (tr *trial) publish(t *testing.T, name stream.Name) {
	t.Helper()
	p, err := tr.hub.Publish(time.Now(), name, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Write(time.Now(), flv.New(flv.Video, 0, []byte{0x17, 1, 0, 0, 0, 9})); err != nil {
		t.Fatal(err)
	}
}

// TestNamesOfPrivateStreams: the front page lists streams only where anyone may
// play them, also when that changes at a reload.
func TestNamesOfPrivateStreams(t *testing.T) {
	const secrets = "auth:\n  play_secrets: [0123456789abcdef0123456789abcdef]\n"
	open := built(t, "")
	open.publish(t, "live/hidden")
	list := open.liveList()
	if live := list(); len(live) != 1 || live[0].Name != "live/hidden" || live[0].Video != "h264" {
		t.Errorf("an open node lists %+v", live)
	}
	open.write(t, secrets)
	open.reload(open.read())
	if live := list(); len(live) != 0 {
		t.Errorf("after a reload with play_secrets it lists %+v", live)
	}
	open.write(t, "")
	open.reload(open.read())
	if live := list(); len(live) != 1 {
		t.Errorf("open again it lists %+v", live)
	}

	closed := built(t, secrets)
	closed.publish(t, "live/hidden")
	closed.start(t)
	if status, body := runtest.Get(t, closed.url("http", "/watch/streams.json")); status != 404 || strings.Contains(body, "hidden") {
		t.Errorf("a private node answers %d %s", status, body)
	}
}

func TestBanner(t *testing.T) {
	tr := built(t, "")
	var b bytes.Buffer
	tr.Banner(&b)
	for _, o := range tr.doors.Opened() {
		if !strings.Contains(b.String(), o.Addr.String()) {
			t.Errorf("the banner lacks %s of %s:\n%s", o.Addr, o.Scheme, b.String())
		}
	}
	for _, want := range []string{"rtmp://", "/live/NAME.flv", "/watch/live/NAME", "/v1/streams"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the banner lacks %s:\n%s", want, b.String())
		}
	}
}

// TestProgram: a signal drains, and the exit code of the program tells a drain
// from a refusal.
func TestProgram(t *testing.T) {
	end := make(chan os.Signal, 1)
	end <- syscall.SIGTERM
	f := func(want int, says string, args ...string) {
		t.Helper()
		var out, errs runtest.Journal
		if code := program(args, []string{"PATH=/bin"}, run.Signals{End: end}, &out, &errs); code != want {
			t.Errorf("%v: exit code %d, want %d: %s", args, code, want, errs.String())
		}
		if !strings.Contains(out.String()+errs.String(), says) {
			t.Errorf("%v does not say %q: %s%s", args, says, out.String(), errs.String())
		}
	}
	f(run.OK, "millrace node", "--version")
	f(run.OK, "--check-config", "--help")
	f(run.OK, "no file: the configuration is good", "--check-config")
	f(run.Refused, "--nonsense", "--nonsense")
	f(run.Refused, "role", "--role", "centre")
	f(run.Refused, "KEY=VALUE", "--set", "nothing")
	f(run.Refused, "max_viewers", "--set", fmt.Sprintf("httpflv.max_viewers=%d", 1_000_000), "--rtmp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--admin", "")
	f(run.OK, `"msg":"drained: no viewer is left"`, "--rtmp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0")
}
