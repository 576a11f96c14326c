package upstream

import (
	"errors"
	"time"
)

const (
	// muteTime is how long a center may leave a ping unanswered; with the time from one
	// beat to the next a frozen one is left within 1.2 s.
	muteTime = 900 * time.Millisecond
	// maxMuteTime bounds it where one center after another seems mute.
	maxMuteTime = 8 * time.Second
)

// errMute ends a push to a center that answers nothing any more.
var errMute error = mute{errors.New("the center answers no ping")}

// mute is a time-out, as far as [failureOf] is concerned.
type mute struct{ error }

// Timeout implements [net.Error].
func (mute) Timeout() bool { return true }

// Temporary implements [net.Error].
func (mute) Temporary() bool { return false }

// pulse tells a center that is frozen from one that has nothing to say. Its kernel takes
// what is pushed for as long as there is room, and a thin stream fills that in minutes.
// One ping is under way at a time. A center that has never answered one is not judged: it
// may not know how.
type pulse struct {
	limit    time.Duration
	asked    time.Time // zero before the first
	answered bool
}

// beat says whether it is time for a ping, or for another center. heard is when anything
// came last.
func (p *pulse) beat(now, heard time.Time) (ask bool, err error) {
	switch {
	case p.asked.IsZero():
	case heard.After(p.asked):
		p.answered = true
	case p.answered && now.Sub(p.asked) >= p.limit:
		return false, errMute
	default:
		return false, nil
	}
	p.asked = now
	return true, nil
}
