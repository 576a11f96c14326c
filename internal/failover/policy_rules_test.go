package failover

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"millrace/internal/session"
)

// flowing is a healthy trial.
func flowing(id int, change func(*TrialView)) TrialView {
	t := TrialView{
		ID: id, State: Flowing, Verdict: Good, Age: 700 * time.Millisecond,
		Figures: Figures{Recent: 1, Short: 1, Long: 1, FPS: 25, Steady: 25, Flowing: 600 * time.Millisecond},
		Lead:    500 * time.Millisecond, Aligned: true,
	}
	if change != nil {
		change(&t)
	}
	return t
}

func current(v Verdict, change func(*CurrentView)) CurrentView {
	c := CurrentView{Present: true, Verdict: v, Figures: Figures{Recent: 0.6, Short: 0.6, Long: 0.8, FPS: 25, Steady: 25}, Epoch: 5}
	if change != nil {
		change(&c)
	}
	return c
}

// TestRules shows one view for a while, as if what is decided took no effect, and
// looks at the first decision.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		name   string
		view   View
		ms     int // for which the view is shown
		action Action
		id     int
		reason Reason
	}{
		{"nothing to do", View{Current: current(Good, nil), Left: 3}, 60_000, None, 0, NoReason},
		{"the first upstream", View{Left: 1}, 0, Try, 0, NoUpstream},
		{"the first frame of the first", View{Trials: []TrialView{flowing(1, func(t *TrialView) { t.Figures, t.Aligned = Figures{}, false })}}, 0, Switch, 1, NoUpstream},
		{"lost", View{Current: CurrentView{Lost: session.UpstreamLost}, Left: 1}, 0, Try, 0, UpstreamLost},
		{"nobody left", View{Current: CurrentView{Lost: session.UpstreamLost}}, 10_000, None, 0, NoReason},
		{"the last upstream stays, however bad", View{Current: current(Silent, nil)}, 60_000, None, 0, NoReason},
		{"lost, and a candidate is there", View{Current: CurrentView{Lost: session.UpstreamLost}, Trials: []TrialView{flowing(3, nil)}}, 0, Switch, 3, UpstreamLost},
		{
			"lost, and the newer of two", View{Current: CurrentView{Lost: session.UpstreamLost}, Trials: []TrialView{
				flowing(3, func(t *TrialView) { t.Lead = 900 * time.Millisecond }),
				flowing(4, func(t *TrialView) { t.Lead = time.Second }),
			}}, 0, Switch, 4, UpstreamLost,
		},
		{
			"no answer while another could be asked", View{Left: 1, Trials: []TrialView{
				flowing(1, func(t *TrialView) { t.State, t.Age = Dialing, 1100*time.Millisecond }),
				flowing(2, func(t *TrialView) { t.State, t.Age = Dialing, 800*time.Millisecond }),
			}}, 0, GiveUp, 1, NoMedia,
		},
		{"silent", View{Current: current(Silent, nil), Left: 1}, 0, Try, 0, UpstreamSilent},
		{"slow", View{Current: current(Slow, nil), Left: 1}, 0, Try, 0, UpstreamSlow},
		{"thin", View{Current: current(Thin, nil), Left: 1}, 0, Try, 0, UpstreamThin},
		{"idle for a moment", View{Current: current(SourceIdle, nil), Left: 1}, 2000, None, 0, NoReason},
		{"idle for long", View{Current: current(SourceIdle, nil), Left: 1}, 2600, Try, 0, UpstreamIdle},
		{"in grace", View{Current: current(SourceIdle, func(c *CurrentView) { c.Grace = true }), Left: 1}, 0, Try, 0, UpstreamGrace},
		{"a better place", View{Current: current(Good, nil), Left: 1, Prefer: true}, 0, Try, 0, Preferred},
		{"a better place by the plan", View{Current: current(Good, nil), Left: 1, Prefer: true, Planned: true}, 0, Try, 0, Planned},
		{"silent, and the other goes on", View{Current: current(Silent, nil), Trials: []TrialView{flowing(1, nil)}}, 300, Switch, 1, UpstreamSilent},
		{"silent, and so is the other", View{Current: current(Silent, nil), Trials: []TrialView{flowing(1, func(t *TrialView) { t.Lead = 0 })}}, 5000, None, 0, NoReason},
		{"slow, and the other leads", View{Current: current(Slow, nil), Trials: []TrialView{flowing(1, nil)}}, 300, Switch, 1, UpstreamSlow},
		{"slow, and the other leads a little", View{Current: current(Slow, nil), Trials: []TrialView{flowing(1, func(t *TrialView) { t.Lead = 200 * time.Millisecond })}}, 5000, None, 0, NoReason},
		{"slow, and the other leads but falls behind", View{Current: current(Slow, nil), Trials: []TrialView{flowing(1, func(t *TrialView) { t.Figures.Recent = 0.65 })}}, 5000, None, 0, NoReason},
		{"slow, and the other is new", View{Current: current(Slow, nil), Trials: []TrialView{flowing(1, func(t *TrialView) { t.Figures.Flowing = 200 * time.Millisecond })}}, 5000, None, 0, NoReason},
		{
			"slow, and the other cannot be compared but is well", View{Current: current(Slow, nil), Trials: []TrialView{flowing(1, func(t *TrialView) {
				t.Aligned, t.Figures.Flowing = false, 2*time.Second
			})}}, 300, Switch, 1, UpstreamSlow,
		},
		{"slow for long, and no better", View{Current: current(Slow, nil), Trials: []TrialView{flowing(1, func(t *TrialView) { t.Lead, t.Age = 0, 3*time.Second })}}, 0, GiveUp, 1, NotBetter},
		{"slow for long, and no answer", View{Current: current(Slow, nil), Trials: []TrialView{flowing(1, func(t *TrialView) { t.State, t.Age = Waiting, 3*time.Second })}}, 0, GiveUp, 1, NoMedia},
		{"well again", View{Current: current(Good, nil), Trials: []TrialView{flowing(1, nil)}}, 600, GiveUp, 1, Recovered},
		{"the publisher has moved", View{Current: current(Good, nil), Trials: []TrialView{flowing(1, func(t *TrialView) { t.Epoch, t.Aligned = 6, false })}}, 0, Switch, 1, NewerEpoch},
		{"what the publisher left behind", View{Current: current(Silent, nil), Trials: []TrialView{flowing(1, func(t *TrialView) { t.Epoch = 4 })}}, 0, GiveUp, 1, OlderEpoch},
		{"there, a better place", View{Current: current(Good, nil), Trials: []TrialView{flowing(1, func(t *TrialView) { t.Preferred, t.Lead = true, -100*time.Millisecond })}}, 300, Switch, 1, Preferred},
		{"there, by the plan", View{Current: current(Good, nil), Trials: []TrialView{flowing(1, func(t *TrialView) { t.Preferred, t.Planned = true, true })}}, 300, Switch, 1, Planned},
		{"a better place that is behind", View{Current: current(Good, nil), Trials: []TrialView{flowing(1, func(t *TrialView) { t.Preferred, t.Lead = true, -time.Second })}}, 2000, None, 0, NoReason},
		{"more pictures", View{Current: current(Thin, func(c *CurrentView) { c.Figures.FPS = 12 }), Trials: []TrialView{flowing(1, func(t *TrialView) {
			t.Lead, t.Figures.Flowing = 0, 2*time.Second
		})}}, 300, Switch, 1, UpstreamThin},
		{"as few pictures", View{Current: current(Thin, func(c *CurrentView) { c.Figures.FPS = 12 }), Trials: []TrialView{flowing(1, func(t *TrialView) {
			t.Lead, t.Figures.Flowing, t.Figures.FPS = 0, 2*time.Second, 12
		})}}, 2000, None, 0, NoReason},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := DefaultConfig()
			p := NewPolicy(&cfg)
			var d Decision
			for ms := 0; ms <= c.ms && d.Action == None; ms += 100 {
				d = p.Step(at(ms), c.view)
			}
			if d.Action != c.action || d.ID != c.id || d.Reason != c.reason {
				t.Errorf("%v %d because of %v, want %v %d because of %v", d.Action, d.ID, d.Reason, c.action, c.id, c.reason)
			}
		})
	}
}

