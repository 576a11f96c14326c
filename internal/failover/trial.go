package failover

import (
	"time"

	"millrace/internal/flv"
)

// trialOverlap is how much, in ms, a trial keeps of what was forwarded already when
// its room gets short: enough to be aligned again.
const trialOverlap = 3000

// Trial is a candidate that flows beside the current connection. It keeps the tags
// that come, so that nothing is lost if it wins. Once it has won, its Health goes on
// as that of the current connection, and the rest can be let go.
type Trial struct {
	*Health
	cfg   *Config
	tags  []flv.Tag
	marks []mark
	bytes int
	since time.Time // of the first unit

	newest  int64 // time of the newest frame, on its own clock
	any     bool
	offset  int64 // to the forwarded clock
	aligned bool
	now     time.Time // when the last tag came
}

// NewTrial returns the trial of a candidate that is dialled at now.
func NewTrial(cfg *Config, now time.Time) *Trial {
	return &Trial{Health: NewHealth(cfg, now), cfg: cfg, now: now}
}

// Take keeps a tag of the candidate. It returns false if that is over the bound: the
// trial must be given up.
func (t *Trial) Take(now time.Time, tag flv.Tag) bool {
	t.Came(now, tag)
	t.now = now
	t.tags = append(t.tags, tag)
	t.bytes += len(tag.Wire)
	if tag.Is(flv.Frame) && t.any && jumped(tag.DTS-t.newest) {
		// Its clock restarted: what is known of it is worth nothing any more.
		t.any, t.aligned, t.marks = false, false, nil
	}
	if unit(tag) {
		t.marks = append(t.marks, markOf(tag))
		if t.since.IsZero() {
			t.since = now
		}
	}
	if tag.Is(flv.Frame) && (!t.any || tag.DTS > t.newest) {
		t.newest, t.any = tag.DTS, true
	}
	return t.bytes <= t.cfg.TrialBytes &&
		(len(t.marks) == 0 || ms(t.newest-t.marks[0].dts) <= t.cfg.TrialMedia)
}

// Restart tells that another publish begins on the candidate: what came so far is of
// the one before, and is let go.
func (t *Trial) Restart() {
	t.tags, t.marks, t.bytes, t.since = nil, nil, 0, time.Time{}
	t.any, t.aligned = false, false
	t.Renew()
}

// Lead returns how much newer the candidate's newest frame is than the newest that
// was forwarded. aligned is false while that cannot be known. sameClock says that
// the candidate and the current connection are known to have one clock.
func (t *Trial) Lead(w *Window, sameClock bool) (lead time.Duration, aligned bool) {
	if !t.any || !w.any || len(t.marks) == 0 {
		return 0, false
	}
	if !t.aligned {
		known := clock{offset: w.offset, known: w.joined, same: sameClock}
		final := t.now.Sub(t.since) >= patience
		e, ok := newAligner(w).align(t.marks, known, final)
		if !ok {
			return 0, false
		}
		t.offset, t.aligned = e.offset, true
	}
	if t.bytes > t.cfg.TrialBytes/2 || ms(t.newest-t.marks[0].dts) > t.cfg.TrialMedia/2 {
		if dts := w.newest - t.offset - trialOverlap; t.marks[0].dts < dts-trialOverlap/3 {
			t.trim(dts)
		}
	}
	return ms(t.newest + t.offset - w.newest), true
}

// trim lets go of the units before dts, but not of headers and metadata.
func (t *Trial) trim(dts int64) {
	tags, marks := t.tags, t.marks
	t.tags, t.marks, t.bytes = nil, nil, 0
	for i, tag := range tags {
		if unit(tag) && tag.DTS < dts {
			continue
		}
		if !unit(tag) && superseded(tag, tags[i+1:], dts) {
			continue
		}
		t.tags = append(t.tags, tag)
		t.bytes += len(tag.Wire)
	}
	for _, m := range marks {
		if m.dts >= dts {
			t.marks = append(t.marks, m)
		}
	}
}

// superseded reports whether another description like d comes before a unit of the
// time dts.
func superseded(d flv.Tag, rest []flv.Tag, dts int64) bool {
	for _, t := range rest {
		if unit(t) && t.DTS >= dts {
			return false
		}
		if !unit(t) && t.Kind == d.Kind {
			return true
		}
	}
	return false
}

// Backlog returns the tags so far, for [Splicer.Join].
func (t *Trial) Backlog() []flv.Tag { return t.tags }
