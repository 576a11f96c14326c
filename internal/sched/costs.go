package sched

import (
	"bytes"
	"encoding/json"
	"time"
)

// Costs are the figures of the cost formula, in ms where nothing else is said;
// README.md of this package has the formula. In JSON a figure that is left out has
// its default. A reader of another format starts from [DefaultCosts].
type Costs struct {
	PerKm           float64  `json:"per_km"`           // of great circle between two regions
	UnknownDistance float64  `json:"unknown_distance"` // between regions of which nothing is known
	ISPAny          float64  `json:"isp_any"`          // an edge that is good from all ISPs
	ISPOther        float64  `json:"isp_other"`        // an edge of other ISPs
	ISPUnknown      float64  `json:"isp_unknown"`      // an edge of some ISPs, when the client's is unknown
	GoodFirstFrame  float64  `json:"good_first_frame"` // the first-frame time that coverage promises
	GoodDelay       float64  `json:"good_delay"`       // the delay that coverage promises beside its own ms
	FirstFrame      float64  `json:"first_frame"`      // per ms of first-frame time above the good one
	Stall           float64  `json:"stall"`            // per stall in an hour of playing
	Loss            float64  `json:"loss"`             // of losing every packet
	QualityBest     float64  `json:"quality_best"`     // the most that quality can gain
	QualityWorst    float64  `json:"quality_worst"`    // the most that quality can cost
	QualitySamples  float64  `json:"quality_samples"`  // samples with which a measurement counts half
	QualityHalf     Duration `json:"quality_half"`     // age by which a measurement counts half as much
	Carried         float64  `json:"carried"`          // gained by an edge that carries the stream
	Load            float64  `json:"load"`             // of an edge at half of its capacity
	Held            float64  `json:"held"`             // of an edge that is kept though it seems down
	Margin          float64  `json:"margin"`           // edges so close to the best share the clients
}

// DefaultCosts returns the costs of a Snapshot that says nothing of them.
func DefaultCosts() Costs {
	return Costs{
		PerKm: 0.01, UnknownDistance: 50, ISPAny: 5, ISPOther: 30, ISPUnknown: 15,
		GoodFirstFrame: 300, GoodDelay: 10, FirstFrame: 0.1, Stall: 10, Loss: 1000,
		QualityBest: 20, QualityWorst: 500, QualitySamples: 50, QualityHalf: Duration(10 * time.Minute),
		Carried: 10, Load: 5, Held: 25, Margin: 5,
	}
}

// UnmarshalJSON reads c, strictly, over the defaults.
func (c *Costs) UnmarshalJSON(b []byte) error {
	type plain Costs
	v := plain(DefaultCosts())
	if err := strict(b, &v); err != nil {
		return err
	}
	*c = Costs(v)
	return nil
}

// HealthConfig says when an edge is offered. In JSON a figure that is left out has
// its default. A reader of another format starts from [DefaultHealth].
type HealthConfig struct {
	Fresh Duration `json:"fresh"` // how long an observation counts
	// EvictShare is how many of the edges of a group may be out for their health: of
	// those that were up once, 0…1, but one at least. When more seem down, the observers
	// are to be doubted: those that were seen up last are kept. 0 keeps all.
	EvictShare float64 `json:"evict_share"`
	Rise       int     `json:"rise"` // good observations in a row that bring an edge back
	Fall       int     `json:"fall"` // bad observations in a row that take it out
	// An edge is under attack when it refuses AttackRise times as many connections per
	// second as it used to, and more than AttackFloor. It comes back when it has been
	// calm for AttackCalm.
	AttackRise  float64  `json:"attack_rise"`
	AttackFloor float64  `json:"attack_floor"`
	AttackCalm  Duration `json:"attack_calm"`
}

// DefaultHealth returns the settings of a Snapshot that says nothing of health.
func DefaultHealth() HealthConfig {
	return HealthConfig{
		Fresh: Duration(10 * time.Second), EvictShare: 0.5, Rise: 2, Fall: 2,
		AttackRise: 10, AttackFloor: 100, AttackCalm: Duration(time.Minute),
	}
}

// UnmarshalJSON reads h, strictly, over the defaults.
func (h *HealthConfig) UnmarshalJSON(b []byte) error {
	type plain HealthConfig
	v := plain(DefaultHealth())
	if err := strict(b, &v); err != nil {
		return err
	}
	*h = HealthConfig(v)
	return nil
}

// strict reads one JSON value into v; unknown keys are errors.
func strict(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(v)
}
