package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// Sample is what the node To measured of the link from its upstream From. What is 0
// was not measured, but for Loss, Retransmits, Stalls and Switches, which count if
// there were Probes or the sample says Pulled.
type Sample struct {
	From        string        `json:"from"`
	To          string        `json:"to"`
	At          time.Time     `json:"at"`
	Connect     time.Duration `json:"connect_ns,omitempty"`
	RTT         time.Duration `json:"rtt_ns,omitempty"`
	Delay       time.Duration `json:"delay_ns,omitempty"` // by which media came later than the upstream had it
	FirstFrame  time.Duration `json:"first_frame_ns,omitempty"`
	Loss        float64       `json:"loss,omitempty"`        // of probes, 0…1
	Retransmits float64       `json:"retransmits,omitempty"` // of what was pulled, 0…1
	Stalls      float64       `json:"stalls,omitempty"`      // per hour
	Switches    float64       `json:"switches,omitempty"`    // away from the upstream, per hour
	Rate        int64         `json:"rate,omitempty"`        // bytes/s delivered
	OK          bool          `json:"ok"`                    // the upstream answered
	Pulled      bool          `json:"pulled,omitempty"`      // streams were pulled meanwhile
	Probes      int           `json:"probes,omitempty"`      // packets sent to measure
}

// Refusal says why a sample is not taken. Its word is the same in logs, metrics, the
// API and tests.
type Refusal uint8

// Refusals.
const (
	Taken         Refusal = iota // it is not refused
	UnknownNode                  // From or To is no node
	SameNode                     // From is To
	NotYours                     // it is about the link of somebody else than who sent it
	NotANumber                   // NaN or an infinity
	Negative                     // a figure below 0
	TooLong                      // a time of more than an hour
	NotAShare                    // Loss or Retransmits above 1
	TooMany                      // stalls, switches, probes or bytes that cannot be
	FromTheFuture                // At is later than now
	TooOld                       // At is long ago, or before the newest of this link
	TableFull                    // no more links can be remembered

	refusals // how many there are
)

var refusalWords = [refusals]string{
	Taken: "taken", UnknownNode: "unknown_node", SameNode: "same_node", NotYours: "not_yours", NotANumber: "not_a_number",
	Negative: "negative", TooLong: "too_long", NotAShare: "not_a_share", TooMany: "too_many",
	FromTheFuture: "from_the_future", TooOld: "too_old", TableFull: "table_full",
}

// String returns the word of r.
func (r Refusal) String() string {
	if r >= refusals {
		return fmt.Sprintf("refusal(%d)", uint8(r))
	}
	return refusalWords[r]
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

// Bounds of what a sample may say.
const (
	longestTime = time.Hour
	mostEvents  = 3600 * 25 // in an hour: one a frame
	mostProbes  = 10_000
	maxBytes    = 1 << 50 // bytes/s, far above any machine
	clockSkew   = 10 * time.Second
	oldest      = 10 * time.Minute
)

// Check returns why s cannot be true, or Taken. Take asks it itself, and more.
func (s *Sample) Check(now time.Time) Refusal {
	if s.From == s.To {
		return SameNode
	}
	for _, v := range [...]float64{s.Loss, s.Retransmits, s.Stalls, s.Switches} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return NotANumber
		}
		if v < 0 {
			return Negative
		}
	}
	for _, v := range [...]time.Duration{s.Connect, s.RTT, s.Delay, s.FirstFrame} {
		if v < 0 {
			return Negative
		}
		if v > longestTime {
			return TooLong
		}
	}
	switch {
	case s.Rate < 0 || s.Probes < 0:
		return Negative
	case s.Loss > 1 || s.Retransmits > 1:
		return NotAShare
	case s.Stalls > mostEvents || s.Switches > mostEvents || s.Probes > mostProbes || s.Rate > maxBytes:
		return TooMany
	case s.At.After(now.Add(clockSkew)):
		return FromTheFuture
	case s.At.Before(now.Add(-oldest)):
		return TooOld
	}
	return Taken
}

// MaxSamples bounds what one node sends at once, and MaxSampleBytes the JSON of it.
const (
	MaxSamples     = 1024
	MaxSampleBytes = 512 << 10
)

// ParseSamples reads a list of samples from JSON, strictly. What they say is checked
// by [Scores.Take], one by one.
func ParseSamples(b []byte) ([]Sample, error) {
	if len(b) > MaxSampleBytes {
		return nil, fmt.Errorf("samples: longer than %d bytes: send fewer at once", MaxSampleBytes)
	}
	var out []Sample
	if err := strict(b, &out); err != nil {
		return nil, fmt.Errorf("samples: %w", err)
	}
	if len(out) > MaxSamples {
		return nil, fmt.Errorf("samples: %d of them, at most %d are possible: send fewer at once", len(out), MaxSamples)
	}
	return out, nil
}

// strict reads one JSON value into v; unknown keys and more than one value are errors.
func strict(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("byte %d: %w", d.InputOffset(), err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("byte %d: more follows the value: send one", d.InputOffset())
	}
	return nil
}
