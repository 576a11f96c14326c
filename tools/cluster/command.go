package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Verb is what is done to a node or a link.
type Verb string

// The verbs, in the order in which help shows them.
const (
	Kill     Verb = "kill"
	Freeze   Verb = "freeze"
	Slow     Verb = "slow"
	Delay    Verb = "delay"
	HalfOpen Verb = "half-open"
	Heal     Verb = "heal"
	Restart  Verb = "restart"
)

// Verbs says what each verb does.
var Verbs = []struct {
	Verb       Verb
	Node, Link string // "" where it does not apply
}{
	{Kill, "kill -9", "connections are reset, new ones refused"},
	{Freeze, "stopped (SIGSTOP): connections stay and nothing comes", "nothing passes, and nobody is told"},
	{Slow, "what leaves it towards other nodes, each link, to so many kbit/s, or to 60 % of the smallest stream", "both ways, to so many kbit/s, or to 60 % of the smallest stream"},
	{Delay, "", "everything comes later, both ways, by so many ms, or by 80"},
	{HalfOpen, "", "the upstream side of connections is reset, the other is not told"},
	{Heal, "goes on, and its links are as at first", "as at first"},
	{Restart, "ended, and started again", "connections are reset, then as at first"},
}

// Command is one order. It is for a node, or for a link when To is set.
type Command struct {
	Verb     Verb
	From, To string
	Kbps     int64 // of Slow
	Ms       int64 // of Delay
}

// link returns the pair that the command is for.
func (c Command) link() Pair { return Pair{c.From, c.To} }

// String returns the command as it is typed.
func (c Command) String() string {
	out := string(c.Verb) + " " + c.From
	if c.To != "" {
		out = string(c.Verb) + " " + c.link().String()
	}
	if n := max(c.Kbps, c.Ms); n > 0 {
		out += " " + strconv.FormatInt(n, 10)
	}
	return out
}

// delayMs is how much later things come unless Delay says it: far beyond what a plan
// takes for a change that is not worth a move.
const delayMs = 80

// Parse reads a command: VERB NODE or VERB FROM>TO, and a rate in kbit/s for slow, ms
// for delay.
func (t Topology) Parse(text string) (Command, error) {
	words := strings.Fields(strings.ReplaceAll(text, ">", " > "))
	if len(words) == 0 {
		return Command{}, fmt.Errorf("nothing to do")
	}
	c := Command{Verb: Verb(words[0])}
	at := slices.IndexFunc(Verbs, func(v struct {
		Verb       Verb
		Node, Link string
	},
	) bool {
		return v.Verb == c.Verb
	})
	if at < 0 {
		return c, fmt.Errorf("there is no command %q: help lists them", words[0])
	}
	if words = words[1:]; len(words) == 0 {
		return c, fmt.Errorf("%s what? Name a node, or a link as FROM>TO", c.Verb)
	}
	c.From, words = words[0], words[1:]
	if len(words) >= 2 && words[0] == ">" {
		c.To, words = words[1], words[2:]
	}
	err := t.target(c, Verbs[at].Node == "")
	if err != nil {
		return c, err
	}
	switch c.Verb {
	case Slow:
		c.Kbps, words, err = figure(words, t.slowKbps(), "a rate: use kbit/s", 1e8)
	case Delay:
		c.Ms, words, err = figure(words, delayMs, "a delay: use ms", 60_000)
	}
	if err != nil {
		return c, err
	}
	if len(words) > 0 {
		return c, fmt.Errorf("what is %q?", strings.Join(words, " "))
	}
	return c, nil
}

// figure takes the number that a command may end with, of 1 to most.
func figure(words []string, otherwise int64, what string, most int64) (int64, []string, error) {
	if len(words) == 0 {
		return otherwise, nil, nil
	}
	n, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil || n < 1 || n > most {
		return 0, nil, fmt.Errorf("%q is not %s, 1 to %d", words[0], what, most)
	}
	return n, words[1:], nil
}

// target checks that what a command is for exists.
func (t Topology) target(c Command, linkOnly bool) error {
	switch {
	case c.To != "" && !slices.Contains(t.Pairs(), c.link()):
		return fmt.Errorf("there is no link %v", c.link())
	case c.To == "" && linkOnly:
		return fmt.Errorf("%s is for a link: FROM>TO", c.Verb)
	case c.To == "" && t.placer(c.From):
		if c.Verb == Slow {
			return fmt.Errorf("%s sends too little for %s to be felt", c.From, c.Verb)
		}
	case c.To == "":
		if _, ok := t.node(c.From); !ok {
			return fmt.Errorf("there is no node %q", c.From)
		}
	}
	return nil
}

// placer reports whether id is that of a scheduler or a router.
func (t Topology) placer(id string) bool {
	return id == SchedulerID && t.Scheduler != nil || slices.ContainsFunc(t.Routers, func(r Router) bool { return r.ID == id })
}

// slowKbps is a rate that whatever passes will feel: 60 % of the smallest stream.
func (t Topology) slowKbps() int64 {
	least := defaultKbps
	for i, f := range t.Streams {
		if k := f.kbps(); i == 0 || k < least {
			least = k
		}
	}
	return max(1, int64(least)*6/10)
}
