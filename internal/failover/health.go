package failover

import (
	"math"
	"time"

	"millrace/internal/flv"
)

// Windows of the health.
const (
	slotTime    = 100 * time.Millisecond
	slots       = 64 // over six seconds
	shortWindow = time.Second
	longWindow  = 5 * time.Second
	bestSeconds = 10 // how long the best delay is remembered
	gapTime     = 15 * time.Second
	// gapTimes is how often a gap must be seen to be usual: one stall is not.
	gapTimes = 3
	// thinRate is the part of its usual frame rate below which a stream is thin; the
	// usual one must have been watched for steadySeconds.
	thinRate      = 0.6
	steadySeconds = 5
)

// Health watches one connection: media time against wall time, frames against their
// usual rate, and silence.
//
// Falling behind is measured against the connection's own best: the least difference
// between the time of arrival and of the frame within ten seconds. At a pace of 0.6
// that grows by 0.4 s a second. A source that sends in bursts has long usual gaps,
// and may be late by one and a half of them.
type Health struct {
	// Fixed at construction.
	cfg     *Config
	started time.Time

	at      time.Time // when anything came last
	frameAt time.Time // when a frame came last
	firstAt time.Time // when the first frame came
	begun   bool      // a frame came
	links   bool      // link tags come
	linkAt  time.Time // when the last of them came
	idle    bool      // and whether it said so
	renewed bool      // another publish began, and no frame of it came yet
	video   bool      // a video frame came: they are what is counted

	newest    int64 // time of the newest frame
	frames    int   // counted frames, ever
	slot      int   // number of the slot of the last frame, from started
	first     int   // number of the first slot
	ring      [slots]slot
	best      [bestSeconds]int64 // least delay by second, in ms
	second    int
	gaps      [2][gapTimes]time.Duration // the longest, of this and the last gapTime
	gapsAt    time.Time
	transit   [2]time.Duration // least time that a link tag took, of these seconds and those before
	transitAt time.Time
	fps       float64
	steady    float64
	steps     int // seconds that steady is made of
}

// slot is the state at the end of a slot of time.
type slot struct {
	newest int64
	frames int
}

// NewHealth returns the health of a connection that is made at now. It keeps cfg.
func NewHealth(cfg *Config, now time.Time) *Health {
	return &Health{cfg: cfg, started: now, at: now, frameAt: now, gapsAt: now}
}

// Came takes note of a tag.
func (h *Health) Came(now time.Time, t flv.Tag) {
	h.at = now
	if !t.Is(flv.Frame) {
		return
	}
	if !h.begun || h.renewed || jumped(t.DTS-h.newest) {
		h.restart(now, t.DTS)
	}
	if t.Kind == flv.Video && !h.video {
		h.video, h.frames, h.steady, h.steps = true, 0, 0, 0
		clear(h.ring[:])
		h.first = h.slot
	}
	h.advance(now)
	h.gap(now)
	h.frameAt = now
	if (t.Kind == flv.Video) == h.video {
		h.frames++
	}
	h.newest = max(h.newest, t.DTS)
	h.ring[h.slot%slots] = slot{h.newest, h.frames}
	if d := h.delay(now); d < h.best[h.second%bestSeconds] {
		h.best[h.second%bestSeconds] = d
	}
}

// Renew tells that another publish begins: how far its clock is behind that of the one
// before is the publisher's doing, not the connection's.
func (h *Health) Renew() { h.renewed = true }

// restart begins to measure anew: with the first frame, or when the clock jumped.
func (h *Health) restart(now time.Time, dts int64) {
	if !h.begun {
		h.firstAt, h.begun = now, true
	}
	h.newest, h.renewed = dts, false
	h.slot = h.number(now)
	h.first = h.slot
	h.second = h.slot / int(time.Second/slotTime)
	for i := range h.best {
		h.best[i] = math.MaxInt64
	}
}

func (h *Health) number(now time.Time) int { return int(now.Sub(h.started) / slotTime) }

// delay is how long after its own time the newest frame is there, on two clocks that
// have nothing in common.
func (h *Health) delay(now time.Time) int64 { return now.Sub(h.started).Milliseconds() - h.newest }

// advance closes the slots, and the seconds, that are over.
func (h *Health) advance(now time.Time) {
	n := h.number(now)
	if n <= h.slot {
		return
	}
	if n-h.slot > slots {
		h.slot = n - slots
	}
	for h.slot < n {
		h.slot++
		h.ring[h.slot%slots] = slot{h.newest, h.frames}
	}
	second := n / int(time.Second/slotTime)
	if second == h.second {
		return
	}
	h.count(now)
	if second-h.second > bestSeconds {
		h.second = second - bestSeconds
	}
	for h.second < second {
		h.second++
		h.best[h.second%bestSeconds] = math.MaxInt64
	}
}

