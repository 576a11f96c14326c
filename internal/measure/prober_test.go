package measure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/auth"
	"millrace/internal/faultnet"
)

// quick measures more often than would be good in a network, and waits for answers for as
// long as may be.
var quick = ProberConfig{
	Every: 100 * time.Millisecond, Packets: 10, Gap: 2 * time.Millisecond, Wait: 10 * time.Second,
	Budget: 10_000, ConnectEvery: time.Minute,
}

// probing starts a prober with targets.
func probing(t *testing.T, cfg ProberConfig, c *auth.Cluster, targets ...Target) *Prober {
	t.Helper()
	p, err := NewProber(cfg, ProberOptions{Self: "edge-1", Cluster: c})
	if err != nil {
		t.Fatal(err)
	}
	p.SetTargets(targets)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return p
}

// results waits for so many results.
func (p *Prober) wait(t *testing.T, n int) (all []Result) {
	t.Helper()
	for end := time.Now().Add(time.Minute); len(all) < n; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d results in a minute, %d are wanted: %+v", len(all), n, all)
		}
		all = append(all, p.Results()...)
	}
	return all
}

func TestProbes(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(addr, func(t *testing.T) {
			c := cluster(t, keyA)
			_, at := respond(t, "relay-1", addr, c)
			p := probing(t, quick, c, Target{Node: "relay-1", Probe: at.String()})
			for _, r := range p.wait(t, 3) {
				if r.Node != "relay-1" || r.Sent != 10 || r.RTT <= 0 || r.Least > r.RTT || r.At.IsZero() || r.Refused {
					t.Errorf("%+v", r)
				}
			}
			if st := p.Stats(); st.Sent < 30 || len(st.Targets) != 1 || st.Targets[0].Mute || st.Targets[0].Last.RTT <= 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// A way that is slow and loses packets shows as that.
func TestProbesOfABadWay(t *testing.T) {
	c := cluster(t, keyA)
	_, at := respond(t, "relay-1", "127.0.0.1:0", c)
	bad := faultnet.Fault{Delay: 20 * time.Millisecond, Loss: 0.2}
	link, err := faultnet.ListenUDP("127.0.0.1:0", at.String(), faultnet.Config{Seed: 1, Up: bad, Down: bad})
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	brief := quick
	brief.Wait = 300 * time.Millisecond
	p := probing(t, brief, c, Target{Node: "relay-1", Probe: link.Addr()})
	sent, lost := 0, 0
	for _, r := range p.wait(t, 15) {
		if r.Least > 0 && r.Least < 40*time.Millisecond {
			t.Errorf("a round trip of %v over a way of 40 ms", r.Least)
		}
		sent, lost = sent+r.Sent, lost+r.Lost
	}
	if share := float64(lost) / float64(sent); share < 0.2 || share > 0.9 { // 0.36 are lost there or back, and some come late
		t.Errorf("%.2f of %d are lost", share, sent)
	}
}

// A node that is another one, or has another key, counts as lost.
func TestProbesOfSomebodyElse(t *testing.T) {
	c := cluster(t, keyA)
	r, at := respond(t, "relay-2", "127.0.0.1:0", c)
	p := probing(t, quick, c, Target{Node: "relay-1", Probe: at.String()})
	for end := time.Now().Add(time.Minute); r.Stats().Refused[BadSignature] < 10 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	if st := r.Stats(); st.Refused[BadSignature] < 10 || st.Answered != 0 {
		t.Errorf("%+v", st)
	}
	if got := p.Results(); len(got) != 0 {
		t.Errorf("who never answered is told of: %+v", got)
	}
}

// Where UDP is shut, TCP is measured instead.
func TestProbesWithTCP(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	shut, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}) // answers nothing
	if err != nil {
		t.Fatal(err)
	}
	defer shut.Close()
	fast := quick
	fast.Wait = time.Second
	p := probing(t, fast, cluster(t), Target{Node: "relay-1", Probe: shut.LocalAddr().String(), URL: "http://" + ln.Addr().String()})
	for _, r := range p.wait(t, 3) {
		if r.Sent != 0 || r.Lost != 0 || r.Connect <= 0 || r.Refused || r.RTT != 0 {
			t.Errorf("%+v", r)
		}
	}
	if st := p.Stats(); !st.Targets[0].Mute {
		t.Errorf("%+v", st)
	}
	_ = ln.Close()
	p.SetTargets([]Target{{Node: "relay-2", URL: "http://" + ln.Addr().String()}})
	for _, r := range p.wait(t, 2) {
		if r.Node == "relay-2" && !r.Refused {
			t.Errorf("a dead port: %+v", r)
		}
	}
}

func TestJudge(t *testing.T) {
	lost := Result{Sent: 10, Lost: 10}
	with := func(r Result, connect time.Duration, refused bool) Result {
		r.Connect, r.Refused = connect, refused
		return r
	}
	for _, c := range []struct {
		name string
		t    target
		r    Result
		sent int // that count
		mute int
	}{
		{"some lost", target{mute: 2}, Result{Sent: 10, Lost: 9}, 10, 0},
		{"never answered, TCP works", target{}, with(lost, 1, false), 0, 1},
		{"never answered, no TCP", target{}, lost, 0, 1},
		{"never answered, TCP refused", target{}, with(lost, 0, true), 10, 1},
		{"answered before, TCP works", target{answered: true}, with(lost, 1, false), 10, 1},
		{"for the third time", target{answered: true, mute: 2}, with(lost, 1, false), 0, 3},
		{"answered before, no TCP", target{answered: true, mute: 9}, lost, 10, 10},
		{"no probes at all", target{}, Result{Connect: 1}, 0, 0},
	} {
		c.t.judge(&c.r)
		if c.r.Sent != c.sent || c.t.mute != c.mute {
			t.Errorf("%s: %d count, mute %d, want %d and %d", c.name, c.r.Sent, c.t.mute, c.sent, c.mute)
		}
	}
}

func TestTripsResult(t *testing.T) {
	tr := trips{sent: 5, came: 3}
	tr.took[0], tr.took[2], tr.took[4] = 10*time.Millisecond, 30*time.Millisecond, 20*time.Millisecond
	want := Result{RTT: 20 * time.Millisecond, Least: 10 * time.Millisecond, Jitter: 15 * time.Millisecond, Sent: 5, Lost: 2}
	if got := tr.result(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := new(trips{sent: 3}).result(); got != (Result{Sent: 3, Lost: 3}) {
		t.Errorf("%+v", got)
	}
}

// However many targets there are, the budget holds, and all have their turn.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		asked := map[string]int{}
		cfg := DefaultProberConfig()
		p, err := NewProber(cfg, ProberOptions{
			Self: "edge-1", Cluster: cluster(t),
			Dial: func(_ context.Context, _, addr string) (net.Conn, error) {
				mu.Lock()
				defer mu.Unlock()
				asked[addr]++
				return nil, errors.New("nobody is there")
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		var targets []Target
		for i := range 100 { // without a place for probes: a connection each time
			targets = append(targets, Target{Node: fmt.Sprint("n", i), URL: fmt.Sprintf("http://192.0.2.1:%d", 1000+i)})
		}
		targets = append(targets, targets[0], Target{Node: "edge-1", URL: "http://192.0.2.1:1"}) // twice, and itself
		p.SetTargets(targets)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = p.Run(ctx) })
		time.Sleep(time.Minute)
		synctest.Wait()
		cancel()
		running.Wait()
		sum, least := 0, 1000
		for i := range 100 {
			n := asked[targets[i].URL[len("http://"):]]
			sum, least = sum+n, min(least, n)
		}
		most := cfg.Budget/cfg.Packets*60 + 1
		if sum > most || sum < most*9/10 || least < 2 || asked["192.0.2.1:1"] != 0 {
			t.Errorf("%d of %d in a minute, each at least %d times", sum, most, least)
		}
		if n := len(p.Results()); n != sum {
			t.Errorf("%d results of %d", n, sum)
		}
	})
}

