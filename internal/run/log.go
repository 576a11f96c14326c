package run

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"
)

// Output is the log of a program and what can be changed about it.
type Output struct {
	Log      *slog.Logger
	Level    *slog.LevelVar
	Terminal bool // a person reads along
}

// NewLog returns a log that writes to w: as text, as JSON, or with the format "auto"
// as text on a terminal and JSON elsewhere.
func NewLog(level slog.Level, format string, w io.Writer) Output {
	out := Output{Level: new(slog.LevelVar)}
	out.Level.Set(level)
	behind := w
	s, spooled := w.(*Spool)
	if spooled {
		behind = s.to
		s.report = func(lost uint64) {
			out.Log.Warn("log lines were dropped: whoever reads the log is too slow", "count", lost)
		}
	}
	f, ok := behind.(*os.File)
	tty := ok && term.IsTerminal(int(f.Fd()))
	opt := &slog.HandlerOptions{Level: out.Level, ReplaceAttr: readable}
	if format == "text" || format == "auto" && tty {
		out.Log, out.Terminal = slog.New(slog.NewTextHandler(w, opt)), tty
		return out
	}
	out.Log = slog.New(slog.NewJSONHandler(w, opt))
	return out
}

// readable writes durations as people do, in JSON too: 1.5s, not 1500000000.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
