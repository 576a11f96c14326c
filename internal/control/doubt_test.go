package control

import (
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"millrace/internal/plan"
	"millrace/internal/stream"
)

func TestHeartbeatValidate(t *testing.T) {
	long := strings.Repeat("x", 70)
	for _, c := range []struct {
		name   string
		spoil  func(*Heartbeat)
		want   Refusal
		saying string
	}{
		{"good", func(*Heartbeat) {}, NotRefused, ""},
		{"without identity", func(h *Heartbeat) { h.Identity = nil }, NotRefused, ""},
		{"bare identity", func(h *Heartbeat) {
			h.Identity = &Identity{ID: "e1", Role: "center", URL: "https://[2001:db8::1]:8081"}
		}, NotRefused, ""},
		{"no node", func(h *Heartbeat) { h.Node = "" }, Absurd, "node is"},
		{"odd node", func(h *Heartbeat) { h.Node = "e 1" }, Absurd, "node is"},
		{"no boot", func(h *Heartbeat) { h.Boot = "" }, Absurd, "boot is"},
		{"odd boot", func(h *Heartbeat) { h.Boot = strings.Repeat("Ä", 13) }, Absurd, "boot is"},
		{"no sequence", func(h *Heartbeat) { h.Sequence = 0 }, Absurd, "sequence"},
		{"fast clock", func(h *Heartbeat) { h.At = h.At.Add(time.Hour) }, ClockSkew, "NTP"},
		{"slow clock", func(h *Heartbeat) { h.At = h.At.Add(-time.Hour) }, ClockSkew, "NTP"},
		{"started later", func(h *Heartbeat) { h.Started = h.At.Add(time.Second) }, Absurd, "started"},
		{"never started", func(h *Heartbeat) { h.Started = time.Time{} }, Absurd, "started"},
		{"based on itself", func(h *Heartbeat) { h.Streams.Based = h.Sequence }, Absurd, "based"},
		{"gone from nothing", func(h *Heartbeat) { h.Streams.Based = 0 }, Absurd, "gone"},
		{"orders", func(h *Heartbeat) { h.Orders = strings.Repeat("x", 200) }, Absurd, "token"},
		{"load below 0", func(h *Heartbeat) { h.Load = -1 }, Absurd, "load"},
		{"load of the world", func(h *Heartbeat) { h.Load = math.MaxInt64 }, Absurd, "load"},
		{"pulled below 0", func(h *Heartbeat) { h.Pulled = -1 }, Absurd, "pulled"},
		{"viewers below 0", func(h *Heartbeat) { h.Viewers = -1 }, Absurd, "viewers"},
		{"too many streams", func(h *Heartbeat) { h.Streams.Set = make([]Carried, MaxCarried+1) }, TooBig, "streams"},
		{"too many gone", func(h *Heartbeat) { h.Streams.Gone = make([]stream.Name, MaxCarried+1) }, TooBig, "gone"},
		{"too many samples", func(h *Heartbeat) { h.Samples = make([]plan.Sample, plan.MaxSamples+1) }, TooBig, "samples"},
		{"too many players", func(h *Heartbeat) { h.Players = make([]Players, MaxPlayers+1) }, TooBig, "players"},
		{"too many rechecks", func(h *Heartbeat) { h.Rechecks = make([]Rechecked, maxRechecked+1) }, TooBig, "rechecks"},
		{"too many events", func(h *Heartbeat) { h.Events = make([]Event, MaxEvents+1) }, TooBig, "events"},
		{"another identity", func(h *Heartbeat) { h.Identity.ID = "e2" }, NotYours, "identity"},
		{"odd role", func(h *Heartbeat) { h.Identity.Role = "king" }, Absurd, "role"},
		{"odd region", func(h *Heartbeat) { h.Identity.Region = "b j" }, Absurd, "region"},
		{"odd address", func(h *Heartbeat) { h.Identity.Addresses = []netip.Addr{netip.IPv4Unspecified()} }, Absurd, "addresses"},
		{"odd host", func(h *Heartbeat) { h.Identity.Host = "-x-" }, Absurd, "host"},
		{"weight below 0", func(h *Heartbeat) { h.Identity.Weight = -1 }, Absurd, "weight"},
		{"weight NaN", func(h *Heartbeat) { h.Identity.Weight = math.NaN() }, Absurd, "weight"},
		{"price NaN", func(h *Heartbeat) { h.Identity.Price = math.NaN() }, Absurd, "price"},
		{"capacity below 0", func(h *Heartbeat) { h.Identity.Capacity = -5 }, Absurd, "capacity"},
		{"odd domain", func(h *Heartbeat) { h.Identity.Domain = "a b" }, Absurd, "domain"},
		{"long program", func(h *Heartbeat) { h.Identity.Program = strings.Repeat("x", 300) }, Absurd, "program"},
		{"no URL", func(h *Heartbeat) { h.Identity.URL = "" }, Absurd, "url is missing"},
		{"a URL of files", func(h *Heartbeat) { h.Identity.URL = "file:///etc/passwd" }, Absurd, "url"},
		{"a URL with a user", func(h *Heartbeat) { h.Identity.URL = "http://u:p@h:80" }, Absurd, "url"},
		{"a URL with a path", func(h *Heartbeat) { h.Identity.URL = "http://h:80/x" }, Absurd, "url"},
		{"push over http", func(h *Heartbeat) { h.Identity.Push = "http://h:80" }, Absurd, "push"},
		{"push with a path", func(h *Heartbeat) { h.Identity.Push = "rtmp://h:80/live" }, Absurd, "push"},
		{"push to an odd port", func(h *Heartbeat) { h.Identity.Push = "rtmp://h:99999" }, Absurd, "push"},
		{"probe without a port", func(h *Heartbeat) { h.Identity.Probe = "h" }, Absurd, "probe"},
		{"probe of port 0", func(h *Heartbeat) { h.Identity.Probe = "h:0" }, Absurd, "probe"},
		{"odd stream", func(h *Heartbeat) { h.Streams.Set[0].Name = "live" }, Absurd, "not the name"},
		{"stream with a slash", func(h *Heartbeat) { h.Streams.Set[0].Name = "/live/x" }, Absurd, "not the name"},
		{"stream of bytes", func(h *Heartbeat) { h.Streams.Set[0].Name = "live/\xff" }, Absurd, "not the name"},
		{"odd stream gone", func(h *Heartbeat) { h.Streams.Gone[0] = "live//x" }, Absurd, "not the name"},
		{"from nobody", func(h *Heartbeat) { h.Streams.Set[0].From = "a b" }, Absurd, "not the id"},
		{"epoch", func(h *Heartbeat) { h.Streams.Set[0].Epoch = math.MaxInt64 }, Absurd, "epoch"},
		{"bitrate", func(h *Heartbeat) { h.Streams.Set[0].Bitrate = -1 }, Absurd, "bytes/s"},
		{"viewers of a stream", func(h *Heartbeat) { h.Streams.Set[0].Viewers = -1 }, Absurd, "viewers"},
		{"delay below 0", func(h *Heartbeat) { h.Streams.Set[0].Delay = -1 }, Absurd, "delay"},
		{"delay NaN", func(h *Heartbeat) { h.Streams.Set[0].Delay = math.NaN() }, Absurd, "delay"},
		{"players of a long region", func(h *Heartbeat) { h.Players[0].Region = long }, Absurd, "players"},
		{"players below 0", func(h *Heartbeat) { h.Players[0].Stalls = -1 }, Absurd, "players"},
		{"players NaN", func(h *Heartbeat) { h.Players[0].Delay = math.NaN() }, Absurd, "players"},
		{"more first frames than reports", func(h *Heartbeat) { h.Players[0].FirstFrames = 9 }, Absurd, "first frames"},
		{"odd close", func(h *Heartbeat) { h.Players[0].Closes = map[string]int{"a b": 1} }, Absurd, "closes"},
		{"closes below 0", func(h *Heartbeat) { h.Players[0].Closes = map[string]int{"gone": -1} }, Absurd, "closes"},
		{"many closes", func(h *Heartbeat) {
			h.Players[0].Closes = map[string]int{}
			for i := range 100 {
				h.Players[0].Closes[fmt.Sprint("r", i)] = 1
			}
		}, TooBig, "closes"},
		{"odd recheck", func(h *Heartbeat) { h.Rechecks[0].Way = "" }, Absurd, "rechecks"},
		{"event number", func(h *Heartbeat) { h.Events = append(h.Events, h.Events[0]) }, Absurd, "numbers rise"},
		{"event to come", func(h *Heartbeat) { h.Events[0].At = h.At.Add(time.Hour) }, Absurd, "to come"},
		{"event of no kind", func(h *Heartbeat) { h.Events[0].Kind = "<b>" }, Absurd, "no words"},
		{"event of an odd stream", func(h *Heartbeat) { h.Events[0].Stream = "x" }, Absurd, "not the name"},
		{"long event", func(h *Heartbeat) { h.Events[0].Detail = strings.Repeat("x", 2000) }, TooBig, "text"},
		{"event of bytes", func(h *Heartbeat) { h.Events[0].Detail = "\xff" }, Absurd, "no text"},
		{"deep event", func(h *Heartbeat) { h.Events[0].Figures["x"] = []any{1} }, Absurd, "figure"},
		{"many figures", func(h *Heartbeat) {
			for i := range 100 {
				h.Events[0].Figures[fmt.Sprint("f", i)] = 1.0
			}
		}, TooBig, "figures"},
	} {
		h := goodHeartbeat(noon)
		c.spoil(h)
		err := h.Validate(noon)
		if got := RefusalOf(err); got != c.want || err != nil && !strings.Contains(err.Error(), c.saying) {
			t.Errorf("%s: %v, %v, want %v", c.name, got, err, c.want)
		}
		if err != nil && len(err.Error()) > 600 {
			t.Errorf("%s: the sentence has %d bytes", c.name, len(err.Error()))
		}
	}
}

func TestValidName(t *testing.T) {
	for _, n := range []stream.Name{
		"live/a", "a/b/c", "live/ä", "live/a b", "A/B-c_d", "watch/a", "watcher/a", "live/", "/live", "live", "", "/", "a//b", "live/..", "live/a.b", "live/ a",
		stream.Name("live/" + strings.Repeat("x", 250)), stream.Name("live/" + strings.Repeat("x", 251)),
	} {
		got, err := stream.ParsePath(string(n))
		if want := err == nil && got == n; validName(n) != want {
			t.Errorf("%q: %v", n, !want)
		}
	}
}
