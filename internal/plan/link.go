package plan

import (
	"math"
	"time"
)

// Halves are the times by which measurements move and fade.
type Halves struct {
	Worse  time.Duration // in which an average goes half of the way to a worse sample
	Better time.Duration // and to a better one
	Memory time.Duration // in which samples count half as much
}

// DefaultHalves believes what gets worse in seconds, and what gets better after a while,
// so that a link that comes and goes is not taken again each time.
func DefaultHalves() Halves {
	return Halves{Worse: 3 * time.Second, Better: 15 * time.Second, Memory: 2 * time.Minute}
}

func (h *Halves) each(f func(name string, v *time.Duration)) {
	f("worse", &h.Worse)
	f("better", &h.Better)
	f("memory", &h.Memory)
}

const (
	// soonest is the shortest time between two samples: a crowd of them within a moment
	// is no more than what that moment can tell.
	soonest = 100 * time.Millisecond
	// mostTrust bounds how many samples are remembered, and so how long a bad evening is:
	// 60 have faded to the 3 that count half after four times and a bit the memory.
	mostTrust = 60
	// fewProbes is with how many probes in a sample its loss moves the average half as
	// far: of five, one lost is no loss of 20 %.
	fewProbes = 50
)

// average is one figure of a link, weighted by age.
type average struct {
	value float64
	count float64 // samples, faded to at
	at    int64   // Unix time in ns; 0: nothing was measured
}

// add takes a sample; share, of 0…1, is how much it tells.
func (a *average) add(at int64, v, share float64, h *Halves) {
	if a.at == 0 {
		*a = average{v * share, 1, at}
		return
	}
	passed := max(time.Duration(at-a.at), soonest)
	half := h.Better
	if v > a.value {
		half = h.Worse
	}
	a.value += (v - a.value) * (1 - fade(passed, half)) * share
	a.count = min(a.count*fade(passed, h.Memory)+1, mostTrust)
	a.at = max(a.at, at)
}

// trust is how much a counts at a time, 0…1.
func (a *average) trust(now int64, h *Halves, half float64) float64 {
	if a.at == 0 {
		return 0
	}
	n := a.count * fade(max(time.Duration(now-a.at), 0), h.Memory)
	return n / (n + half)
}

// fade is what is left of something after a time.
func fade(passed, half time.Duration) float64 { return math.Exp2(-float64(passed) / float64(half)) }

// Link is how one link measured, each figure as an average weighted by age.
type Link struct {
	connect, rtt, delay, first          average // ms
	late                                average // ms by which media came later than the way took then
	loss, resent, stalls, switches, bad average
	rate                                average // bytes/s
	at                                  int64   // of the newest sample
	samples                             uint64
}

// Update takes a sample that was checked.
func (l *Link) Update(s *Sample, h *Halves) {
	at := s.At.UnixNano()
	ms := func(a *average, d time.Duration) {
		if d > 0 {
			a.add(at, float64(d)/1e6, 1, h)
		}
	}
	ms(&l.connect, s.Connect)
	ms(&l.rtt, s.RTT)
	ms(&l.delay, s.Delay)
	if way, ok := l.wayOf(s); ok && s.Delay > 0 {
		l.late.add(at, max(float64(s.Delay)/1e6-way, 0), 1, h)
	}
	ms(&l.first, s.FirstFrame)
	// Packets are lost in fits: an average that rises faster than it falls would stand
	// far above what is lost.
	even := Halves{Worse: h.Worse, Better: h.Worse, Memory: h.Memory}
	if s.Probes > 0 {
		l.loss.add(at, s.Loss, float64(s.Probes)/(float64(s.Probes)+fewProbes), &even)
	}
	if s.Pulled {
		l.resent.add(at, s.Retransmits, 1, &even)
		l.stalls.add(at, s.Stalls, 1, h)
		l.switches.add(at, s.Switches, 1, h)
		l.rate.add(at, float64(s.Rate), 1, h)
	}
	failed := 1.0
	if s.OK {
		failed = 0
	}
	l.bad.add(at, failed, 1, h)
	l.at = max(l.at, at)
	l.samples++
}

