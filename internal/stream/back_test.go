package stream

import (
	"encoding/binary"
	"testing"
	"time"

	"millrace/internal/flv"
)

// A reader that goes back into what came all at once may be as far behind as it went back.
func TestCursorGoesBackIntoWhatCameAtOnce(t *testing.T) {
	f := newFeed(t, func(c *Config) { c.LogDuration = 30 * time.Second })
	came := epoch
	i := int64(0)
	write := func(frames int, every time.Duration) {
		for range frames {
			head := byte(0x27)
			if i%50 == 0 {
				head = 0x17
			}
			came = came.Add(every)
			tag := flv.New(flv.Video, 40*i, binary.BigEndian.AppendUint32([]byte{head, 1, 0, 0, 0}, uint32(i)))
			if err := f.pub.Write(came, tag); err != nil {
				t.Fatal(err)
			}
			i++
		}
	}
	write(500, 0) // twenty seconds
	c := f.stream().NewCursor(CursorOptions{KeepClock: true, Back: 15 * time.Second})
	var tags [6]flv.Tag
	for range 200 { // it takes three frames while two come
		c.Advance(min(3, c.Peek(tags[:])))
		write(2, 40*time.Millisecond)
	}
	if s := c.Skips(); s.Total() != 0 {
		t.Errorf("skips %+v", s)
	}
}
