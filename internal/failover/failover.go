// Package failover decides when a stream leaves its upstream, how another is tried
// beside it, and where the two are joined so that no viewer notices.
//
//   - [Health] judges one connection: Good, Slow, Silent and so on.
//   - [Trial] is a candidate that flows beside the current connection.
//   - [Policy] looks at all of them and says what to do: try, switch, give up.
//   - [Pool] is the ordered list of upstreams and what is remembered of each.
//   - [Splicer] joins the tags of one connection after another into one stream, in
//     which each frame stands once, in order, on a clock that never goes back. It
//     remembers what it forwarded in a [Window] of digests.
//
// What the pieces promise, and what was refused, is in README.md. The package does
// no I/O, reads no clock, and locks nothing: the caller's mutex guards it all.
package failover

import (
	"errors"
	"fmt"
	"time"
)

// Config holds the thresholds of health, trials and policy.
type Config struct {
	// Late is how far a connection may fall behind its own best before it is slow.
	// Lower reacts sooner, and tries candidates for nothing more often.
	Late time.Duration
	// LinkSilence is how long nothing at all may come over a link that carries link
	// tags, which come every 250 ms.
	LinkSilence time.Duration
	// Silence is the same for connections without link tags. A stream whose usual
	// gaps are longer is given one and a half of those.
	Silence time.Duration
	// SourceIdle is how long a source may send nothing, or less than it should, while
	// the link is well, before somebody else is asked.
	SourceIdle time.Duration
	// Lead is how much newer than the current connection a candidate must be to win.
	Lead time.Duration
	// Judge is how long a candidate is watched before its pace is believed.
	Judge time.Duration
	// Stagger is how long one candidate has before the next is dialled beside it;
	// StaggerLost the same while there is no current connection.
	Stagger, StaggerLost time.Duration
	// TrialTime is how long a candidate may take to show that it is better, and MediaTime
	// how long for its first frame while there is no current connection and another
	// candidate waits.
	TrialTime, MediaTime time.Duration
	// HoldOff is the pause after trials that found nothing better; it doubles up to
	// MaxHoldOff, and is forgotten when the connection was well for Calm.
	HoldOff, MaxHoldOff, Calm time.Duration
	// TrialBytes and TrialMedia bound what a trial keeps.
	TrialBytes int
	TrialMedia time.Duration
}

// DefaultConfig returns the thresholds that the promises of the README were measured
// with.
func DefaultConfig() Config {
	return Config{
		Late:        250 * time.Millisecond,
		LinkSilence: 600 * time.Millisecond,
		Silence:     time.Second,
		SourceIdle:  2500 * time.Millisecond,
		Lead:        300 * time.Millisecond,
		Judge:       450 * time.Millisecond,
		Stagger:     500 * time.Millisecond,
		StaggerLost: 250 * time.Millisecond,
		TrialTime:   3 * time.Second,
		MediaTime:   time.Second,
		HoldOff:     2 * time.Second,
		MaxHoldOff:  time.Minute,
		Calm:        time.Minute,
		TrialBytes:  8 << 20,
		TrialMedia:  20 * time.Second,
	}
}

// Validate reports what in c cannot work.
func (c Config) Validate() error {
	var errs []error
	for _, d := range []struct {
		name     string
		got      time.Duration
		min, max time.Duration
	}{
		{"late", c.Late, 50 * time.Millisecond, 10 * time.Second},
		{"link_silence", c.LinkSilence, 300 * time.Millisecond, time.Minute},
		{"silence", c.Silence, 300 * time.Millisecond, time.Minute},
		{"source_idle", c.SourceIdle, 500 * time.Millisecond, 10 * time.Minute},
		{"lead", c.Lead, 50 * time.Millisecond, 10 * time.Second},
		{"judge", c.Judge, 200 * time.Millisecond, 5 * time.Second},
		{"stagger", c.Stagger, 50 * time.Millisecond, time.Minute},
		{"stagger_lost", c.StaggerLost, 10 * time.Millisecond, time.Minute},
		{"media_time", c.MediaTime, 100 * time.Millisecond, time.Minute},
		{"trial_time", c.TrialTime, c.Judge, time.Minute},
		{"hold_off", c.HoldOff, 500 * time.Millisecond, time.Hour},
		{"max_hold_off", c.MaxHoldOff, c.HoldOff, 24 * time.Hour},
		{"calm", c.Calm, time.Second, 24 * time.Hour},
		{"trial_media", c.TrialMedia, time.Second, 5 * time.Minute},
	} {
		if d.got < d.min || d.got > d.max {
			errs = append(errs, fmt.Errorf("%s must be between %v and %v, is %v", d.name, d.min, d.max, d.got))
		}
	}
	if c.TrialBytes < 1<<20 || c.TrialBytes > 1<<30 {
		errs = append(errs, fmt.Errorf("trial_bytes must be between 1 MiB and 1 GiB, is %d", c.TrialBytes))
	}
	return errors.Join(errs...)
}