// wayOf returns the ms that the way of a sample took, at the time of the sample or as
// near to that as it is known.
func (l *Link) wayOf(s *Sample) (float64, bool) {
	switch {
	case s.RTT > 0:
		return float64(s.RTT) / 2e6, true
	case l.rtt.at != 0:
		return l.rtt.value / 2, true
	case l.connect.at != 0:
		return l.connect.value / 2, true
	}
	return 0, false
}

// Cost returns what l costs at a time, without load, money and what is behind the
// upstream. way is the delay in ms that distance and ISPs promise: each figure counts
// by the trust in it, and else is as promised.
func (l *Link) Cost(now time.Time, way float64, cfg *Config) (float64, Breakdown) {
	b := l.parts(now.UnixNano(), way, cfg)
	return Cost(b), b
}

func (l *Link) parts(now int64, way float64, cfg *Config) Breakdown {
	c, h := &cfg.Costs, &cfg.Half
	toward := func(v float64, a *average, scale float64) float64 {
		return v + a.trust(now, h, c.Trust)*(a.value*scale-v)
	}
	b := Breakdown{Weight: 1}
	b.Delay = toward(toward(way, &l.connect, 0.5), &l.rtt, 0.5)
	// Only a link in use tells how late media comes, and some of that is not its fault:
	// without the allowance a node would always prefer what it does not use. What the way
	// itself took then is not in it: a link that was long and is short again is good at
	// once, although nobody uses it.
	b.Delay += l.late.trust(now, h, c.Trust) * max(l.late.value-c.GoodDelay, 0)
	b.Loss = c.Loss * max(toward(0, &l.loss, 1)-c.GoodLoss, toward(0, &l.resent, 1)-c.GoodLoss, 0)
	b.Stall = c.Stall*toward(0, &l.stalls, 1) + c.Switch*toward(0, &l.switches, 1)
	b.FirstFrame = c.FirstFrame * l.first.trust(now, h, c.Trust) * max(l.first.value-c.GoodFirstFrame, 0)
	b.Failure = c.Failure * toward(0, &l.bad, 1)
	return b
}

// Figures are the averages of a link, for people to read. They are as measured: how
// much they count is the trust.
type Figures struct {
	RTT         float64   `json:"rtt"`         // ms, as are the next three
	Connect     float64   `json:"connect"`     //
	Delay       float64   `json:"delay"`       //
	FirstFrame  float64   `json:"first_frame"` //
	Loss        float64   `json:"loss"`        // 0…1
	Retransmits float64   `json:"retransmits"` // 0…1
	Stalls      float64   `json:"stalls"`      // per hour
	Switches    float64   `json:"switches"`    // per hour
	Failed      float64   `json:"failed"`      // share of samples without an answer
	Rate        float64   `json:"rate"`        // bytes/s
	Trust       float64   `json:"trust"`       // in the figure that is trusted most, 0…1
	Samples     uint64    `json:"samples"`     // ever
	At          time.Time `json:"at"`          // of the newest
}

// Figures returns the averages of l at a time.
func (l *Link) Figures(now time.Time, cfg *Config) Figures {
	trust := 0.0
	for _, a := range [...]*average{&l.connect, &l.rtt, &l.delay, &l.first, &l.loss, &l.resent, &l.bad} {
		trust = max(trust, a.trust(now.UnixNano(), &cfg.Half, cfg.Costs.Trust))
	}
	return Figures{
		RTT: l.rtt.value, Connect: l.connect.value, Delay: l.delay.value, FirstFrame: l.first.value,
		Loss: l.loss.value, Retransmits: l.resent.value, Stalls: l.stalls.value, Switches: l.switches.value,
		Failed: l.bad.value, Rate: l.rate.value, Trust: trust, Samples: l.samples, At: time.Unix(0, l.at),
	}
}
