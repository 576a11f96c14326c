package console

import (
	"strings"
	"unicode/utf8"

	"millrace/internal/fleet"
	"millrace/internal/plan"
)

// Bounds of lists.
const (
	maxStreams    = 1000
	someStreams   = 100 // if none is asked for
	maxEvents     = 1000
	someEvents    = 200
	maxVersions   = 1000
	someVersions  = 50
	maxQuery      = 256
	maxComment    = 500
	maxDryRunning = 1 // each takes a core for as long as two plans
	maxChecking   = 2 // each takes a core, for half a second when the document is as big as may be
)

func (c *Console) getNetwork(a *call) (any, error) {
	return c.fleet.Network(), nil
}

func (c *Console) getNode(a *call) (any, error) {
	n, ok := c.fleet.Node(a.args[0])
	if !ok {
		return nil, refuse(NotFound, "no node %.80q is known", a.args[0])
	}
	return n, nil
}

func (c *Console) getLink(a *call) (any, error) {
	from, to := a.text("from"), a.text("to")
	l, ok := c.fleet.Link(from, to)
	if !ok {
		return nil, refuse(NotFound, "no two nodes %.80q and %.80q are known: give both as from and to", from, to)
	}
	return l, nil
}

func (c *Console) getPath(a *call) (any, error) {
	name, err := a.stream("stream")
	if err != nil {
		return nil, err
	}
	node := a.text("node")
	if _, ok := c.fleet.Node(node); !ok {
		return nil, refuse(NotFound, "no node %.80q is known", node)
	}
	return c.fleet.ExplainPath(node, name), nil
}

func (c *Console) postDryRun(a *call) (any, error) {
	var body struct {
		Edits raw `json:"edits"`
	}
	if err := a.read(&body, maxEdits); err != nil {
		return nil, err
	}
	edits, err := plan.ParseEdits(body.Edits)
	if err != nil {
		return nil, refuse(Invalid, "%v", err)
	}
	select {
	case c.trying <- struct{}{}:
		defer func() { <-c.trying }()
	default:
		return nil, tooMany("somebody else tries edits at this moment", 1)
	}
	diff, err := c.fleet.DryRun(*edits)
	if err != nil {
		return nil, err
	}
	return diff, nil
}

func (c *Console) getStreams(a *call) (any, error) {
	limit, err := a.number("limit", someStreams, maxStreams)
	if err != nil {
		return nil, err
	}
	q := a.text("q")
	if len(q) > maxQuery || !utf8.ValidString(q) {
		return nil, refuse(BadRequest, "q is longer than %d bytes, or no text", maxQuery)
	}
	return c.fleet.Streams(q, int(limit)), nil
}

func (c *Console) getStream(a *call) (any, error) {
	name, err := a.stream("name")
	if err != nil {
		return nil, err
	}
	s := c.fleet.Stream(name)
	if !s.Known {
		return nil, refuse(NotFound, "no node carries %s", name)
	}
	return s, nil
}

func (c *Console) getEvents(a *call) (any, error) {
	limit, err := a.number("limit", someEvents, maxEvents)
	if err != nil {
		return nil, err
	}
	after, err := a.number("after", 0, 1<<64-1)
	if err != nil {
		return nil, err
	}
	f := fleet.EventFilter{Kind: a.text("kind"), Node: a.text("node"), Reason: a.text("reason")}
	if s := strings.Trim(a.text("stream"), "/"); s != "" {
		if f.Stream, err = a.stream("stream"); err != nil {
			return nil, err
		}
	}
	return c.fleet.Events(f, after, int(limit)), nil
}
