package pull

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"millrace/internal/flv"
	"millrace/tools/frames"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// origin serves a synthetic stream from its beginning to each who asks, as fast
// as frames are due. edit may change what viewer number n gets.
type origin struct {
	t    *testing.T
	edit func(i int, t flv.Tag) []flv.Tag
}

func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var id int
	if _, err := fmt.Sscanf(r.URL.Path, "/live/s%d.flv", &id); err != nil {
		http.NotFound(w, r)
		return
	}
	cfg := frames.DefaultConfig()
	cfg.Stream, cfg.FPS, cfg.GOP, cfg.VideoKbps, cfg.Epoch = uint32(id), 200, 50*time.Millisecond, 2000, 1
	g, err := frames.NewGenerator(cfg)
	if err != nil {
		o.t.Error(err)
		return
	}
	w.Write(flv.AppendFileHeader(nil, true, true))
	flush := http.NewResponseController(w)
	i := -len(g.Headers())
	_ = g.Play(r.Context(), func(t flv.Tag) error {
		tags := []flv.Tag{t}
		if o.edit != nil && i >= 0 {
			tags = o.edit(i, t)
		}
		i++
		for _, t := range tags {
			w.Write(t.Wire)
		}
		return flush.Flush()
	})
}

func pull(t *testing.T, edit func(int, flv.Tag) []flv.Tag, change func(*Config)) *Report {
	t.Helper()
	srv := httptest.NewServer(&origin{t, edit})
	defer srv.Close()
	cfg := DefaultConfig()
	cfg.URLs = []string{srv.URL + "/live/s0.flv"}
	cfg.Warmup, cfg.Duration = 100*time.Millisecond, 2*time.Second
	if change != nil {
		change(&cfg)
		for i := range cfg.URLs {
			cfg.URLs[i] = strings.Replace(cfg.URLs[i], "ORIGIN", srv.URL, 1)
		}
	}
	r, err := Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRunSeesAGoodStream(t *testing.T) {
	for _, http10 := range []bool{false, true} {
		r := pull(t, nil, func(c *Config) {
			c.Viewers, c.Verify, c.HTTP10, c.Workers, c.Rate, c.Sources = 10, 10, http10, 2, 1000, 3
			c.PIDs, c.Slice = []int{os.Getpid()}, 100*time.Millisecond
			c.Duration = 5 * time.Second // ten times what 1,000 frames need
		})
		if !r.OK() || r.Normal.Viewers != 10 || r.Normal.Frames < 1000 || r.Bytes < 100_000 {
			t.Errorf("http10 %v: %+v", http10, r)
		}
		if r.FirstFrame.Count != 10 || r.Normal.Delay.Count < 1000 || r.Normal.Delay.P50 <= 0 || len(r.Slices) < 3 {
			t.Errorf("http10 %v: first frame %v, delay %v, %d slices", http10, r.FirstFrame, r.Normal.Delay, len(r.Slices))
		}
		if s := r.Servers[0]; s.RSSAfter == 0 || s.PSSAfter == 0 || s.RSSBefore == 0 {
			t.Errorf("server: %+v", s)
		}
	}
}

func TestRunSeesFaults(t *testing.T) {
	f := func(fault string, edit func(int, flv.Tag) []flv.Tag) {
		t.Helper()
		r := pull(t, edit, nil)
		if r.OK() || r.Faults[fault] == 0 {
			t.Errorf("want %s, got %v, errors %v", fault, r.Faults, r.Errors)
		}
	}
	f("repeated", func(i int, tag flv.Tag) []flv.Tag {
		if i == 20 {
			return []flv.Tag{tag, tag}
		}
		return []flv.Tag{tag}
	})
	f("missing", func(i int, tag flv.Tag) []flv.Tag {
		if i == 20 {
			return nil
		}
		return []flv.Tag{tag}
	})
	var held flv.Tag
	f("reordered", func(i int, tag flv.Tag) []flv.Tag {
		switch i {
		case 20:
			held = tag
			return nil
		case 21:
			return []flv.Tag{tag, held}
		}
		return []flv.Tag{tag}
	})
}

func TestRunSpreadsNumberedStreams(t *testing.T) {
	numbered := func(order string) func(*Config) {
		return func(c *Config) {
			c.URLs, c.Numbered, c.Viewers = nil, true, 6
			for _, n := range order {
				c.URLs = append(c.URLs, "ORIGIN/live/s"+string(n)+".flv")
			}
		}
	}
	if r := pull(t, nil, numbered("012")); !r.OK() {
		t.Errorf("%v %v", r.Faults, r.Errors)
	}
	if r := pull(t, nil, numbered("021")); r.OK() || r.Faults["wrong_stream"] == 0 {
		t.Errorf("streams at each other's place: %v", r.Faults)
	}
}

func TestRunHoldsSlowAndFrozenViewersBack(t *testing.T) {
	r := pull(t, nil, func(c *Config) {
		c.Viewers, c.Slow, c.SlowRate, c.Frozen, c.Thaw = 10, .2, 50_000, .2, 150*time.Millisecond
	})
	if len(r.Faults)+len(r.Errors) > 0 || r.Slow.Viewers != 2 || r.Frozen.Viewers != 2 || r.Normal.Viewers != 6 {
		t.Fatalf("%+v", r)
	}
	each := func(g Group) uint64 { return g.Frames / uint64(g.Viewers) }
	if each(r.Slow) >= each(r.Normal)*3/4 {
		t.Errorf("slow viewers got %d frames each, normal ones %d", each(r.Slow), each(r.Normal))
	}
	if r.Recovered.Count != 2 {
		t.Errorf("%d of the frozen viewers came back to the live edge, want 2", r.Recovered.Count)
	}
}

func TestRunTellsWhatWentWrong(t *testing.T) {
	if r := pull(t, nil, func(c *Config) { c.URLs = []string{"ORIGIN/none.flv"} }); r.OK() || r.Errors["status 404"] != 1 {
		t.Errorf("missing stream: %v", r.Errors)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	if r := pull(t, nil, func(c *Config) { c.URLs = []string{"http://" + addr + "/live/s0.flv"} }); r.OK() || len(r.Errors) != 1 {
		t.Errorf("nobody there: %v", r.Errors)
	}
	stop := func(i int, tag flv.Tag) []flv.Tag {
		if i > 30 {
			panic(http.ErrAbortHandler)
		}
		return []flv.Tag{tag}
	}
	if r := pull(t, stop, nil); r.OK() || r.Normal.Closed != 1 {
		t.Errorf("closed early: %+v", r)
	}
}

func TestConfigIsValidated(t *testing.T) {
	f := func(name string, change func(*Config)) {
		t.Helper()
		cfg := DefaultConfig()
		cfg.URLs = []string{"http://127.0.0.1:1/live/a.flv"}
		change(&cfg)
		if _, err := Run(context.Background(), cfg); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	f("no url", func(c *Config) { c.URLs = nil })
	f("scheme", func(c *Config) { c.URLs = []string{"rtmp://127.0.0.1/live/a"} })
	f("no viewer", func(c *Config) { c.Viewers = 0 })
	f("no worker", func(c *Config) { c.Workers = 0 })
	f("no time", func(c *Config) { c.Duration = 0 })
	f("more than all", func(c *Config) { c.Slow, c.SlowRate, c.Frozen = .6, 1, .6 })
	f("slow without a rate", func(c *Config) { c.Slow = .5 })
	f("sources", func(c *Config) { c.Sources = 1000 })
	f("pid", func(c *Config) { c.PIDs = []int{-1} })
	f("descriptors", func(c *Config) { c.Viewers = 1 << 40 })
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	cfg := DefaultConfig()
	cfg.URLs, cfg.Duration = []string{"http://127.0.0.1:1/live/a.flv"}, time.Hour
	if _, err := Run(ctx, cfg); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestKindsAreSpread(t *testing.T) {
	cfg := Config{Slow: .1, Frozen: .1}
	for _, n := range []int{100, 1000, 5000} {
		var got [kinds]int
		for i := range n {
			got[cfg.kind(i)]++
		}
		if got[Slow] < n/10-2 || got[Slow] > n/10+2 || got[Frozen] < n/10-2 || got[Frozen] > n/10+2 {
			t.Errorf("%s viewers: %v", strconv.Itoa(n), got)
		}
	}
}
