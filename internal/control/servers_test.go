package control

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/sched"
)

// TestFollowerTakesOtherServers: a question that waits is given up, and a rest is not
// slept through.
func TestFollowerTakesOtherServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		defer n.wg.Wait()
		one, two := newServer(t, newCluster(t, clusterKey)), newServer(t, newCluster(t, clusterKey))
		n.http("s1:80", one)
		n.http("s2:80", two)
		one.Bundle(bundle(t, "s1", 1, 20))
		two.Bundle(bundle(t, "s2", 1, 21))
		f := newFollower(t, followers("http://s1:80"), n, clusterKey)
		have := next(t, f, nil, time.Minute)
		changed := func(what, server string) {
			t.Helper()
			time.AfterFunc(time.Second, func() {
				if err := f.SetServers([]string{server}); err != nil {
					t.Error(err)
				}
			})
			begun := time.Now()
			b := next(t, f, have, time.Minute)
			if b == nil || time.Since(begun) != time.Second || f.Status().From != server || f.Status().Error != "" {
				t.Fatalf("%s: got %v after %v, %+v", what, b, time.Since(begun), f.Status())
			}
			have = b
		}
		changed("while a question waits", "http://s2:80")
		n.set("s2:80", nil)
		for f.Counts()["unreachable"] < 8 {
			if none := next(t, f, have, time.Minute); none != nil {
				t.Fatalf("got %v of nobody", none.Version)
			}
		}
		changed("while nobody answers", "http://s1:80")
		for _, bad := range [][]string{nil, {"s1"}} {
			if err := f.SetServers(bad); err == nil {
				t.Errorf("the servers %q are taken", bad)
			}
		}
	})
}

func TestOrdersFollowerTakesOtherServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, fleet1 := newRouter(t, "r1", clusterKey)
		two, fleet2 := newRouter(t, "r2", clusterKey)
		n := &network{}
		n.http("r1:80", one)
		n.http("r2:80", two)
		order(one, fleet1, ordersOf("e1", 1, "r1"))
		order(two, fleet2, ordersOf("e1", 2, "r2"))
		f, applied, _ := obeying(t, n, "", "http://r1:80")
		pass(10 * time.Second)
		if got := applied(); len(got) != 1 || got[0].Version != 1 {
			t.Fatalf("of the first: %v", got)
		}
		if err := f.SetServers([]string{"http://r2:80"}); err != nil {
			t.Fatal(err)
		}
		pass(time.Millisecond)
		if got := applied(); len(got) != 1 || got[0].Version != 2 || f.Status().From != "http://r2:80" {
			t.Errorf("of the second: %v, %+v", got, f.Status())
		}
	})
}

// TestBeatTakesOtherServers: it speaks to them at once, though the one before has wished
// to be left alone.
func TestBeatTakesOtherServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, _ := newRouter(t, "r1", clusterKey)
		two, fleet2 := newRouter(t, "r2", clusterKey)
		n, node := &network{}, newNode()
		n.http("r1:80", one)
		n.http("r2:80", two)
		b := beating(t, n, node, nil, "http://r1:80")
		pass(1500 * time.Millisecond)
		one.Close()
		pass(10 * time.Second)
		if err := b.SetServers([]string{"http://r2:80"}); err != nil {
			t.Fatal(err)
		}
		pass(2 * hurryPause)
		if h := fleet2.heartbeats(); len(h) == 0 || h[0].Identity == nil || b.Status().Router != "r2" {
			t.Errorf("the second router heard %+v; %+v", h, b.Status())
		}
		n.dials()
		pass(time.Minute)
		if d := n.dials(); d["r1:80"] != 0 {
			t.Errorf("the first router is still told: %v", d)
		}
	})
}

func TestPathfinderTakesOtherServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fleet := newRouter(t, "r2", clusterKey)
		n := &network{}
		n.http("r2:80", s)
		fleet.routes["live/a"] = routeTo("r7")
		p := finding(t, n, "http://r1:80")
		if _, _, err := find(t, p, "live/a"); err == nil {
			t.Fatal("a router answers that is not there")
		}
		if err := p.SetServers([]string{"http://r2:80", "http://r3:80"}); err != nil {
			t.Fatal(err)
		}
		if r, _, err := find(t, p, "live/a"); err != nil || len(r.Choices) != 1 {
			t.Errorf("got %v, %v", r, err)
		}
	})
}

// TestPeersTakeOtherServers: one that stays is not disturbed.
func TestPeersTakeOtherServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, g := &network{}, &gathered{}
		defer n.wg.Wait()
		for _, name := range []string{"s1", "s2", "s3"} {
			s := newServer(t, newCluster(t, clusterKey))
			s.Report(&Report{Observer: name, At: time.Now(), Observations: []sched.Observation{up(1, name, time.Now())}})
			n.http(name+":80", s)
		}
		cfg := DefaultPeersConfig()
		cfg.Servers = []string{"http://s1:80", "http://s2:80"}
		p, err := NewPeers(cfg, "me", newCluster(t, clusterKey), n.dial, nil, g.take, silent)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- p.Run(ctx) }()
		pass(5 * time.Second)
		n.dials()
		if err := p.SetServers([]string{"http://s3:80", "http://s2:80", "http://s2:80"}); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		var told []string
		for _, s := range p.Status() {
			told = append(told, s.Observer+s.Error)
		}
		if d := n.dials(); strings.Join(told, " ") != "s3 s2" || d["s1:80"]+d["s2:80"] != 0 || d["s3:80"] != 1 {
			t.Errorf("followed are %v, dialled were %v", told, d)
		}
		if o, _ := g.get("s3 edge-1"); !o.Up {
			t.Errorf("of s3: %+v", o)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
