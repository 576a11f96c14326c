package failover

import (
	"encoding"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	f := func(change func(*Config), want string) {
		t.Helper()
		c := DefaultConfig()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	f(func(c *Config) { c.Late = 0 }, "late must be between 50ms and 10s, is 0s")
	f(func(c *Config) { c.LinkSilence = 200 * time.Millisecond }, "link_silence")
	f(func(c *Config) { c.TrialTime = c.Judge - 1 }, "trial_time")
	f(func(c *Config) { c.MaxHoldOff = time.Second }, "max_hold_off")
	f(func(c *Config) { c.TrialBytes = 1 }, "trial_bytes")
	f(func(c *Config) { c.Lead, c.Calm = -1, 0 }, "calm")
}

// TestWords: each enumerated value has a word of its own, and values beyond them none.
func TestWords(t *testing.T) {
	type word interface {
		fmt.Stringer
		encoding.TextMarshaler
	}
	f := func(n int, of func(uint8) word) {
		t.Helper()
		seen := map[string]bool{}
		for i := range n {
			w := of(uint8(i))
			text, err := w.MarshalText()
			if s := w.String(); s == "" || s == "unknown" || seen[s] || err != nil || string(text) != s {
				t.Errorf("%T(%d) is %q, as text %q %v", w, i, s, text, err)
			}
			seen[w.String()] = true
		}
		if s := of(uint8(n)).String(); s != "unknown" {
			t.Errorf("%d of %d is %q", n, n, s)
		}
	}
	f(int(verdicts), func(i uint8) word { return Verdict(i) })
	f(int(kinds), func(i uint8) word { return Kind(i) })
	f(int(actions), func(i uint8) word { return Action(i) })
	f(int(reasons), func(i uint8) word { return Reason(i) })
	f(int(failures), func(i uint8) word { return Failure(i) })
	f(int(trialStates), func(i uint8) word { return TrialState(i) })
	if got := Reasons(); len(got) != int(reasons) || got[UpstreamSlow] != UpstreamSlow {
		t.Errorf("reasons: %v", got)
	}
}
