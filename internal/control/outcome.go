package control

import (
	"errors"
	"fmt"
	"time"
)

// Outcome is what became of a question. Its word is the same in logs, metrics and tests.
type Outcome uint8

// The outcomes.
const (
	Answered    Outcome = iota // with something new
	Unchanged                  // there is nothing new
	Early                      // nothing new, and at once, though it was asked to wait
	Unreachable                // no connection, or no answer in time
	Refused                    // the server says why not
	Forged                     // the answer is not signed by a key of the cluster, or answers something else
	Damaged                    // the answer is signed but cannot be read, or is too big
	Faulty                     // what it says is no valid snapshot
	Older                      // older than what is in use, and from another server
	outcomes
)

var outcomeWords = [outcomes]string{
	"answered", "unchanged", "early", "unreachable", "refused", "forged", "damaged", "faulty", "older",
}

// String returns the word of o.
func (o Outcome) String() string {
	if o >= outcomes {
		return fmt.Sprintf("outcome(%d)", uint8(o))
	}
	return outcomeWords[o]
}

// MarshalText returns the word of o.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Outcomes returns every outcome, for documentation and metrics.
func Outcomes() []Outcome {
	out := make([]Outcome, outcomes)
	for i := range out {
		out[i] = Outcome(i)
	}
	return out
}

// failure is an error with its outcome.
type failure struct {
	outcome Outcome
	err     error
	after   time.Duration // how long the server wants to be left alone; 0: it does not say
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func fail(o Outcome, format string, args ...any) error {
	return &failure{outcome: o, err: fmt.Errorf(format, args...)}
}

// outcomeOf returns the outcome of an error.
func outcomeOf(err error) Outcome {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.outcome
	}
	return Unreachable
}

// restOf returns how long a server that refused wants to be left alone.
func restOf(err error) time.Duration {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.after
	}
	return 0
}
