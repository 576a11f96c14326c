package main

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"millrace/internal/auth"
	"millrace/internal/config"
	"millrace/internal/control"
	"millrace/internal/run"
	"millrace/internal/runtest"
)

// routed is a router as schedulers see it.
type routed struct {
	*control.Server
	url  string
	stop func()
}

// newRouted starts a router that has the nodes and domains of the shortest files.
func newRouted(t *testing.T) *routed {
	t.Helper()
	cluster, err := auth.NewCluster(auth.DefaultClusterConfig())
	if err != nil {
		t.Fatal(err)
	}
	r := &routed{}
	if r.Server, err = control.NewServer(control.DefaultServerConfig(), cluster, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	files := shortest(t)
	contents, err := control.FilesConfig{Nodes: files["nodes.yaml"], Domains: files["domains.yaml"], Coverage: files["coverage.txt"]}.Load()
	if err != nil {
		t.Fatal(err)
	}
	b, err := control.NewBundle("routers", 7, time.Now(), contents)
	if err != nil {
		t.Fatal(err)
	}
	r.Bundle(b)
	r.Report(&control.Report{Observer: "router-1", At: time.Now()})

	r.url, r.stop = runtest.Serve(t, r.Handle, r.Close)
	return r
}

// follows returns a scheduler of a router, on ports of its own.
func follows(t *testing.T, url, state string) *trial {
	t.Helper()
	tr := &trial{log: &runtest.Journal{}}
	src := config.Sources{File: filepath.Join(t.TempDir(), "scheduler.yaml")}
	runtest.Write(t, src.File, "router: {servers: [\""+url+"\"]}\n")
	for _, scheme := range []string{"dns", "http", "admin"} {
		src.Flags = append(src.Flags, config.Flag{Name: "--" + scheme, Key: "address." + scheme, Text: "127.0.0.1:0"})
	}
	src.Flags = append(src.Flags, config.Flag{Name: "--set", Key: "router.state_file", Text: state})
	loaded, err := config.Load(config.DefaultScheduler(), src)
	if err != nil {
		t.Fatal(err)
	}
	if err := check(loaded); err != nil {
		t.Fatal(err)
	}
	if tr.scheduler, err = build(loaded, src, run.NewLog(loaded.Config.Log.Level, loaded.Config.Log.Format, tr.log)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.doors.Close)
	return tr
}

// TestFollowsRouter: a scheduler works from what a router has, goes on without it, and
// begins without it when it has been there once.
func TestFollowsRouter(t *testing.T) {
	state := filepath.Join(t.TempDir(), "snapshot")
	r := newRouted(t)
	answers := func(tr *trial) bool {
		reply := tr.ask(t, "play.live.test.", dns.TypeA)
		return reply.Rcode == dns.RcodeSuccess && len(reply.Answer) == 1
	}
	t.Run("first", func(t *testing.T) {
		tr := follows(t, r.url, state)
		if n := len(tr.decider.View().Plan.Domains); n != 0 {
			t.Errorf("it begins with %d domains", n)
		}
		tr.start(t)
		if !answers(tr) {
			t.Errorf("no answer; the log is %s", tr.log)
		}
		for path, want := range map[string]string{
			"/v1/status": `"kind":"follower"`,
			"/v1/nodes":  `"id":"edge-1"`,
			"/metrics":   `millrace_control_questions_total{outcome="answered"} 1`,
		} {
			if code, body := runtest.Get(t, "http://"+tr.addr("admin")+path); code != 200 || !strings.Contains(body, want) {
				t.Errorf("%s answers %d %s, want %s", path, code, body, want)
			}
		}
		runtest.AwaitGet(t, "http://"+tr.addr("admin")+"/metrics", `millrace_control_peer_alive{peer="`+r.url+`"} 1`)
		r.stop()
		runtest.AwaitGet(t, "http://"+tr.addr("admin")+"/metrics", `millrace_control_peer_alive{peer="`+r.url+`"} 0`)
		if !answers(tr) {
			t.Error("no answer without the router")
		}
		// Another one, without a restart.
		other := newRouted(t)
		runtest.Write(t, tr.src.File, "router: {servers: [\""+other.url+"\"]}\n")
		tr.reload(tr.read())
		if l := tr.log.Lines(t, "changed"); len(l) != 1 || l[0]["setting"] != "router.servers" || l[0]["new"] != "["+other.url+"]" {
			t.Errorf("a reload tells %s", tr.log)
		}
		runtest.AwaitGet(t, "http://"+tr.addr("admin")+"/metrics", `millrace_control_peer_alive{peer="`+other.url+`"} 1`)
		runtest.AwaitGet(t, "http://"+tr.addr("admin")+"/v1/status", `"from":"`+other.url+`"`)
		tr.src.File = ""
		tr.reload(tr.read())
		if !strings.Contains(tr.log.String(), "no configuration file to read: --config names it") {
			t.Errorf("a reload tells %s", tr.log)
		}
	})
	t.Run("from disk", func(t *testing.T) {
		tr := follows(t, r.url, state)
		if n := len(tr.decider.View().Plan.Domains); n != 1 {
			t.Errorf("it begins with %d domains, want those on disk", n)
		}
		tr.start(t)
		if !answers(tr) {
			t.Errorf("no answer; the log is %s", tr.log)
		}
	})
	t.Run("with nothing", func(t *testing.T) {
		tr := follows(t, r.url, filepath.Join(t.TempDir(), "none"))
		tr.start(t)
		if reply := tr.ask(t, "play.live.test.", dns.TypeA); reply.Rcode != dns.RcodeServerFailure {
			t.Errorf("it answers %v, want SERVFAIL, so that another server is asked", reply)
		}
	})
}
