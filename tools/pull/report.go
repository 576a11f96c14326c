package pull

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Group is what viewers of one [Kind] saw.
type Group struct {
	Viewers     int       `json:"viewers"`
	FirstFrames int       `json:"first_frames"` // viewers that got one
	Closed      int       `json:"closed"`       // viewers whose connection ended before the run did
	Frames      uint64    `json:"frames"`
	Skips       uint64    `json:"skips"`
	Skipped     uint64    `json:"skipped_frames"`
	Epochs      uint64    `json:"publisher_restarts"`
	Delay       Quantiles `json:"delay"`
}

// Slice is the delay of normal viewers in a piece of the measuring time.
type Slice struct {
	Begin float64   `json:"begin_s"`
	Delay Quantiles `json:"delay"`
}

// Server is what a server process used.
type Server struct {
	PID          int     `json:"pid"`
	CPU          float64 `json:"cpu_s"`        // in the measuring time
	CPUPerGB     float64 `json:"cpu_s_per_gb"` // per 10^9 bytes that all viewers read
	RSSBefore    int64   `json:"rss_before"`   // before the first join
	RSSAfter     int64   `json:"rss_after"`    // at the end
	PSSAfter     int64   `json:"pss_after"`
	RSSPerViewer int64   `json:"rss_per_viewer"`
}

// Report is the outcome of a run.
type Report struct {
	Seconds    float64           `json:"seconds"` // measured
	Bytes      uint64            `json:"bytes"`   // read in the measuring time, HTTP included
	Normal     Group             `json:"normal"`
	Slow       Group             `json:"slow"`
	Frozen     Group             `json:"frozen"`
	FirstFrame Quantiles         `json:"first_frame"` // connect to the first keyframe's last byte
	Recovered  Quantiles         `json:"recovered"`   // of thawed viewers: until a frame was at most 1 s old
	Slices     []Slice           `json:"slices,omitempty"`
	Faults     map[string]uint64 `json:"faults"`
	Errors     map[string]uint64 `json:"errors"`
	Servers    []Server          `json:"servers,omitempty"`
	OwnCPU     float64           `json:"own_cpu_s"` // of the viewers
}

// OK reports whether every viewer got its first frame and normal ones stayed, and
// all frames were as they should be.
func (r *Report) OK() bool {
	for _, g := range []*Group{&r.Normal, &r.Slow, &r.Frozen} {
		if g.FirstFrames < g.Viewers {
			return false
		}
	}
	return len(r.Faults) == 0 && len(r.Errors) == 0 && r.Normal.Closed == 0
}

// Write prints the report for people.
func (r *Report) Write(w io.Writer) {
	fmt.Fprintf(w, "measured %.1f s: %.3f GB, %.1f Mbit/s; own CPU %.2f s\n",
		r.Seconds, float64(r.Bytes)/1e9, float64(r.Bytes)*8/1e6/max(r.Seconds, 1e-9), r.OwnCPU)
	group := func(name string, g *Group) {
		if g.Viewers == 0 {
			return
		}
		fmt.Fprintf(w, "%-7s %d viewers, %d with a first frame, %d closed early, %d frames, %d skips (%d frames), delay %v\n",
			name, g.Viewers, g.FirstFrames, g.Closed, g.Frames, g.Skips, g.Skipped, g.Delay)
	}
	group("normal", &r.Normal)
	group("slow", &r.Slow)
	group("frozen", &r.Frozen)
	fmt.Fprintf(w, "first frame %v\n", r.FirstFrame)
	if r.Recovered.Count > 0 {
		fmt.Fprintf(w, "near live again after a thaw %v\n", r.Recovered)
	}
	for _, s := range r.Slices {
		fmt.Fprintf(w, "from %5.1f s: delay %v\n", s.Begin, s.Delay)
	}
	for _, s := range r.Servers {
		fmt.Fprintf(w, "pid %d: CPU %.2f s, %.3f s/GB; RSS %.1f -> %.1f MiB, %.1f KiB a viewer; PSS %.1f MiB\n", s.PID, s.CPU, s.CPUPerGB,
			float64(s.RSSBefore)/(1<<20), float64(s.RSSAfter)/(1<<20), float64(s.RSSPerViewer)/1024, float64(s.PSSAfter)/(1<<20))
	}
	fmt.Fprintf(w, "faults: %s; errors: %s\n", counts(r.Faults), counts(r.Errors))
	if r.Faults[Unstamped.String()] > 0 {
		fmt.Fprintln(w, "unstamped frames are not flvgen's, and nothing can be said about them: pull a stream that flvgen publishes")
	}
}

// String returns the quantiles on one line.
func (q Quantiles) String() string {
	if q.Count == 0 {
		return "-"
	}
	return fmt.Sprintf("p50 %.2f p90 %.2f p99 %.2f max %.2f ms", q.P50, q.P90, q.P99, q.Max)
}

func counts(m map[string]uint64) string {
	if len(m) == 0 {
		return "none"
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fmt.Sprintf("%s %d", k, m[k]))
	}
	return strings.Join(out, ", ")
}

// report adds up what the workers have.
func report(cfg Config, workers []*worker) *Report {
	r := &Report{Faults: map[string]uint64{}, Errors: map[string]uint64{}}
	groups := [kinds]*Group{&r.Normal, &r.Slow, &r.Frozen}
	var delay [kinds]Histogram
	var first, recovered Histogram
	var faults Faults
	var slicesOf []Histogram
	for _, w := range workers {
		for k := range delay {
			delay[k].Merge(&w.delay[k])
		}
		first.Merge(&w.first)
		recovered.Merge(&w.recovered)
		for i := range w.slices {
			if i == len(slicesOf) {
				slicesOf = append(slicesOf, Histogram{})
			}
			slicesOf[i].Merge(&w.slices[i])
		}
		for text, n := range w.errors {
			r.Errors[text] += n
		}
		for _, v := range w.viewers {
			g, c := groups[v.kind], &v.check
			g.Viewers++
			g.Frames += c.Frames
			g.Skips += c.Skips
			g.Skipped += c.Skipped
			g.Epochs += c.Epochs
			if v.first {
				g.FirstFrames++
			}
			if v.closed {
				g.Closed++
			}
			for i, n := range c.Faults {
				faults[i] += n
			}
		}
	}
	for k, g := range groups {
		g.Delay = delay[k].Quantiles()
	}
	r.FirstFrame, r.Recovered, r.Faults = first.Quantiles(), recovered.Quantiles(), faults.Words()
	for i := range slicesOf {
		r.Slices = append(r.Slices, Slice{(time.Duration(i) * cfg.Slice).Seconds(), slicesOf[i].Quantiles()})
	}
	return r
}
