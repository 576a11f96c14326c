package failover

import "time"

// Verdict is what a connection is worth at the moment.
type Verdict uint8

// The verdicts.
const (
	Starting   Verdict = iota // no frame came yet
	Good                      // as it should be
	SourceIdle                // the link is well, but whoever is above has nothing more to send
	Thin                      // time goes on, but frames are missing
	Slow                      // it falls behind
	Silent                    // nothing comes at all
	verdicts                  // how many there are
)

// String returns the word used in logs, metrics and the API.
func (v Verdict) String() string {
	if v >= verdicts {
		return "unknown"
	}
	return [verdicts]string{"starting", "good", "source_idle", "thin", "slow", "silent"}[v]
}

// MarshalText returns the word of v, for JSON.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Figures are what a verdict was based on.
type Figures struct {
	Recent  float64       `json:"pace_recent"` // media time per wall time, over Config.Judge
	Short   float64       `json:"pace_short"`  // the same over a second
	Long    float64       `json:"pace_long"`   // the same over five
	FPS     float64       `json:"fps"`         // frames per second of media, over the short window
	Steady  float64       `json:"fps_steady"`  // what the stream usually has
	Late    time.Duration `json:"late"`        // behind its own best of the last ten seconds
	Silence time.Duration `json:"silence"`     // since anything came
	Gap     time.Duration `json:"usual_gap"`   // a pause between frames that is nothing special
	Flowing time.Duration `json:"flowing"`     // since the first frame
}
