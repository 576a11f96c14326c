package run

import (
	"cmp"
	"crypto/rand"
	"io"
	"log/slog"
	"strings"
	"time"
)

// LogPatience is how long the end waits for whoever reads the log.
const LogPatience = time.Second

// Program is one that is built: its listeners are open, and nothing runs.
type Program interface {
	// Banner tells a person at a terminal what to do next.
	Banner(w io.Writer)
	// Run runs the program until a signal or a failure ends it.
	Run(sigs Signals) error
}

// Start has a program built and runs it, with a log of so much in a format on w. It
// returns the exit code: what went wrong is in the log.
func Start(level slog.Level, format string, w io.Writer, sigs Signals, build func(Output) (Program, error)) int {
	written := NewSpool(w)
	defer written.Close(LogPatience)
	out := NewLog(level, format, written)
	p, err := build(out)
	if err != nil {
		for _, e := range Reasons(err) {
			out.Log.Error("cannot start", "err", e)
		}
		return Refused
	}
	if out.Terminal {
		p.Banner(w)
	}
	if err := p.Run(sigs); err != nil {
		out.Log.Error("ended by a failure", "err", err)
		return Failed
	}
	out.Log.Info("ended")
	return OK
}

// ID returns the id of a program: that of its settings, or else one that no other has.
func ID(set, program string) string {
	return cmp.Or(set, program+"-"+strings.ToLower(rand.Text()[:10]))
}
