package measure

import "fmt"

// Refusal says why a [Responder] does not answer a packet. Its word is the same in logs,
// metrics, the API and tests.
type Refusal uint8

// Refusals.
const (
	Malformed    Refusal = iota // it is no question of a probe
	TooMany                     // its source, or all together, ask more than is answered
	BadSignature                // it is signed with a key that is not known here, or for another node
	ClockSkew                   // it was signed long ago, or the clocks differ
	refusals                    // how many there are
)

// String returns the word of r.
func (r Refusal) String() string {
	if r >= refusals {
		return fmt.Sprintf("refusal(%d)", uint8(r))
	}
	return [refusals]string{"malformed", "too_many", "bad_signature", "clock_skew"}[r]
}

// MarshalText returns the word of r, for JSON.
func (r Refusal) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Refusals returns every refusal, for documentation and metrics.
func Refusals() []Refusal {
	out := make([]Refusal, refusals)
	for i := range out {
		out[i] = Refusal(i)
	}
	return out
}
