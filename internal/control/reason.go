package control

import "fmt"

// Refusal says why a server did not answer a question with what was asked for. Its
// word is the same in answers, logs, metrics and tests.
type Refusal uint8

// The refusals.
const (
	NotRefused    Refusal = iota
	BadRequest            // the question makes no sense
	Unsigned              // no signature, and there is a key
	BadSignature          // by no key of the cluster, or of another question
	ClockSkew             // signed at a time too far from here
	NotFound              // no such path, or no such file any more
	NoSnapshot            // this server has none yet
	TooMany               // as many wait, or are sent files, as may
	Draining              // the server shuts down
	TooBig                // more than is read, packed or unpacked
	Absurd                // it says what cannot be
	NotYours              // it speaks for another node than the one that signed it
	IdentityTaken         // another program goes by this name, and is alive
	Replayed              // not newer than what this node has said already
	TableFull             // more nodes, or more streams, than the server keeps
	NoOrders              // there are none for this node: no plan yet, or it was not heard of
	LeftOut               // players are not sent to this node, and there is no other to place them on
	refusals
)

var refusalWords = [refusals]string{
	"not_refused", "bad_request", "unsigned", "bad_signature", "clock_skew", "not_found", "no_snapshot", "too_many", "draining",
	"too_big", "absurd", "not_yours", "identity_taken", "replayed", "table_full", "no_orders", "left_out",
}

// String returns the word of r.
func (r Refusal) String() string {
	if r >= refusals {
		return fmt.Sprintf("refusal(%d)", uint8(r))
	}
	return refusalWords[r]
}

// MarshalText returns the word of r.
func (r Refusal) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Refusals returns every refusal, for documentation and metrics.
func Refusals() []Refusal {
	out := make([]Refusal, 0, refusals-1)
	for r := NotRefused + 1; r < refusals; r++ {
		out = append(out, r)
	}
	return out
}
