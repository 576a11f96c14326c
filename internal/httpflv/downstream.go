package httpflv

import (
	"slices"
	"time"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/internal/quality"
	"millrace/internal/session"
	"millrace/internal/stream"
)

const (
	// linkBeat is how long nothing may go to a node below: then a link tag says that
	// it is the stream that is silent, not this node.
	linkBeat = 250 * time.Millisecond
	// linkEvery is how often a link tag goes between others.
	linkEvery = time.Second
	// pathEvery is how often a node that waits for a stream is told of a change of the
	// way that it is looked for.
	pathEvery = 50 * time.Millisecond
	// resumeWait is how long a node that has lost a stream waits here for it: its
	// publisher, or who pushes it, may be on the way from the same node that died.
	resumeWait = time.Second
)

// Identity is what a server knows of its node and of the nodes around it.
type Identity struct {
	// ID is the name of this node, as in [auth.ValidNodeID].
	ID string
	// Cluster verifies what other nodes ask.
	Cluster *auth.Cluster
	// NodesOnly refuses everybody else.
	NodesOnly bool
	// Capacity is how much it can send, in bytes/s; 0 where nobody has said.
	Capacity int64
	// Refused returns how many connections were closed before a server saw them. Nil is
	// none.
	Refused func() uint64
	// Placer knows which edge suits a player. Nil serves whoever comes.
	Placer Placer
	// Ring knows what this node brings into its datacenter. Nil brings what it is asked for.
	Ring Ring
	// Quality keeps how players fare, and takes their reports. Nil is for nobody.
	Quality *quality.Book
}

// downstream is a node below that reads a stream here. It gets the stream's own
// clock, every tag at once (hops must not add up), and link tags.
type downstream struct {
	// Fixed when the request is accepted.
	marks Marks
	// signed: the mark is proven, so what viewers must show is not asked for.
	signed bool

	// Owned by the writer's run.
	told   Link
	toldAt time.Time
	sentAt time.Time
}

// judge decides whether another node may ask what it asks.
func (s *Server) judge(p *play, now time.Time) *refusal {
	m := &p.node.marks
	if err := s.self.Cluster.Verify(now, m.Mark, m.Signature); err != nil {
		return denied(err)
	}
	if err := m.Mark.CheckPath(s.self.ID); err != nil {
		return denied(err)
	}
	p.node.signed = s.self.Cluster.Enabled()
	return nil
}

// demand says on whose behalf a stream is wanted.
func (p *play) demand() stream.Demand {
	if p.node == nil {
		return stream.Demand{}
	}
	m := &p.node.marks
	return stream.Demand{Via: m.Mark.Via, Peer: m.Mark.Purpose == auth.Peer, Back: m.Back}
}

// serveNode writes to a node until it ends, and returns why.
func (w *writer) serveNode() session.Reason {
	if r := w.awaitStream(); r != session.None {
		return r
	}
	if err := w.begin(); err != nil {
		return w.failure(err)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	var tags [writerTags]flv.Tag
	for {
		// Before Peek: what it does not show was not there when this was so.
		at := position{w.stream.State().String(), w.stream.Epoch(), false}
		n := w.cur.Peek(tags[:])
		ended := n == 0 && w.cur.Ended()
		switch {
		case ended:
			at.state = LinkEnded
		case n > 0:
			at = position{LinkLive, w.cur.Epoch(), false}
		default:
			at.idle = true
		}
		// Before the tags, so that it is known which publish they belong to.
		if err := w.tellLink(time.Now(), at); err != nil {
			return w.failure(err)
		}
		if ended {
			return w.over()
		}
		if n > 0 {
			if err := w.write(withoutLinks(tags[:n])); err != nil {
				return w.failure(err)
			}
			w.cur.Advance(n)
			clear(tags[:n])
			w.play.node.sentAt = time.Now()
			continue
		}
		timer.Reset(linkBeat)
		if r, _ := w.pause(w.wake, timer.C, nil); r != session.None {
			return r
		}
	}
}

// withoutLinks replaces link tags, which a publisher has no business to send, by
// nothing: the node below would believe them.
func withoutLinks(tags []flv.Tag) []flv.Tag {
	return slices.DeleteFunc(tags, func(t flv.Tag) bool {
		_, link, _ := ParseLink(t)
		return link
	})
}

// awaitStream waits until somebody publishes the stream. Meanwhile the node is told
// through whom it is looked for, so that it finds itself there if it goes in a circle.
func (w *writer) awaitStream() session.Reason {
	until := time.Now().Add(w.server.patience(&w.play, w.stream))
	step := time.NewTicker(pathEvery)
	defer step.Stop()
	var told []string
	for w.stream.State() == stream.Idle {
		if w.cur.Ended() || !time.Now().Before(until) {
			return w.stream.Failure()
		}
		// Nobody behind this node means that it only waits: it must not seem so while it
		// has yet to choose whom to ask.
		o := w.server.hub.Outlook(w.play.name)
		choosing := o.Wait > 0 && len(o.Path) == 0
		if path := w.path(o.Path); !choosing && !slices.Equal(path, told) {
			told = path
			if _, err := w.send(AppendPath(nil, path)); err != nil {
				return w.failure(err)
			}
		}
		if r, _ := w.pause(w.wake, step.C, nil); r != session.None {
			return r
		}
	}
	return session.None
}

// path names the nodes from this one on.
func (w *writer) path(hops []stream.Hop) []string {
	path := []string{w.server.self.ID}
	for _, h := range hops {
		path = append(path, h.Node)
	}
	return path
}

// position is where a node below stands.
type position struct {
	state string
	epoch int64
	idle  bool // it has all there is
}

// tellLink writes a link tag if it is time for one: when nothing else was written
// for a while, when something has changed, and now and then besides.
func (w *writer) tellLink(now time.Time, at position) error {
	d := w.play.node
	quiet := now.Sub(d.sentAt) >= linkBeat && now.Sub(d.toldAt) >= linkBeat
	clock := w.stream.Clock()
	if at.state == d.told.State && at.epoch == d.told.Epoch && clock == d.told.Clock && !quiet && now.Sub(d.toldAt) < linkEvery {
		return nil
	}
	newest, _ := w.stream.Newest()
	d.told, d.toldAt = Link{
		Node: w.server.self.ID, State: at.state, Epoch: at.epoch, Clock: clock, Head: newest, Idle: at.idle,
		Sent: now.UnixMilli(), Path: w.server.hub.Outlook(w.play.name).Path,
	}, now
	if tcp := tcpOf(w.conn); tcp != nil {
		d.told.Trip, d.told.Out, d.told.Again = sendingOf(tcp)
	}
	t := AppendLink(nil, d.told)
	if err := w.putTag(&t); err != nil {
		return err
	}
	return w.flush()
}
