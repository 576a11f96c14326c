// Package clip is the test stream of `make demo` and of the tests that need frames
// which a browser really decodes: eight seconds of H.264 and AAC, in the binary, to
// be looped with a continuous clock. make.sh made it, and says why it has no seam.
package clip

import (
	"bytes"
	_ "embed" // clip.flv
	"fmt"
	"io"
	"time"

	"millrace/internal/flv"
)

//go:embed clip.flv
var file []byte

// Duration is the length of the clip: 240 video frames and 375 AAC frames.
const Duration = 8 * time.Second

// Loop hands out the tags of the clip over and over. It is for one goroutine.
type Loop struct {
	start  []flv.Tag // metadata and sequence headers, sent once
	frames []flv.Tag // one round
	at     int
	round  int64
}

// NewLoop returns a Loop at the beginning of the clip.
func NewLoop() (*Loop, error) {
	l := &Loop{}
	r := flv.NewReader(bytes.NewReader(file), 1<<20)
	for {
		t, err := r.Read()
		if err == io.EOF {
			return l, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the clip: %w", err)
		}
		if t.Is(flv.Frame) {
			l.frames = append(l.frames, t)
		} else if len(l.frames) == 0 {
			l.start = append(l.start, t)
		}
	}
}

// Next returns the next tag, with bytes of its own: first metadata and sequence
// headers, then frames without end. Times begin at 0 and go on from round to round.
func (l *Loop) Next() flv.Tag {
	if len(l.start) > 0 {
		t := l.start[0]
		l.start = l.start[1:]
		return flv.New(t.Kind, 0, t.Payload())
	}
	t := l.frames[l.at]
	dts := t.DTS + l.round*Duration.Milliseconds()
	if l.at++; l.at == len(l.frames) {
		l.at = 0
		l.round++
	}
	return flv.New(t.Kind, dts, t.Payload())
}
