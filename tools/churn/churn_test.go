package churn

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

func TestHoldReadsMetrics(t *testing.T) {
	heap := 5 << 20
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/debug/pprof/heap":
			heap -= 1000
		case "/metrics":
			fmt.Fprintf(w, "# HELP go_goroutines x\ngo_goroutines 17\ngo_memstats_heap_alloc_bytes %g\n", float64(heap))
		default:
			http.NotFound(w, r)
		}
	}))
	defer srv.Close()
	n := Node{PID: os.Getpid(), Admin: strings.TrimPrefix(srv.URL, "http://")}
	h, err := n.Hold(context.Background())
	if err != nil || h.Goroutines != 17 || h.Heap != 5<<20-2000 || h.Descriptors < 3 || h.RSS == 0 {
		t.Errorf("got %v, %v", h, err)
	}
	tries := 0
	least, err := n.Rest(context.Background(), 0, func(Holdings) bool { tries++; return false })
	if err != nil || least.Heap != 5<<20-4000 || tries != 0 {
		t.Errorf("got %v, %v after %d tries", least, err, tries)
	}
	n.PID = -1
	if _, err := n.Hold(context.Background()); err == nil {
		t.Error("no error for a process that is not there")
	}
}

func TestWithin(t *testing.T) {
	base := Holdings{Descriptors: 100, Goroutines: 50, Heap: 1000, RSS: 5}
	f := func(h Holdings, want bool) {
		t.Helper()
		if got := h.Within(base, .02); got != want {
			t.Errorf("%v: %v", h, got)
		}
	}
	f(base, true)
	f(Holdings{102, 51, 1020, 1 << 40}, true)
	f(Holdings{1, 1, 1, 1}, true)
	f(Holdings{103, 50, 1000, 5}, false)
	f(Holdings{100, 52, 1000, 5}, false)
	f(Holdings{100, 50, 1021, 5}, false)
}
