package rtmp

import (
	"context"
	"strings"
	"sync"
	"time"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/internal/session"
	"millrace/internal/stream"
)

// publishing is the role of a connection that feeds a stream. Owned by the
// reading goroutine.
type publishing struct {
	pub    Feed
	ses    *session.Session
	stream uint32        // message stream
	key    string        // as the peer said it
	keyed  bool          // a keyframe has come
	frames bool          // and anything that can be played
	over   chan struct{} // closed when the role ends
	gone   chan struct{} // closed when the goroutine that watches has returned
}

// decidePublish asks the gate and then the hub, before anything is announced. A
// refusal is told after the delay that the gate wants.
func (c *conn) decidePublish(current *call) *refusal {
	key, _ := current.args[0].(string)
	c.takes(session.Publish)
	name, query, err := stream.ParseName(c.app.app, key)
	c.name = string(name)
	if err != nil {
		return c.refusedRole(refuse(err, publishCode))
	}
	if c.srv.draining.Load() {
		return c.refusedRole(refuse(stream.ErrDraining, publishCode))
	}
	ses := c.srv.table.Open(c.info(session.Publish, time.Now()), c.end)
	pub, err := c.admit(PublishRequest{Stream: name, Query: query, Peer: c.peer.Addr(), Session: ses})
	if err != nil {
		c.hold(err)
		r := refuse(err, publishCode)
		ses.Close(r.reason)
		return c.refusedRole(r)
	}
	now := time.Now()
	c.in.limit(c.srv.config().limits())
	c.doze = doze{able: ackUnread(c.plain), mark: c.doze.mark}
	c.pub = &publishing{pub: pub, ses: ses, stream: current.stream, key: key, over: make(chan struct{}), gone: make(chan struct{})}
	c.lastFrame, c.account = now, ses
	c.srv.came(ses)
	go c.pub.watch(c)
	return nil
}

// admit asks the inlet, until the connection ends.
func (c *conn) admit(r PublishRequest) (Feed, error) {
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-c.done:
			cancel()
		case <-ctx.Done():
		}
	})
	defer watching.Wait()
	defer cancel()
	return c.srv.inlet.Open(ctx, r)
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
// Media on a message stream that was made for something else goes nowhere; ids that
// nobody made are a matter of byte order and habit, and taken as they come.
func (c *conn) media(m *message) error {
	if c.pub == nil || m.stream != c.pub.stream && c.streams[m.stream] != nil {
		return c.drop(session.NotPublishing)
	}
	tag, r := mediaTag(m)
	if r != session.None {
		return c.drop(r)
	}
	now := time.Now()
	if c.pub.plays(tag) {
		c.lastFrame = now
		if tag.Kind == flv.Video {
			c.doze.picture(len(tag.Payload()))
		}
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

// drop counts media that goes nowhere.
func (c *conn) drop(r session.Reason) error {
	c.srv.drop(r)
	return c.control()
}

// plays reports whether a tag is something that the stream's readers see or hear:
// nothing else keeps the name of a stream for a publisher.
func (p *publishing) plays(t flv.Tag) bool {
	p.keyed = p.keyed || t.Is(flv.Frame|flv.Keyframe)
	ok := t.Is(flv.Frame) && (t.Kind == flv.Audio || p.keyed)
	p.frames = p.frames || ok
	return ok
}

// names reports whether a command is about this publish. Encoders leave the query
// out, or say nothing.
func (p *publishing) names(text string) bool {
	said, _, _ := strings.Cut(text, "?")
	key, _, _ := strings.Cut(p.key, "?")
	return said == "" || said == key
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
// if it is us who want it. A role in which nothing was played is no reason to wait
// longer for the next.
func (c *conn) stopRole(r session.Reason) {
	now := time.Now()
	switch {
	case c.pub != nil:
		p := c.pub
		close(p.over)
		<-p.gone // before Close, which it would take for a loss
		p.pub.Close(now, r)
		p.ses.Close(r)
		c.ended, c.pub = r, nil
		c.in.limit(c.srv.config().guest())
		if p.frames {
			c.waiting = now
		}
		c.bye(session.Publish, p.stream, r)
	case c.play != nil:
		p := c.play
		close(p.over)
		<-p.gone
		p.ses.Close(r)
		c.ended, c.play = r, nil
		if p.ses.Tags.Load() > 0 {
			c.waiting = now
		}
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
