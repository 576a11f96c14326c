package frames

import (
	"context"
	"time"

	"millrace/internal/flv"
)

// Play writes the headers at once and each frame when it is due, until ctx ends, which is
// no error.
func (g *Generator) Play(ctx context.Context, write func(flv.Tag) error) error {
	for _, h := range g.Headers() {
		if err := write(h); err != nil {
			return err
		}
	}
	begin := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(time.Until(begin.Add(g.Due())))
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if err := write(g.Next(time.Now())); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}
