package clip

import (
	"context"
	"time"

	"millrace/internal/flv"
)

// Play writes tags without end, each when its time has come, until ctx is done or
// write fails. Times count from the moment of the call, so a slow write is caught up
// with and never shifts what follows. It returns nil when ctx ended it.
func (l *Loop) Play(ctx context.Context, write func(flv.Tag) error) error {
	start := time.Now()
	var first int64 = -1
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		t := l.Next()
		if first < 0 {
			first = t.DTS
		}
		if wait := time.Until(start.Add(time.Duration(t.DTS-first) * time.Millisecond)); wait > 0 {
			timer.Reset(wait)
			select {
			case <-ctx.Done():
				return nil
			case <-timer.C:
			}
		} else if ctx.Err() != nil {
			return nil
		}
		if err := write(t); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}
