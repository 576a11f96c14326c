package main

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"millrace/tools/cluster"
)

// face is how the program shows what happens. Its methods are called by one
// goroutine.
type face interface {
	every() time.Duration // how often it likes to be shown something
	begin(guide string)
	show(s cluster.Snapshot)
	answer(command, text string, err error)
	help(text string)
	end()
}

// system is what the loop looks at and breaks: a [cluster.Cluster].
type system interface {
	Do(ctx context.Context, c cluster.Command) error
	Observe(ctx context.Context) cluster.Snapshot
}

// loop looks, shows, and does what it is told.
type loop struct {
	system   system
	topology cluster.Topology
	every    time.Duration // 0 leaves it to the face
	face     face
	guide    string // what to do with it
}

// done is a command that has been carried out.
type done struct {
	command string
	err     error
	took    time.Duration
}

// run goes on until ctx ends or stdin says quit. The end of stdin is not the end.
func (l loop) run(ctx context.Context, stdin io.Reader) {
	ctx, cancel := context.WithCancel(ctx)
	typed := make(chan string) // never closed; its sender may outlive the loop, as reading cannot be ended
	go read(ctx, stdin, typed)

	orders := make(chan cluster.Command, 16) // closed at the end
	answers := make(chan done)
	seen := make(chan cluster.Snapshot)
	var working sync.WaitGroup
	working.Go(func() { l.work(ctx, orders, answers) })
	working.Go(func() { l.look(ctx, seen) })
	defer working.Wait()
	defer close(orders)
	defer cancel() // runs first

	l.face.begin(l.guide)
	defer l.face.end()
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-seen:
			l.face.show(s)
		case d := <-answers:
			l.face.answer(d.command, "done in "+d.took.Round(time.Millisecond).String(), d.err)
		case text := <-typed:
			if !l.take(text, orders) {
				return
			}
		}
	}
}

// take handles a typed line; false is quit.
func (l loop) take(text string, orders chan<- cluster.Command) bool {
	switch strings.TrimSpace(text) {
	case "":
		l.face.answer("", "", nil)
	case "quit", "exit", "q":
		return false
	case "help", "?", "h":
		l.face.help(help())
	case "urls":
		l.face.help(l.guide)
	default:
		c, err := l.topology.Parse(text)
		if err != nil {
			l.face.answer(text, "", err)
			break
		}
		select {
		case orders <- c:
			l.face.answer(c.String(), "…", nil)
		default:
			l.face.answer(c.String(), "left out: too much to do", nil)
		}
	}
	return true
}

// work carries out commands, one after the other.
func (l loop) work(ctx context.Context, orders <-chan cluster.Command, answers chan<- done) {
	for c := range orders {
		begin := time.Now()
		err := l.system.Do(ctx, c)
		select {
		case answers <- done{c.String(), err, time.Since(begin)}:
		case <-ctx.Done():
			return
		}
	}
}

// look observes the cluster, at once and then regularly.
func (l loop) look(ctx context.Context, seen chan<- cluster.Snapshot) {
	tick := time.NewTicker(cmp.Or(l.every, l.face.every()))
	defer tick.Stop()
	for {
		s := l.system.Observe(ctx)
		select {
		case seen <- s:
		case <-ctx.Done():
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// read sends the lines of stdin until ctx ends, or stdin.
func read(ctx context.Context, stdin io.Reader, typed chan<- string) {
	for s := bufio.NewScanner(stdin); s.Scan(); {
		select {
		case typed <- s.Text():
		case <-ctx.Done():
			return
		}
	}
}

// help returns what can be typed.
func help() string {
	var b strings.Builder
	b.WriteString("VERB NODE, such as kill relay-1, or VERB FROM>TO for a link, such as freeze edge-1>relay-1;\n")
	b.WriteString("slow and delay take a figure behind it: slow relay-1 600, delay edge-1>relay-1 200\n\n")
	for _, v := range cluster.Verbs {
		for _, line := range [][2]string{{"NODE", v.Node}, {"FROM>TO", v.Link}} {
			if line[1] != "" {
				b.WriteString("  " + pad(string(v.Verb)+" "+line[0], 20) + line[1] + "\n")
			}
		}
	}
	b.WriteString("  " + pad("urls", 20) + "where to watch and publish\n")
	b.WriteString("  " + pad("quit", 20) + "ends all nodes\n")
	return b.String()
}

func pad(s string, n int) string { return s + strings.Repeat(" ", max(1, n-len(s))) }
