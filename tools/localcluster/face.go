package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"millrace/tools/cluster"
)

// keepEvents is how many of the newest events are shown.
const keepEvents = 12

// screen draws on a terminal: the prompt stays in the second line, so that what is
// being typed is never touched.
//
//	1  title
//	2  > prompt
//	3  answer to the last command
//	5  guide or help, until the next command; table; events; cut to the terminal
type screen struct {
	// Fixed at construction.
	out  io.Writer
	size func() (width, height int)

	// Owned by the caller.
	snapshot cluster.Snapshot
	events   []cluster.Event
	said     string
	helped   string
}

// Sequences of terminals since the VT100, and the xterm's for a second screen.
const (
	otherScreen = "\x1b[?1049h\x1b[2J"
	firstScreen = "\x1b[?1049l"
	saveCursor  = "\x1b7"
	oldCursor   = "\x1b8"
	clearRight  = "\x1b[K"
	clearBelow  = "\x1b[J"
	prompt      = "\x1b[2;1H\x1b[K> "
)

func (s *screen) every() time.Duration { return time.Second }

func (s *screen) begin(guide string) {
	fmt.Fprint(s.out, otherScreen)
	s.help(guide)
}

func (s *screen) end() { fmt.Fprint(s.out, firstScreen) }

func (s *screen) show(snap cluster.Snapshot) {
	s.snapshot = snap
	s.events = append(s.events, snap.Events...)
	s.events = s.events[max(0, len(s.events)-keepEvents):]
	s.draw()
}

func (s *screen) answer(command, text string, err error) {
	if err != nil {
		text = err.Error()
	}
	s.said, s.helped = strings.TrimLeft(command+": "+text, ": "), ""
	fmt.Fprint(s.out, prompt)
	s.draw()
}

func (s *screen) help(text string) {
	s.said, s.helped = "", text
	fmt.Fprint(s.out, prompt)
	s.draw()
}

func (s *screen) draw() {
	width, height := s.size()
	body := []string{s.said, ""}
	if s.helped != "" {
		body = strings.Split(s.helped, "\n")
	}
	body = append(append(body, table(s.snapshot)...), "")
	for _, e := range s.events {
		body = append(body, event(e))
	}
	body = body[:min(len(body), max(0, height-3))] // a line more would scroll
	var b strings.Builder
	title := fmt.Sprintf("localcluster  %v  %s  (Enter: the table, help, quit)", s.snapshot.Running.Truncate(time.Second), watch(s.snapshot))
	b.WriteString(saveCursor + "\x1b[1;1H" + cut(title, width) + clearRight + "\x1b[3;1H")
	for _, line := range body {
		b.WriteString(cut(line, width) + clearRight + "\r\n")
	}
	b.WriteString(clearBelow + oldCursor)
	io.WriteString(s.out, b.String())
}

// cut returns the first n characters of s.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:max(0, n)])
}

// printed writes tables one below the other, each time something has changed.
type printed struct {
	out io.Writer

	// Owned by the caller.
	last string // shape of the table that was printed last
}

func (p *printed) every() time.Duration { return 5 * time.Second }

func (p *printed) begin(guide string) { fmt.Fprint(p.out, guide) }

func (p *printed) end() {}

func (p *printed) show(s cluster.Snapshot) {
	now := shape(s)
	if now == p.last && len(s.Events) == 0 {
		return
	}
	p.last = now
	fmt.Fprintf(p.out, "\n%s, after %v\n", s.At.Local().Format(time.TimeOnly), s.Running.Truncate(time.Second))
	for _, line := range table(s) {
		fmt.Fprintln(p.out, line)
	}
	for _, e := range s.Events {
		fmt.Fprintln(p.out, event(e))
	}
}

func (p *printed) answer(command, text string, err error) {
	switch {
	case err != nil:
		fmt.Fprintf(p.out, "%s: %v\n", command, err)
	case command != "":
		fmt.Fprintf(p.out, "%s: %s\n", command, text)
	}
}

func (p *printed) help(text string) { fmt.Fprint(p.out, text) }

// lines writes a JSON object a line: a Snapshot, or what came of a command.
type lines struct{ out io.Writer }

// line is one object. Exactly one of its first two members is there.
type line struct {
	Snapshot *cluster.Snapshot `json:"snapshot,omitempty"`
	Command  string            `json:"command,omitempty"`
	Text     string            `json:"text,omitempty"`
	Error    string            `json:"error,omitempty"`
}

func (l *lines) every() time.Duration { return time.Second }

func (l *lines) begin(string) {}

func (l *lines) end() {}

func (l *lines) show(s cluster.Snapshot) { l.write(line{Snapshot: &s}) }

func (l *lines) answer(command, text string, err error) {
	out := line{Command: command, Text: text}
	if err != nil {
		out.Error = err.Error()
	}
	l.write(out)
}

func (l *lines) help(text string) { l.write(line{Command: "help", Text: text}) }

func (l *lines) write(v line) {
	// Strings and numbers cannot fail; a closed output ends the program by its signal.
	_ = json.NewEncoder(l.out).Encode(v)
}