// TestHoldOff: fruitless trials become rare, and a switch or a calm time forgets that.
func TestHoldOff(t *testing.T) {
	cfg := DefaultConfig()
	p := NewPolicy(&cfg)
	cur := current(Slow, nil)
	var tries []int
	trials := []TrialView(nil)
	run := func(from, to int) {
		tries = nil
		for ms := from; ms < to; ms += 100 {
			for i := range trials {
				trials[i].Age += 100 * time.Millisecond
			}
			switch d := p.Step(at(ms), View{Current: cur, Trials: trials, Left: 1 - len(trials)}); d.Action {
			case Try:
				tries = append(tries, ms/1000)
				trials = append(trials, flowing(ms, func(t *TrialView) { t.Lead, t.Age = 0, 0 }))
			case GiveUp:
				trials = nil
			case Switch:
				t.Fatal("switches to what is no better")
			}
		}
	}
	run(0, 200_000)
	if len(tries) != 7 || tries[1] < 4 || tries[6]-tries[5] < 60 {
		t.Errorf("tries at %v s", tries)
	}
	cur.Verdict = Good
	run(200_000, 262_000)
	cur.Verdict = Slow
	run(262_000, 272_000)
	if len(tries) != 2 {
		t.Errorf("after a calm minute, tries at %v s", tries)
	}
}