// What is known of a target that stays is kept; one that has moved begins anew.
func TestSetTargets(t *testing.T) {
	p, err := NewProber(DefaultProberConfig(), ProberOptions{Self: "edge-1", Cluster: cluster(t)})
	if err != nil {
		t.Fatal(err)
	}
	a, b := Target{Node: "a", Probe: "192.0.2.1:1"}, Target{Node: "b", Probe: "192.0.2.2:1"}
	p.SetTargets([]Target{a, b})
	p.targets[0].answered, p.targets[1].answered = true, true
	b.Probe = "192.0.2.3:1"
	p.SetTargets([]Target{b, a})
	if p.targets[0].answered || !p.targets[1].answered {
		t.Errorf("%+v %+v", p.targets[0], p.targets[1])
	}
	p.SetTargets(nil)
	if st := p.Stats(); len(st.Targets) != 0 {
		t.Errorf("%+v", st)
	}
}

func TestProberConfig(t *testing.T) {
	for name, change := range map[string]func(*ProberConfig){
		"every": func(c *ProberConfig) { c.Every = 0 }, "gap": func(c *ProberConfig) { c.Gap = 0 },
		"wait": func(c *ProberConfig) { c.Wait = time.Minute }, "packets": func(c *ProberConfig) { c.Packets = maxPackets + 1 },
		"budget": func(c *ProberConfig) { c.Budget = 0 }, "connect_every": func(c *ProberConfig) { c.ConnectEvery = 0 },
	} {
		cfg := DefaultProberConfig()
		change(&cfg)
		if _, err := NewProber(cfg, ProberOptions{Self: "a"}); err == nil {
			t.Errorf("a bad %s is taken", name)
		}
	}
	if _, err := NewProber(DefaultProberConfig(), ProberOptions{Self: ""}); err == nil {
		t.Error("a bad id is taken")
	}
}

func TestConnectAt(t *testing.T) {
	var at string
	p := &Prober{opt: ProberOptions{Dial: func(_ context.Context, _, addr string) (net.Conn, error) {
		at = addr
		return nil, errors.New("no")
	}}}
	for url, want := range map[string]string{
		"http://a:8080/x": "a:8080", "http://a": "a:80", "https://a": "a:443", "rtmp://[::1]": "[::1]:1935", "": "", "http://": "", "%": "",
	} {
		at = ""
		took, refused := p.connect(t.Context(), url)
		if at != want || took != 0 || refused != (want != "") {
			t.Errorf("%q: dialled %q, want %q", url, at, want)
		}
	}
}
