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
	if x := onTrunk(w.conn); x != nil {
		if err := w.flush(); err != nil {
			return w.failure(err)
		}
		return w.server.coach(x.Session()).ride(w, x)
	}
	beat := time.AfterFunc(linkBeat, w.Wake)
	defer beat.Stop()
	due := time.Now().Add(linkBeat)
	var tags [writerTags]flv.Tag
	for {
		// Before Peek: what it does not show was not there when this was so.
		at := w.position()
		n := w.cur.Peek(tags[:])
		ended := n == 0 && w.cur.Ended()
		at.found(n, ended, w.cur.Epoch())
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
		// What is sent moves the next beat, but moving the timer each time would cost more
		// than looking at the clock again when it goes off.
		if now := time.Now(); !now.Before(due) {
			due = latest(w.play.node.sentAt, w.play.node.toldAt).Add(linkBeat)
			if !now.Before(due) {
				due = now.Add(linkBeat)
			}
			beat.Reset(due.Sub(now))
		}
		<-w.wake
		if r := w.called(); r != session.None {
			return r
		}
	}
}

// called returns why the node is to be left, if it is.
func (w *writer) called() session.Reason {
	select {
	case <-w.left:
		return session.PeerClosed
	case r := <-w.kicked:
		if r != session.Draining {
			w.finish(r)
		}
		return r
	default:
		return session.None
	}
}

// latest returns the later one of two times.
func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// withoutLinks replaces link tags by nothing.
func withoutLinks(tags []flv.Tag) []flv.Tag {
	return slices.DeleteFunc(tags, func(t flv.Tag) bool { return isLink(&t) })
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

// tellLink writes a link tag if it is time for one.
func (w *writer) tellLink(now time.Time, at position) error {
	t, ok := w.link(now, at, linkBeat)
	if !ok {
		return nil
	}
	if err := w.putTag(&t); err != nil {
		return err
	}
	return w.flush()
}

// link returns a link tag if it is time for one: when nothing else was written for the
// time beat, when something has changed, and now and then besides.
func (w *writer) link(now time.Time, at position, beat time.Duration) (flv.Tag, bool) {
	d := w.play.node
	quiet := now.Sub(d.sentAt) >= beat && now.Sub(d.toldAt) >= beat
	clock := w.stream.Clock()
	if at.state == d.told.State && at.epoch == d.told.Epoch && clock == d.told.Clock && !quiet && now.Sub(d.toldAt) < linkEvery {
		return flv.Tag{}, false
	}
	newest, _ := w.stream.Newest()
	d.told, d.toldAt = Link{
		Node: w.server.self.ID, State: at.state, Epoch: at.epoch, Clock: clock, Head: newest, Idle: at.idle,
		Sent: now.UnixMilli(), Path: w.server.hub.Outlook(w.play.name).Path,
	}, now
	wire := w.conn
	if x := onTrunk(wire); x != nil {
		wire = x.Carrier()
	}
	if tcp := tcpOf(wire); tcp != nil {
		d.told.Trip, d.told.Out, d.told.Again = sendingOf(tcp)
	}
	return AppendLink(nil, d.told), true
}
