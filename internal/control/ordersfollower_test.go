package control

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// obeying runs an OrdersFollower against routers and returns it, what was applied, and
// what ends it.
func obeying(t *testing.T, net *network, file string, servers ...string) (*OrdersFollower, func() []*Orders, func()) {
	t.Helper()
	cfg := DefaultFollowerConfig()
	cfg.Servers, cfg.File = servers, file
	var mu sync.Mutex
	var applied []*Orders
	f, err := NewOrdersFollower(cfg, "e1", newCluster(t, clusterKey), net.dial, nil, func(o *Orders) {
		mu.Lock()
		defer mu.Unlock()
		applied = append(applied, o)
	}, silent)
	if err != nil {
		t.Fatal(err)
	}
	f.rota.turn = 0
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := f.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	take := func() []*Orders {
		mu.Lock()
		defer mu.Unlock()
		out := applied
		applied = nil
		return out
	}
	end := func() {
		cancel()
		wg.Wait()
	}
	t.Cleanup(func() {
		end()
		net.wg.Wait()
	})
	return f, take, end
}

// order gives the node e1 orders at a router.
func order(s *Server, f *fakeFleet, o *Orders) {
	f.with(func() { f.orders["e1"] = NewOrdersPaper(o) })
	s.OrdersChanged([]string{"e1"})
}

func TestOrdersFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "orders")
		s, fleet := newRouter(t, "r1", clusterKey)
		n := &network{}
		n.http("r1:80", s)
		f, applied, end := obeying(t, n, file, "http://r1:80")
		pass(20 * time.Second)
		if got := applied(); len(got) != 0 || f.Token() != "" || !strings.Contains(f.Status().Error, "no_orders") {
			t.Errorf("without orders: %v, %+v", got, f.Status())
		}
		order(s, fleet, ordersOf("e1", 1, "r1"))
		pass(10 * time.Second)
		if got := applied(); len(got) != 1 || got[0].Pool[0].Node != "r1" {
			t.Fatalf("the first: %v, %+v", got, f.Status())
		}
		order(s, fleet, ordersOf("e1", 2, "r2", "r1"))
		pass(10 * time.Millisecond)
		if got := applied(); len(got) != 1 || got[0].Pool[0].Node != "r2" {
			t.Errorf("the second: %v", got)
		}
		st := f.Status()
		if st.Version.Number != 2 || st.Version.Token != f.Token() || st.Error != "" || st.From != "http://r1:80" || st.Kind != "orders" {
			t.Errorf("status %+v", st)
		}
		// The same orders of a newer plan change nothing.
		order(s, fleet, ordersOf("e1", 3, "r2", "r1"))
		pass(2 * time.Minute)
		if got := applied(); len(got) != 0 || f.Counts()["unchanged"] < 4 {
			t.Errorf("the same again: %v, %v", got, f.Counts())
		}
		// Without routers they stay, also after a start.
		n.set("r1:80", nil)
		pass(time.Hour)
		end()
		f, applied, _ = obeying(t, n, file, "http://r1:80")
		pass(time.Hour)
		if got := applied(); len(got) != 1 || got[0].Version != 2 || f.Status().Version.Number != 2 || f.Counts()["unreachable"] < 100 {
			t.Errorf("from disk: %v, %+v", got, f.Status())
		}
		order(s, fleet, ordersOf("e1", 4, "r3"))
		n.http("r1:80", s)
		pass(16 * time.Second)
		if got := applied(); len(got) != 1 || got[0].Version != 4 {
			t.Errorf("after an hour: %v, %+v", got, f.Status())
		}
	})
}

func TestOrdersFollowerBelievesNoOlderOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, fleet1 := newRouter(t, "r1", clusterKey)
		two, fleet2 := newRouter(t, "r2", clusterKey)
		n := &network{}
		n.http("r1:80", one)
		n.http("r2:80", two)
		order(one, fleet1, ordersOf("e1", 7, "r1"))
		order(two, fleet2, ordersOf("e1", 6, "r2"))
		f, applied, _ := obeying(t, n, "", "http://r1:80", "http://r2:80")
		pass(time.Second)
		n.set("r1:80", nil)
		pass(time.Minute)
		if got := applied(); len(got) != 1 || got[0].Version != 7 || f.Counts()["older"] == 0 {
			t.Errorf("applied %v, %v", got, f.Counts())
		}
		order(two, fleet2, ordersOf("e1", 8, "r3"))
		pass(16 * time.Second)
		if got := applied(); len(got) != 1 || got[0].Version != 8 {
			t.Errorf("a newer one: %v, %+v", got, f.Status())
		}
		// The router that is followed may go back: it was set back on purpose.
		order(two, fleet2, ordersOf("e1", 5, "r4"))
		pass(time.Second)
		if got := applied(); len(got) != 1 || got[0].Version != 5 {
			t.Errorf("set back: %v, %+v", got, f.Status())
		}
	})
}

func TestOrdersFollowerRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fleet := newRouter(t, "r1", clusterKey)
		n := &network{}
		n.http("r1:80", s)
		file := filepath.Join(t.TempDir(), "orders")
		if err := os.WriteFile(file, []byte("http://r1:80\nx\n{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		f, applied, _ := obeying(t, n, file, "http://r1:80")
		odd := ordersOf("e1", 1, "r1")
		odd.Pool[0].URL = "http://r1:8080/x?y"
		order(s, fleet, odd)
		pass(time.Minute)
		fleet.with(func() { fleet.orders["e1"] = NewOrdersPaper(ordersOf("e2", 1, "r1")) })
		pass(time.Minute)
		n.raw("r1:80", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nETag: \"a\"\r\n\r\n{}")
		pass(time.Minute)
		if got := applied(); len(got) != 0 || f.Counts()["faulty"] < 4 || f.Counts()["forged"] < 2 {
			t.Errorf("applied %v, %v", got, f.Counts())
		}
	})
}

// TestOrdersFollowerFile breaks the file that orders are kept in everywhere.
func TestOrdersFollowerFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "orders")
	shelf := ordersShelf{file, "e1"}
	document := mustJSON(ordersOf("e1", 1, "r1"))
	if err := shelf.save(document, "http://r1:80", "token"); err != nil {
		t.Fatal(err)
	}
	o, from, token, err := shelf.load()
	if err != nil || o.Version != 1 || from != "http://r1:80" || token != "token" {
		t.Fatalf("%+v, %s, %s, %v", o, from, token, err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		if err := os.WriteFile(file, whole[:i], 0o600); err != nil {
			t.Fatal(err)
		}
		if o, _, _, err := shelf.load(); err == nil {
			t.Fatalf("%d bytes are taken: %+v", i, o)
		}
	}
	if _, _, _, err := (ordersShelf{file, "e2"}).load(); err == nil {
		t.Error("the orders of another node are taken")
	}
}
