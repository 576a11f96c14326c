package drill

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"millrace/tools/pull"
)

// View is what one viewer saw.
type View struct {
	Node     string  `json:"node"`
	Stream   string  `json:"stream"`
	Frames   int     `json:"frames"`
	First    float64 `json:"first_ms"`  // from asking to the first frame
	Before   float64 `json:"before_ms"` // longest gap before the window
	Gap      float64 `json:"gap_ms"`    // longest gap in the window
	Stalls   int     `json:"stalls"`    // of a player with a buffer of one second
	Stalled  float64 `json:"stalled_ms"`
	Repeated uint64  `json:"repeated"`
	Missing  uint64  `json:"missing"`
	Clock    uint64  `json:"clock_faults"`
	Other    uint64  `json:"other_faults"`
	Error    string  `json:"error,omitempty"` // why it ended too early
}

// buffer is that of the player model.
const buffer = time.Second

// calibration is how long the player model looks for the quickest frame.
const calibration = time.Second

// view sums up what a viewer saw. The window is from the time from, or is empty if
// that is zero. The player has the given buffer.
func (v *viewer) view(from time.Time, buffer time.Duration) View {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := &v.check.Faults
	out := View{
		Node: v.node, Stream: v.stream, Frames: len(v.frames), Missing: missing(v.frames), Repeated: f[pull.Repeated],
		Clock: f[pull.ClockBack] + f[pull.ClockShifted],
	}
	out.Other = f.Total() - out.Repeated - out.Clock - f[pull.Missing]
	if v.err != nil {
		out.Error = v.err.Error()
	}
	if len(v.frames) == 0 {
		return out
	}
	out.First = ms(v.frames[0].at.Sub(v.asked))
	for i, x := range v.frames[1:] {
		gap := ms(x.at.Sub(v.frames[i].at))
		if from.IsZero() || x.at.Before(from) {
			out.Before = max(out.Before, gap)
		} else {
			out.Gap = max(out.Gap, gap)
		}
	}
	var stalled time.Duration
	out.Stalls, stalled = stalls(v.frames, buffer)
	out.Stalled = ms(stalled)
	return out
}

// missing counts the numbers between the first and the last of each epoch that did
// not come. The order of the frames does not matter.
func missing(frames []frame) (n uint64) {
	type span struct {
		least, most int64
		came        map[int64]bool
	}
	epochs := map[int64]*span{}
	for _, f := range frames {
		s := epochs[f.epoch]
		if s == nil {
			s = &span{f.seq, f.seq, map[int64]bool{}}
			epochs[f.epoch] = s
		}
		s.least, s.most = min(s.least, f.seq), max(s.most, f.seq)
		s.came[f.seq] = true
	}
	for _, s := range epochs {
		n += uint64(s.most-s.least+1) - uint64(len(s.came))
	}
	return n
}

// holes says which numbers are missing, when the frame behind each hole came, since a
// time, and how long after the one before it.
func holes(frames []frame, since time.Time) string {
	var out []string
	byNumber := slices.SortedFunc(slices.Values(frames), func(a, b frame) int {
		return cmp.Or(cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.seq, b.seq))
	})
	for i := 1; i < len(byNumber) && len(out) < 10; i++ {
		before, f := byNumber[i-1], byNumber[i]
		if n := f.seq - before.seq - 1; f.epoch == before.epoch && n > 0 {
			out = append(out, fmt.Sprintf("%d behind %d (%.0f ms, %.0f after that)", n, before.seq, ms(f.at.Sub(since)), ms(f.at.Sub(before.at))))
		}
	}
	return strings.Join(out, ", ")
}

// runs says which frames came in a row, of which publish, when, and by how much their
// times differ from the publisher's.
func runs(frames []frame) string {
	var out []string
	for from := 0; from < len(frames); {
		a := frames[from]
		to := from + 1
		for to < len(frames) && frames[to].epoch == a.epoch && frames[to].time-frames[to].media == a.time-a.media &&
			frames[to].seq == frames[to-1].seq+1 {
			to++
		}
		z := frames[to-1]
		out = append(out, fmt.Sprintf("%s to %s: %d to %d of %s, %+d ms", a.at.Format("05.000"), z.at.Format("05.000"),
			a.seq, z.seq, time.UnixMilli(a.epoch).Format("05.000"), a.time-a.media))
		from = to
	}
	return strings.Join(out, "; ")
}

// stalls plays the frames with a buffer at live, and returns how often and for how long
// the player stood; frames that are late one after another are one
// stall. A new epoch begins with a buffer of its own.
// The frames by which the player finds out where live is are no stalls: those at the
// beginning of a GOP may be older than the buffer, and are passed over.
func stalls(frames []frame, buffer time.Duration) (n int, total time.Duration) {
	var offset time.Duration // when the media time 0 is played, after the first frame
	var known time.Duration  // from then on
	var epoch int64
	stands := false
	for i, f := range frames {
		at := f.at.Sub(frames[0].at)
		media := time.Duration(f.media) * time.Millisecond
		if i == 0 || f.epoch != epoch {
			epoch, offset, known = f.epoch, quickest(frames[i:], frames[0].at)+buffer, at+calibration
		}
		late := at - (offset + media)
		if late <= 0 || at <= known {
			stands = false
			continue
		}
		if !stands {
			n++
		}
		stands = true
		total += late
		offset += late
	}
	return n, total
}

// quickest returns the least time from media time to arrival among the first frames.
func quickest(frames []frame, zero time.Time) time.Duration {
	least := time.Duration(1<<63 - 1)
	for _, f := range frames {
		if f.at.Sub(frames[0].at) > calibration || f.epoch != frames[0].epoch {
			break
		}
		least = min(least, f.at.Sub(zero)-time.Duration(f.media)*time.Millisecond)
	}
	return least
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