// TestOlderEpochNever: what a publisher left behind is never taken, also when there is
// nothing else, whether the newer publish came by this session or by another.
func TestOlderEpochNever(t *testing.T) {
	cfg := DefaultConfig()
	older := []TrialView{flowing(1, func(t *TrialView) { t.Epoch = 4 })}
	for _, first := range []View{{Current: current(Good, nil)}, {Epoch: 5}} {
		p := NewPolicy(&cfg)
		p.Step(at(0), first)
		for ms := 0; ms < 20_000; ms += 100 {
			d := p.Step(at(ms), View{Current: CurrentView{Lost: session.UpstreamLost}, Trials: older})
			if d.Action != GiveUp || d.Reason != OlderEpoch {
				t.Fatalf("after %+v and %d ms: %+v", first, ms, d)
			}
		}
	}
}

// TestAnyView: whatever it sees, the policy says only what can be done, and comes to
// an end.
func TestAnyView(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := DefaultConfig()
		p := NewPolicy(&cfg)
		duration := rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.IntRange(-5000, 5000).Draw(t, "ms")) * time.Millisecond
		})
		var v View
		ids := 0
		for ms := 0; ms < 100_000; ms += rapid.IntRange(10, 3000).Draw(t, "pause") {
			v.Left = rapid.IntRange(0, 3).Draw(t, "left")
			v.Prefer = rapid.Bool().Draw(t, "prefer")
			if v.Current.Present {
				v.Current.Present = rapid.IntRange(0, 9).Draw(t, "lost") > 0
				v.Current.Lost = session.UpstreamLost
			}
			v.Current.Verdict = Verdict(rapid.IntRange(0, int(verdicts)-1).Draw(t, "verdict"))
			for i := range v.Trials {
				tr := &v.Trials[i]
				tr.State = max(tr.State, TrialState(rapid.IntRange(0, 2).Draw(t, "state")))
				tr.Lead, tr.Aligned = duration.Draw(t, "lead"), rapid.Bool().Draw(t, "aligned")
				tr.Age += max(0, duration.Draw(t, "age"))
				tr.Epoch = int64(rapid.IntRange(0, 2).Draw(t, "epoch"))
				tr.Figures.Recent = rapid.Float64Range(0, 2).Draw(t, "pace")
				tr.Figures.Flowing = tr.Age
			}
			for steps := 0; ; steps++ {
				if steps > 20 {
					t.Fatal("it comes to no end")
				}
				d := p.Step(at(ms), v)
				if d.Action == None {
					break
				}
				at := -1
				for i, tr := range v.Trials {
					if tr.ID == d.ID {
						at = i
					}
				}
				switch {
				case d.Reason == NoReason:
					t.Fatalf("%+v for no reason", d)
				case d.Action == Try:
					if v.Left == 0 || len(v.Trials) >= MaxTrials {
						t.Fatalf("%+v with %d left and %d on trial", d, v.Left, len(v.Trials))
					}
					v.Left--
					ids++
					v.Trials = append(v.Trials, TrialView{ID: ids})
				case at < 0:
					t.Fatalf("%+v: no such trial", d)
				case d.Action == Switch:
					if v.Trials[at].State != Flowing {
						t.Fatalf("%+v to %v", d, v.Trials[at].State)
					}
					v.Current = CurrentView{Present: true, Epoch: v.Trials[at].Epoch}
					v.Trials = append(v.Trials[:at:at], v.Trials[at+1:]...)
				default:
					v.Trials = append(v.Trials[:at:at], v.Trials[at+1:]...)
				}
			}
		}
	})
}

// A candidate that turns out to be none costs no hold-off; one that failed does.
func TestWithdraw(t *testing.T) {
	for _, withdrawn := range []bool{false, true} {
		cfg := DefaultConfig()
		p, v := NewPolicy(&cfg), View{Current: current(Good, nil), Left: 1, Prefer: true}
		if d := p.Step(at(0), v); d.Action != Try {
			t.Fatalf("it does %v, want to try", d.Action)
		}
		if withdrawn {
			p.Withdraw()
		}
		p.Step(at(50), View{Current: v.Current, Left: 1}) // the candidate is gone, and nobody else is wanted
		if d := p.Step(at(100), v); (d.Action == Try) != withdrawn {
			t.Errorf("withdrawn %v: then it does %v", withdrawn, d.Action)
		}
	}
	p := NewPolicy(new(Config))
	p.Withdraw() // what was never tried
	if d := p.Step(at(0), View{Left: 1}); d.Action != Try {
		t.Errorf("it does %v, want to try", d.Action)
	}
}
