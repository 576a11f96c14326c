package control

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/sched"
)

// gathered is the newest observation of each observer and node.
type gathered struct {
	mu    sync.Mutex
	all   map[string]sched.Observation
	calls int
}

func (g *gathered) take(obs []sched.Observation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all == nil {
		g.all = map[string]sched.Observation{}
	}
	g.calls++
	for _, o := range obs {
		g.all[o.Observer+" "+o.Node] = o
	}
}

func (g *gathered) get(key string) (o sched.Observation, calls int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.all[key], g.calls
}

func TestPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, g := &network{}, &gathered{}
		defer n.wg.Wait()
		var log strings.Builder
		report := func(s *Server, observer string) {
			s.Report(&Report{Observer: observer, At: time.Now(), Observations: []sched.Observation{up(1, observer, time.Now().Add(-time.Second))}})
		}
		servers := map[string]*Server{}
		cfg := DefaultPeersConfig()
		for _, name := range []string{"s1", "s2", "s3"} { // s1 is this program itself
			servers[name] = newServer(t, newCluster(t, clusterKey))
			n.http(name+":80", servers[name])
			cfg.Servers = append(cfg.Servers, fmt.Sprintf("http://%s:80", name))
			report(servers[name], name)
		}
		p, err := NewPeers(cfg, "s1", newCluster(t, clusterKey), n.dial, nil, g.take, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		begun := time.Now()
		time.Sleep(5 * time.Second)
		for _, observer := range []string{"s2", "s3"} {
			if o, _ := g.get(observer + " edge-1"); !o.Up || begun.Sub(o.At) != time.Second {
				t.Errorf("of %s: %+v", observer, o)
			}
		}
		if o, calls := g.get("s1 edge-1"); o.Up || calls != 2 {
			t.Errorf("of this program itself: %+v; %d reports in all", o, calls)
		}
		// The same report is not taken again, or what it says would never grow old.
		time.Sleep(30 * time.Second)
		if _, calls := g.get(""); calls != 2 {
			t.Errorf("%d reports after nothing new", calls)
		}
		n.set("s3:80", nil)
		for range 60 {
			report(servers["s2"], "s2")
			time.Sleep(time.Second)
		}
		if _, calls := g.get(""); calls < 27 || calls > 36 {
			t.Errorf("%d reports in a minute, want one each %v", calls-2, cfg.Every)
		}
		st := p.Status()
		if st[1].Observer != "s2" || st[1].Nodes != 1 || st[1].Error != "" || time.Since(st[1].At) > 2*cfg.Every {
			t.Errorf("status of s2: %+v", st[1])
		}
		if !strings.HasPrefix(st[2].Error, "unreachable") || st[2].Observer != "s3" {
			t.Errorf("status of s3: %+v", st[2])
		}
		n.http("s3:80", servers["s3"])
		report(servers["s3"], "s3")
		time.Sleep(maxPeerPause * 3 / 2)
		if o, _ := g.get("s3 edge-1"); time.Since(o.At) > 20*time.Second {
			t.Errorf("s3 has come back and is not asked: %+v", o)
		}
		n.raw("s2:80", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{}")
		time.Sleep(time.Minute)
		if st := p.Status(); !strings.HasPrefix(st[1].Error, "forged") {
			t.Errorf("status of a forger: %+v", st[1])
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := strings.Count(log.String(), "\n"); n != 4 {
			t.Errorf("%d lines:\n%s", n, log.String())
		}
	})
}

func TestPeersConfig(t *testing.T) {
	if err := DefaultPeersConfig().Validate(); err != nil {
		t.Error(err)
	}
	err := PeersConfig{Servers: append(make([]string, maxServers), "s1"), Every: time.Hour}.Validate()
	for _, want := range []string{"servers has 17 URLs", `servers: "s1" is not the URL`, "every is 1h0m0s: use 100ms to 1m"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	if _, err := NewPeers(PeersConfig{}, "s1", nil, nil, nil, nil, silent); err == nil {
		t.Error("a zero config is taken")
	}
}
