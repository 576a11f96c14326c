package plan

// Costs are the figures of the cost formula, in ms where nothing else is said.
// README.md has the formula.
type Costs struct {
	Base            float64 // of any link
	PerKm           float64 // of great circle between two regions
	UnknownDistance float64 // between regions of which nothing is known
	ISPAny          float64 // between nodes that meet because one of them is good from all ISPs
	ISPUnknown      float64 // when one of the two names no ISP
	ISPOther        float64 // across ISPs
	GoodDelay       float64 // by which media may be late beside the way; more counts in full
	GoodLoss        float64 // the share of packets that may be lost, or sent again, for nothing
	Loss            float64 // of losing, or sending again, every packet
	Stall           float64 // per stall in an hour
	Switch          float64 // per switch away in an hour
	FirstFrame      float64 // per ms of first-frame time above GoodFirstFrame
	GoodFirstFrame  float64
	Failure         float64 // of an upstream that never answers
	Money           float64 // per unit of money per GB
	Load            float64 // of an upstream at half of its capacity
	SkipTier        float64 // of an edge that pulls from a center: its copy serves one edge only
	Trust           float64 // samples with which a measurement counts half
}

// DefaultCosts returns the costs that README.md explains.
func DefaultCosts() Costs {
	return Costs{
		Base: 1, PerKm: 0.01, UnknownDistance: 50, ISPAny: 3, ISPUnknown: 10, ISPOther: 40,
		GoodDelay: 100, GoodLoss: 0.005, Loss: 3000, Stall: 10, Switch: 5, FirstFrame: 0.1, GoodFirstFrame: 300, Failure: 1000,
		Money: 200, Load: 10, SkipTier: 30, Trust: 3,
	}
}

// each calls f for every figure, for checks and documentation.
func (c *Costs) each(f func(name string, v *float64)) {
	f("base", &c.Base)
	f("per_km", &c.PerKm)
	f("unknown_distance", &c.UnknownDistance)
	f("isp_any", &c.ISPAny)
	f("isp_unknown", &c.ISPUnknown)
	f("isp_other", &c.ISPOther)
	f("good_delay", &c.GoodDelay)
	f("good_loss", &c.GoodLoss)
	f("loss", &c.Loss)
	f("stall", &c.Stall)
	f("switch", &c.Switch)
	f("first_frame", &c.FirstFrame)
	f("good_first_frame", &c.GoodFirstFrame)
	f("failure", &c.Failure)
	f("money", &c.Money)
	f("load", &c.Load)
	f("skip_tier", &c.SkipTier)
	f("trust", &c.Trust)
}

// Breakdown is the cost of an upstream, in ms, part by part.
type Breakdown struct {
	Delay      float64 `json:"delay"`
	Loss       float64 `json:"loss"`
	Stall      float64 `json:"stall"` // and switches
	FirstFrame float64 `json:"first_frame"`
	Failure    float64 `json:"failure"`
	Money      float64 `json:"money"`
	Load       float64 `json:"load"`
	Tier       float64 `json:"tier"`   // for leaving out the relays
	Behind     float64 `json:"behind"` // what the upstream's own way to the source costs
	Weight     float64 `json:"weight"` // by which all but Behind is divided
}

// Cost returns the cost of b in ms.
func Cost(b Breakdown) float64 {
	return (b.quality()+b.Money+b.Load+b.Tier)/b.Weight + b.Behind
}

// quality is what a link costs for what it is and how it measured.
func (b *Breakdown) quality() float64 { return b.Delay + b.Loss + b.Stall + b.FirstFrame + b.Failure }

// steep is the use from which on the load term goes on in a straight line, so that of
// two upstreams that are both over their capacity the less loaded costs less.
const steep = 0.99

// loadCost is what an upstream costs that uses the share u of its capacity.
func (c *Costs) loadCost(u float64) float64 {
	switch {
	case u <= 0:
		return 0
	case u < steep:
		return c.Load * u / (1 - u)
	}
	return c.Load * (steep/(1-steep) + (u-steep)/((1-steep)*(1-steep)))
}
