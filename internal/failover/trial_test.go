package failover

import (
	"testing"
	"time"

	"millrace/internal/flv"
)

// TestTrialLead: a candidate knows how far it is ahead of what is forwarded, on any
// clock, and over a long trial it keeps no more than it needs.
func TestTrialLead(t *testing.T) {
	src := content{ms: 60_000, fps: 25, audio: 43.07, gop: 50}.make()
	for _, c := range []struct {
		name string
		u    upstream
		same bool
		lead int64 // of the candidate, in ms
	}{
		{"same clock, ahead", upstream{}, true, 800},
		{"same clock, behind", upstream{}, true, -1200},
		{"another clock, ahead", upstream{shift: 1 << 40}, false, 800},
		{"another clock, behind", upstream{shift: -5}, false, -1200},
		{"same clock after a wrap", upstream{shift: 1 << 32}, true, 800},
		{"what was said is not true", upstream{shift: 1234}, true, 800},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := DefaultConfig()
			s, v := NewSplicer(), &viewer{s: src}
			current := src.from(upstream{}, 0)
			n := until(current, upstream{}, 10_000)
			out, _ := play(s, epoch, current[:n], n)
			check(t, v.see(out))

			now := at(10_000)
			trial := NewTrial(&cfg, now)
			if _, ok := trial.Lead(s.Window(), c.same); ok {
				t.Fatal("aligned with nothing")
			}
			candidate := src.from(c.u, 7000)
			m := 0
			for ms := int64(10_000); ms < 40_000; ms += 100 {
				for ; n < until(current, upstream{}, ms); n++ {
					check(t, v.see(s.Take(at(int(ms)), current[n], nil)))
				}
				for ; m < until(candidate, c.u, ms+c.lead); m++ {
					if !trial.Take(at(int(ms)), candidate[m]) {
						t.Fatalf("over the bound at %d ms", ms)
					}
				}
				lead, ok := trial.Lead(s.Window(), c.same)
				if d := lead - time.Duration(c.lead)*time.Millisecond; !ok || d < -60*time.Millisecond || d > 60*time.Millisecond {
					t.Fatalf("at %d ms: lead %v %v, want %d ms", ms, lead, ok, c.lead)
				}
			}
			if keep := trial.newest - trial.marks[0].dts; keep > cfg.TrialMedia.Milliseconds()/2+500 {
				t.Errorf("keeps %d ms", keep)
			}
			headers := 0
			for _, tag := range trial.Backlog() {
				if !unit(tag) {
					headers++
				}
			}
			if headers != 3 {
				t.Errorf("keeps %d headers and metadata, want 3", headers)
			}
			check(t, v.see(s.JoinTrial(at(40_000), trial, c.same, nil)))
			for ; m < len(candidate); m++ {
				check(t, v.see(s.Take(at(40_000), candidate[m], nil)))
			}
			r, ok := s.Report()
			if !ok || r.Kind != Overlap || v.missing != 0 || r.Missing != 0 || !r.Settled || v.newest < 59_000 {
				t.Errorf("%+v %v, %d missing, up to %d", r, ok, v.missing, v.newest)
			}
		})
	}
}

// TestTrialBound: what cannot be aligned is given up before it takes too much.
func TestTrialBound(t *testing.T) {
	cfg := DefaultConfig()
	cfg.TrialBytes = 1 << 20
	trial := NewTrial(&cfg, epoch)
	payload := make([]byte, 10_000)
	payload[0], payload[1] = 0x27, 1
	n := 0
	for trial.Take(epoch, flv.New(flv.Video, int64(n), payload)) {
		n++
	}
	if n != 104 {
		t.Errorf("took %d tags of 10 KB, want 104", n)
	}
	cfg = DefaultConfig()
	trial = NewTrial(&cfg, epoch)
	n = 0
	for trial.Take(epoch, flv.New(flv.Video, int64(n)*1000, payload)) {
		n++
	}
	if n != 21 {
		t.Errorf("took %d s, want 20", n-1)
	}
}

// TestTrialUnaligned: other frames have no place among those forwarded.
func TestTrialUnaligned(t *testing.T) {
	cfg := DefaultConfig()
	s, trial := NewSplicer(), NewTrial(&cfg, epoch)
	a := content{ms: 10_000, fps: 25, gop: 50}.make().from(upstream{}, 0)
	for i, tag := range a {
		s.Take(at(i*40), tag, nil)
		if tag.Is(flv.Frame) {
			tag = flv.New(flv.Video, tag.DTS, append(tag.Payload()[:5:5], byte(i), byte(i>>8), 'b'))
		}
		trial.Take(at(i*40), tag)
		if lead, ok := trial.Lead(s.Window(), i%2 == 0); ok && i > 5 {
			t.Fatalf("tag %d: aligned with lead %v", i, lead)
		}
	}
}
