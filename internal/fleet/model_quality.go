package fleet

import "time"

// QualityRow is how players of a region and ISP fare at a node, lately.
type QualityRow struct {
	Region     string         `json:"region"`
	ISP        string         `json:"isp"`
	Node       string         `json:"node"`
	Datacenter string         `json:"datacenter"`
	At         time.Time      `json:"at"`          // of the newest figures
	Started    int            `json:"started"`     // viewers that got a first byte
	FirstByte  float64        `json:"first_byte"`  // ms, the mean
	Reports    int            `json:"reports"`     // of players themselves
	FirstFrame float64        `json:"first_frame"` // ms, the mean
	Stalls     float64        `json:"stalls"`      // per hour of playing
	Stalled    float64        `json:"stalled"`     // share of the time, 0…1
	Played     float64        `json:"played"`      // s
	Delay      float64        `json:"delay"`       // ms behind live, the mean
	Skips      int            `json:"skips"`       // that the node made for slow viewers
	Closes     map[string]int `json:"closes"`      // by reason
}

// RecheckRow counts what edges found when they looked again at players that came.
type RecheckRow struct {
	Region  string `json:"region"`
	ISP     string `json:"isp"`
	Way     string `json:"way"` // by which the player had come
	Outcome string `json:"outcome"`
	Count   uint64 `json:"count"` // since the nodes started
}
