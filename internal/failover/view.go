package failover

import (
	"time"

	"millrace/internal/session"
)

// TrialState is how far a trial has come.
type TrialState uint8

// The states of a trial.
const (
	Dialing     TrialState = iota // no answer yet
	Waiting                       // answered, but no frame yet
	Flowing                       // frames come
	trialStates                   // how many there are
)

// String returns the word used in logs, metrics and the API.
func (s TrialState) String() string {
	if s >= trialStates {
		return "unknown"
	}
	return [trialStates]string{"dialing", "waiting", "flowing"}[s]
}

// MarshalText returns the word of s, for JSON.
func (s TrialState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// TrialView is what the policy sees of a trial.
type TrialView struct {
	ID        int
	State     TrialState
	Verdict   Verdict
	Figures   Figures
	Lead      time.Duration // valid if Aligned
	Aligned   bool
	Age       time.Duration // since it was dialled
	Epoch     int64         // 0: unknown
	Preferred bool          // this is where the stream ought to come from
	Planned   bool          // because the plan says so, if it is preferred
}

// CurrentView is what the policy sees of the current connection.
type CurrentView struct {
	Present bool           // it is connected; false also before the first
	Lost    session.Reason // why it is gone; session.None if there was none
	Verdict Verdict
	Figures Figures
	Epoch   int64 // 0: unknown
	Grace   bool  // the upstream has lost its publisher and waits for it
}

// View is what the policy decides by.
type View struct {
	Current CurrentView
	Trials  []TrialView
	Epoch   int64 // newest that was forwarded, here or by another; 0: unknown
	Left    int   // candidates that may be dialled now, without those on trial
	Prefer  bool  // the next candidate is where the stream ought to come from
	Planned bool  // because the plan says so, with Prefer
}

// Decision is what to do, why, and by which figures.
type Decision struct {
	Action  Action
	ID      int // of the trial, for Switch and GiveUp
	Reason  Reason
	Current Figures
	Trial   Figures
	Lead    time.Duration
	Aligned bool
	HoldOff time.Duration // the pause that was in force, or begins
}
