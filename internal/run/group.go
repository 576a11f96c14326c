package run

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Component is one thing that runs as long as the program does.
type Component struct {
	Name  string
	Stage int // components of a higher stage stop earlier; of the same, together
	Run   func(context.Context) error
}

// Parts are the components of a program.
type Parts []Component

// Add adds a component.
func (p *Parts) Add(name string, stage int, f func(context.Context) error) {
	*p = append(*p, Component{Name: name, Stage: stage, Run: f})
}

// slowStop is after how long a component that does not stop is told of.
const slowStop = 10 * time.Second

// Group runs all components until ctx ends or the first of them returns, and
// then stops them stage by stage, the last stage first. It returns when all have
// returned: nil if ctx ended it, else the error of the first. The order of parts
// does not matter.
func Group(ctx context.Context, parts []Component, log *slog.Logger) error {
	type end struct {
		part int
		err  error
	}
	ends := make(chan end, len(parts)) // one for each, never closed
	cancels := make([]context.CancelFunc, len(parts))
	running := make([]bool, len(parts))
	highest := 0
	for i, p := range parts {
		// Not a child of ctx: that would stop all at once.
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		cancels[i], running[i] = cancel, true
		highest = max(highest, p.Stage)
		go func() { ends <- end{i, p.Run(own)} }()
	}

	var first error
	note := func(e end) {
		running[e.part] = false
		if e.err != nil && first == nil {
			first = fmt.Errorf("%s: %w", parts[e.part].Name, e.err)
		}
	}
	select {
	case <-ctx.Done():
	case e := <-ends:
		if note(e); first == nil {
			first = fmt.Errorf("%s: returned before its time", parts[e.part].Name)
		}
	}

	slow := time.NewTicker(slowStop)
	defer slow.Stop()
	for stage := highest; stage >= 0; stage-- {
		for i, p := range parts {
			if p.Stage == stage {
				cancels[i]()
			}
		}
		for waiting(parts, running, stage) != "" {
			select {
			case e := <-ends:
				note(e)
			case <-slow.C:
				log.Warn("still stopping", "component", waiting(parts, running, stage))
			}
		}
	}
	return first
}

// waiting returns the name of a component of the stage that has not returned.
func waiting(parts []Component, running []bool, stage int) string {
	for i, p := range parts {
		if p.Stage == stage && running[i] {
			return p.Name
		}
	}
	return ""
}
