package quality

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"millrace/internal/stream"
)

// MaxReport is how big a report may be, in bytes.
const MaxReport = 4 << 10

// Bounds of a report, beyond what a player that works can come to.
const (
	maxSession = 64
	maxStalls  = 1000
	maxFirst   = 2 * time.Minute
	maxDelay   = 10 * time.Minute
	// maxSpan is how much time one report may be about: a page that slept says more at once.
	maxSpan = 15 * time.Minute
)

// Report is what a player says of itself: all of it since its last report, but for the
// first frame, which it tells once.
type Report struct {
	Stream     stream.Name
	Session    string        // names this play, so that who complains can be found
	FirstFrame time.Duration // from asking to the first frame; 0: not told
	Stalls     int
	Stalled    time.Duration
	Played     time.Duration
	Delay      time.Duration // behind live
	HasDelay   bool
}

// message is a report as it is sent.
type message struct {
	Stream     string   `json:"stream"`
	Session    string   `json:"session"`
	FirstFrame *float64 `json:"first_frame_ms"`
	Stalls     float64  `json:"stalls"`
	Stalled    float64  `json:"stalled_ms"`
	Played     float64  `json:"played_ms"`
	Delay      *float64 `json:"delay_ms"`
}

// Reason says why a report was refused. Its word is the same in answers, logs and
// metrics.
type Reason uint8

// The reasons.
const (
	Accepted  Reason = iota
	TooBig           // it has more than MaxReport bytes
	Malformed        // it is no JSON object, or names no stream
	Absurd           // a figure is beyond what can be
	TooMany          // the address has used up its allowance
	reasons
)

var reasonWords = [reasons]string{"accepted", "too_big", "malformed", "absurd", "too_many"}

// String returns the word of r.
func (r Reason) String() string { return reasonWords[r] }

// Refused is the error of a report that was not taken.
type Refused struct {
	Reason Reason
	Text   string // says what to do
}

// Error returns the text.
func (r *Refused) Error() string { return r.Text }

func reasonOf(err error) Reason {
	if r, ok := errors.AsType[*Refused](err); ok {
		return r.Reason
	}
	return Malformed
}

func refuse(r Reason, format string, args ...any) error {
	return &Refused{r, fmt.Sprintf(format, args...)}
}

// Parse reads a report. Its error is a [*Refused].
func Parse(b []byte) (Report, error) {
	if len(b) > MaxReport {
		return Report{}, refuse(TooBig, "the report has %d bytes, and at most %d are read", len(b), MaxReport)
	}
	var m message
	if err := json.Unmarshal(b, &m); err != nil {
		return Report{}, refuse(Malformed, `the report cannot be read: send JSON such as {"stream": "live/show", "played_ms": 10000}`)
	}
	name, err := stream.ParsePath(m.Stream)
	if err != nil {
		return Report{}, refuse(Malformed, "stream: %v", err)
	}
	if len(m.Session) > maxSession || !plain(m.Session) {
		return Report{}, refuse(Malformed, "session: use up to %d letters, digits, hyphens and underscores", maxSession)
	}
	r := Report{Stream: name, Session: m.Session, Stalls: int(bounded(m.Stalls, maxStalls))}
	if float64(r.Stalls) != m.Stalls {
		return Report{}, refuse(Absurd, "stalls is %v: tell the number since the last report, 0 to %d", m.Stalls, maxStalls)
	}
	for _, f := range []struct {
		key  string
		from *float64
		to   *time.Duration
		most time.Duration
	}{
		{"first_frame_ms", m.FirstFrame, &r.FirstFrame, maxFirst},
		{"stalled_ms", &m.Stalled, &r.Stalled, maxSpan},
		{"played_ms", &m.Played, &r.Played, maxSpan},
		{"delay_ms", m.Delay, &r.Delay, maxDelay},
	} {
		if f.from == nil {
			continue
		}
		ms := *f.from
		if bounded(ms, float64(f.most.Milliseconds())) != ms {
			return Report{}, refuse(Absurd, "%s is %v: tell milliseconds, 0 to %d", f.key, ms, f.most.Milliseconds())
		}
		*f.to = time.Duration(math.Round(ms * float64(time.Millisecond)))
	}
	r.HasDelay = m.Delay != nil
	return r, nil
}

// bounded returns v within 0 and most.
func bounded(v, most float64) float64 { return min(max(v, 0), most) }

// plain reports whether s is letters, digits, hyphens and underscores.
func plain(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}
