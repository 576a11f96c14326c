package failover

import (
	"time"

	"github.com/cespare/xxhash/v2"

	"millrace/internal/flv"
)

// perTrack is how many units of one track a window remembers: 34 s of video at 60
// frames a second, 43 s of AAC at 48 kHz. With 12 bytes a unit that is 48 KiB for
// the two tracks that matter; script data is rare and gets little.
const (
	perTrack  = 2048
	perScript = 128
)

// The tracks of a stream.
const (
	video = iota
	audio
	script
	tracks
)

func trackOf(k flv.Kind) int {
	switch k {
	case flv.Video:
		return video
	case flv.Audio:
		return audio
	}
	return script
}

// unit reports whether t has a place in the sequence of its track. Sequence headers
// and metadata have not: they describe what follows, and come again at every joint.
func unit(t flv.Tag) bool { return t.Flags&(flv.Header|flv.Metadata) == 0 }

func digest(t flv.Tag) uint64 { return xxhash.Sum64(t.Payload()) }

// Window remembers what was forwarded of a stream: for each track the digests of the
// newest units with their times. It takes less than 64 KiB, all of it at the start.
type Window struct {
	tracks [tracks]ring
	offset int64 // from the clock of the current connection to the forwarded one
	joined bool  // offset is valid
	newest int64 // time of the newest frame
	any    bool
}

// NewWindow returns an empty window.
func NewWindow() *Window {
	w := &Window{}
	w.tracks[video].make(perTrack)
	w.tracks[audio].make(perTrack)
	w.tracks[script].make(perScript)
	return w
}

// Add remembers t, whose DTS is on the forwarded clock. It does not keep t.
func (w *Window) Add(t flv.Tag) {
	if unit(t) {
		w.add(trackOf(t.Kind), digest(t), t.DTS, t.Is(flv.Frame))
	}
}

// forget lets go of all units. The clock goes on.
func (w *Window) forget() {
	for i := range w.tracks {
		w.tracks[i].total, w.tracks[i].last = 0, 0
	}
}

// empty reports whether there are no units of pictures and sound.
func (w *Window) empty() bool { return w.tracks[video].total+w.tracks[audio].total == 0 }

// main returns the track that decides whether two connections overlap.
func (w *Window) main() int {
	if w.tracks[video].total > 0 {
		return video
	}
	return audio
}

func (w *Window) add(track int, sum uint64, dts int64, frame bool) {
	w.tracks[track].add(sum, dts)
	if frame && (!w.any || dts > w.newest) {
		w.newest, w.any = dts, true
	}
}

// Newest returns the time of the newest frame; ok is false if there was none.
func (w *Window) Newest() (dts int64, ok bool) { return w.newest, w.any }

// ring holds the newest units of one track, numbered from 0 as they came:
//
//	      oldest()             total
//	         |                   |
//	... x x [a b c d e f g h i j]
type ring struct {
	sums  []uint64
	times []uint32 // low bits; the high ones are those of the newest
	total int      // number of the next unit
	last  int64    // time of the newest unit
}

func (r *ring) make(n int) { r.sums, r.times = make([]uint64, n), make([]uint32, n) }

func (r *ring) add(sum uint64, dts int64) {
	i := r.total & (len(r.sums) - 1)
	r.sums[i], r.times[i] = sum, uint32(dts)
	r.total++
	r.last = dts
}

func (r *ring) oldest() int { return max(0, r.total-len(r.sums)) }

func (r *ring) sum(i int) uint64 { return r.sums[i&(len(r.sums)-1)] }

func (r *ring) time(i int) int64 {
	return r.last + int64(int32(r.times[i&(len(r.sums)-1)]-uint32(r.last)))
}

func ms(v int64) time.Duration { return time.Duration(v) * time.Millisecond }
