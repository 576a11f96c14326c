package quality

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	f := func(text string, want Reason, says string) {
		t.Helper()
		_, err := Parse([]byte(text))
		if want == Accepted {
			if err != nil {
				t.Errorf("%.60s: %v", text, err)
			}
			return
		}
		r, ok := errors.AsType[*Refused](err)
		if !ok || r.Reason != want || !strings.Contains(r.Text, says) {
			t.Errorf("%.60s: %v, want %v that says %q", text, err, want, says)
		}
	}
	f(`{"stream": "live/a"}`, Accepted, "")
	f(`{"stream": "live/a", "session": "x_Y-9", "tomorrow": [1]}`, Accepted, "")
	f(`{"stream": "live/a", "first_frame_ms": 120000, "stalls": 1000, "stalled_ms": 900000, "played_ms": 900000, "delay_ms": 600000}`, Accepted, "")
	f(``, Malformed, "send JSON such as")
	f(`[]`, Malformed, "send JSON such as")
	f(`{"stream": "live/a", "played_ms": "long"}`, Malformed, "send JSON")
	f(`{"stream": "live/a", "played_ms": 1e999}`, Malformed, "send JSON")
	f(`{"stream": "live/a", "played_ms": NaN}`, Malformed, "send JSON")
	f(`{}`, Malformed, "stream: ")
	f(`{"stream": "alone"}`, Malformed, "stream: ")
	f(`{"stream": "live/a", "session": "a b"}`, Malformed, "session: use up to 64")
	f(`{"stream": "live/a", "session": "`+strings.Repeat("a", 65)+`"}`, Malformed, "session: ")
	f(`{"stream": "live/a", "stalls": -1}`, Absurd, "stalls is -1")
	f(`{"stream": "live/a", "stalls": 1.5}`, Absurd, "stalls is 1.5")
	f(`{"stream": "live/a", "stalls": 1001}`, Absurd, "stalls is 1001")
	f(`{"stream": "live/a", "played_ms": -0.1}`, Absurd, "played_ms is -0.1")
	f(`{"stream": "live/a", "played_ms": 900001}`, Absurd, "played_ms is 900001")
	f(`{"stream": "live/a", "stalled_ms": 1e12}`, Absurd, "stalled_ms is 1e+12")
	f(`{"stream": "live/a", "first_frame_ms": 120001}`, Absurd, "first_frame_ms is 120001")
	f(`{"stream": "live/a", "delay_ms": -1}`, Absurd, "delay_ms is -1")
	f(`{"stream": "live/a", "x": "`+strings.Repeat("a", MaxReport)+`"}`, TooBig, "at most 4096 are read")
}

// TestAllowance: an address has its share, its neighbours have theirs, and the next
// window is new.
func TestAllowance(t *testing.T) {
	var a allowances
	f := func(after time.Duration, addr string, n, want int) {
		t.Helper()
		got := 0
		for range n {
			if a.take(now.Add(after), netip.MustParseAddr(addr)) {
				got++
			}
		}
		if got != want {
			t.Errorf("%s after %v: %d of %d, want %d", addr, after, got, n, want)
		}
	}
	f(0, "192.0.2.1", perAddress+5, perAddress)
	f(0, "::ffff:192.0.2.1", 1, 0)
	f(0, "192.0.2.2", 1, 1)
	f(0, "2001:db8::1", perAddress, perAddress)
	f(0, "2001:db8::2", 1, 0) // of the same home
	f(0, "2001:db8:0:1::1", 1, 1)
	f(window-1, "192.0.2.1", 1, 0)
	f(window, "192.0.2.1", perAddress+1, perAddress)
	for i := range maxAddresses + 10 {
		a.take(now.Add(window), netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}))
	}
	if len(a.used) != maxAddresses {
		t.Errorf("%d addresses are remembered, want %d", len(a.used), maxAddresses)
	}
	f(window, "198.51.100.1", 1, 0)
	f(window, "192.0.2.1", 1, 0)
	f(2*window, "198.51.100.1", 1, 1)
	if len(a.used) != 1 {
		t.Errorf("%d addresses are remembered in a new window", len(a.used))
	}
}

// FuzzParse: whatever comes, a report that is taken has no figure out of bounds.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"stream": "live/a", "first_frame_ms": 300, "stalls": 2, "stalled_ms": 1500.5, "played_ms": 8500, "delay_ms": 900, "session": "a"}`))
	f.Add([]byte(`{"stream": "live/a", "stalls": 1e308, "delay_ms": -0}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Parse(b)
		if err != nil {
			if _, ok := errors.AsType[*Refused](err); !ok || reasonOf(err) == Accepted {
				t.Errorf("%T %v", err, err)
			}
			return
		}
		in := func(d, most time.Duration) bool { return d >= 0 && d <= most }
		if !in(r.FirstFrame, maxFirst) || !in(r.Stalled, maxSpan) || !in(r.Played, maxSpan) || !in(r.Delay, maxDelay) ||
			r.Stalls < 0 || r.Stalls > maxStalls || r.Stream == "" || len(r.Session) > maxSession || len(b) > MaxReport || !json.Valid(b) {
			t.Errorf("taken: %+v of %q", r, b)
		}
	})
}
