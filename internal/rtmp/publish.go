package rtmp

import (
	"time"

	"millrace/internal/auth"
	"millrace/internal/session"
	"millrace/internal/stream"
)

// publishing is the role of a connection that feeds a stream. Owned by the
// reading goroutine.
type publishing struct {
	pub    *stream.Publisher
	ses    *session.Session
	stream uint32        // message stream
	over   chan struct{} // closed when the role ends
	gone   chan struct{} // closed when the goroutine that watches has returned
}

// decidePublish asks the gate and then the hub, before anything is announced. A
// refusal is told after the delay that the gate wants.
func (c *conn) decidePublish(current *call) *refusal {
	key, _ := current.args[0].(string)
	c.role = session.Publish.String()
	name, query, err := stream.ParseName(c.app.app, key)
	c.name = string(name)
	if err != nil {
		return c.refusedRole(refuse(err, publishCode))
	}
	if c.srv.draining.Load() {
		return c.refusedRole(refuse(stream.ErrDraining, publishCode))
	}
	grant, err := c.srv.gate.Publish(time.Now(), auth.Request{Stream: name, Peer: c.peer.Addr(), Query: query})
	if err != nil {
		c.hold(err)
		return c.refusedRole(refuse(err, publishCode))
	}
	now := time.Now()
	ses := c.srv.table.Open(c.info(session.Publish, now), c.end)
	pub, err := c.srv.hub.Publish(now, name, grant.Owner, ses)
	if err != nil {
		r := refuse(err, publishCode)
		ses.Close(r.reason)
		return c.refusedRole(r)
	}
	c.pub = &publishing{pub: pub, ses: ses, stream: current.stream, over: make(chan struct{}), gone: make(chan struct{})}
	c.lastMedia = now
	go c.pub.watch(c)
	return nil
}

// watch ends the connection when another publish takes the stream. It is waited
// for by stopRole.
func (p *publishing) watch(c *conn) {
	defer close(p.gone)
	select {
	case <-p.pub.Done():
		c.end(p.pub.Reason())
	case <-p.over:
	}
}

// hold waits as long as a refusal must be held back, or until the connection ends.
func (c *conn) hold(err error) {
	denied, ok := err.(*auth.Denied)
	if !ok || denied.Delay <= 0 {
		return
	}
	t := time.NewTimer(denied.Delay)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.done:
	}
}

// refusedRole notes a refusal: its reason is the one that the connection ends with.
func (c *conn) refusedRole(r *refusal) *refusal {
	c.said, c.told = r.text, true
	c.end(r.reason)
	return r
}

func (c *conn) info(a session.Action, now time.Time) session.Info {
	return session.Info{
		Protocol: session.RTMP, Action: a, Stream: c.name, Peer: c.peer, TLS: c.tls, Agent: c.app.agent, Started: now,
	}
}

// media takes in an audio, video or data message. It takes the message's bytes.
func (c *conn) media(m *message) error {
	if c.pub == nil {
		c.srv.drop(session.NotPublishing)
		return nil
	}
	tag, r := mediaTag(m)
	now := time.Now()
	c.lastMedia = now
	if r != session.None {
		c.srv.drop(r)
		return nil
	}
	// Before Write: from then on the bytes belong to the stream.
	n := len(tag.Wire)
	if err := c.pub.pub.Write(now, tag); err != nil {
		return &fault{c.pub.pub.Reason(), err.Error()}
	}
	c.pub.ses.Bytes.Add(uint64(n))
	c.pub.ses.Tags.Add(1)
	return nil
}

// unpublish ends the publish that the peer says is done. The connection lives on,
// and waits for the next command.
func (c *conn) unpublish() {
	if c.pub == nil {
		return
	}
	id := c.pub.stream
	c.stopRole(session.Unpublished)
	c.send(id, onStatus(levelStatus, codeUnpublish, c.name+" is no longer published"))
}

// stopRole ends what the connection does, for the reason given, and tells the peer
// if it is us who want it.
func (c *conn) stopRole(r session.Reason) {
	c.waiting = time.Now()
	switch {
	case c.pub != nil:
		p := c.pub
		close(p.over)
		<-p.gone // before Close, which it would take for a loss
		p.pub.Close(c.waiting)
		p.ses.Close(r)
		c.ended, c.pub = r, nil
		c.bye(session.Publish, p.stream, r)
	case c.play != nil:
		p := c.play
		close(p.over)
		<-p.gone
		p.ses.Close(r)
		c.ended, c.play = r, nil
		if p.err == nil {
			c.bye(session.Play, p.stream, r)
		}
	}
}

// bye tells the peer why its role is over.
func (c *conn) bye(a session.Action, id uint32, r session.Reason) {
	body := farewell(a, r)
	if body == nil || c.streams[id] == nil {
		return
	}
	if c.send(id, body) == nil {
		c.told = true
	}
	if r == session.StreamEnded {
		c.send(id, onStatus(levelStatus, codePlayStop, c.name+" has ended"))
	}
}
