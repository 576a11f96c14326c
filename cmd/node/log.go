package main

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"

	"millrace/internal/config"
)

// output is the log of the node and what can be changed about it.
type output struct {
	log      *slog.Logger
	level    *slog.LevelVar
	terminal bool // a person reads along
}

// newLog returns a log that writes to w.
func newLog(cfg config.Log, w io.Writer) output {
	out := output{level: new(slog.LevelVar)}
	out.level.Set(cfg.Level)
	f, ok := w.(*os.File)
	tty := ok && term.IsTerminal(int(f.Fd()))
	opt := &slog.HandlerOptions{Level: out.level, ReplaceAttr: readable}
	if cfg.Format == "text" || cfg.Format == "auto" && tty {
		out.log, out.terminal = slog.New(slog.NewTextHandler(w, opt)), tty
		return out
	}
	out.log = slog.New(slog.NewJSONHandler(w, opt))
	return out
}

// readable writes durations as people do, in JSON too: 1.5s, not 1500000000.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