// over returns by how much media time and frames grew within the window before now,
// and how long that window really was.
func (h *Health) over(now time.Time, window time.Duration) (media int64, frames int, wall time.Duration) {
	n := h.number(now)
	from := max(n-int(window/slotTime), h.first, n-slots+1)
	at := h.slot // nothing changed since
	if from < h.slot {
		at = from
	}
	s := h.ring[at%slots]
	return h.newest - s.newest, h.frames - s.frames, now.Sub(h.started) - time.Duration(from+1)*slotTime
}

func (h *Health) pace(now time.Time, window time.Duration) float64 {
	media, _, wall := h.over(now, window)
	if wall < slotTime {
		return 0
	}
	return float64(media) / float64(wall.Milliseconds())
}

// count updates the frame rates, once a second. They are per second of media, so
// that bursts do not matter.
func (h *Health) count(now time.Time) {
	media, frames, _ := h.over(now, 2*shortWindow)
	if media < shortWindow.Milliseconds() {
		return
	}
	h.fps = float64(frames) * 1000 / float64(media)
	if h.steps++; h.steps <= steadySeconds {
		h.steady += (h.fps - h.steady) / float64(h.steps)
	} else {
		h.steady += (h.fps - h.steady) / 20 // half of a change in 14 s
	}
}

// gap takes note of the pause before a frame.
func (h *Health) gap(now time.Time) {
	if now.Sub(h.gapsAt) > gapTime {
		h.gaps[1], h.gaps[0] = h.gaps[0], [gapTimes]time.Duration{}
		h.gapsAt = now
	}
	gap := now.Sub(h.frameAt)
	for i := range h.gaps[0] { // the longest first
		if gap > h.gaps[0][i] {
			gap, h.gaps[0][i] = h.gaps[0][i], gap
		}
	}
}

// usual returns the longest pause that came often enough lately.
func (h *Health) usual() time.Duration {
	return max(h.gaps[0][gapTimes-1], h.gaps[1][gapTimes-1])
}

// Alive takes note of a link tag. idle says that the upstream has nothing newer than
// what it has sent.
func (h *Health) Alive(now time.Time, idle bool) {
	h.at, h.linkAt, h.links, h.idle = now, now, true, idle
}

// Link is Alive for a link tag that says when it was sent, on the clock of the
// upstream. If it took longer than others did, the link is what is slow: what the
// upstream has sent may be lying in a buffer.
func (h *Health) Link(now, sent time.Time, idle bool) {
	d := now.Sub(sent)
	if !h.links || now.Sub(h.transitAt) > bestSeconds*time.Second {
		h.transit[1], h.transit[0] = h.transit[0], d
		if !h.links {
			h.transit[1] = d
		}
		h.transitAt = now
	}
	h.transit[0] = min(h.transit[0], d)
	h.Alive(now, idle && d-min(h.transit[0], h.transit[1]) < h.cfg.Late/2)
}

// late returns how far the connection is behind its best.
func (h *Health) late(now time.Time) time.Duration {
	if !h.begun {
		return 0
	}
	best := int64(math.MaxInt64)
	for _, b := range h.best {
		best = min(best, b)
	}
	if best == math.MaxInt64 {
		return now.Sub(h.frameAt)
	}
	return ms(h.delay(now) - best)
}

// Verdict judges the connection.
func (h *Health) Verdict(now time.Time) Verdict {
	usual := h.usual()
	silence, late := max(h.cfg.Silence, usual*3/2), max(h.cfg.Late, usual*3/2)
	if h.links {
		silence = h.cfg.LinkSilence
	}
	behind := h.late(now) >= late
	switch {
	case now.Sub(h.at) >= silence:
		return Silent
	case !h.begun:
		return Starting
	case behind && h.links && h.idle && now.Sub(h.linkAt) < h.cfg.LinkSilence:
		return SourceIdle
	case behind:
		return Slow
	case h.steps > steadySeconds && h.fps < thinRate*h.steady:
		return Thin
	}
	return Good
}

// Figures returns what Verdict looks at.
func (h *Health) Figures(now time.Time) Figures {
	f := Figures{FPS: h.fps, Steady: h.steady, Late: h.late(now), Silence: now.Sub(h.at), Gap: h.usual()}
	if h.begun {
		f.Flowing = now.Sub(h.firstAt)
		f.Recent, f.Short, f.Long = h.pace(now, h.cfg.Judge), h.pace(now, shortWindow), h.pace(now, longWindow)
	}
	return f
}
