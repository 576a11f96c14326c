package rtmp

import (
	"time"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/internal/session"
	"millrace/internal/stream"
)

const (
	// peekTags and batchBytes bound one write to a player: as much as it is late at
	// most when its cursor skips. A burst at the beginning takes several.
	peekTags   = 64
	batchBytes = 256 << 10
)

// playing is the role of a connection that reads a stream.
type playing struct {
	// Fixed at construction.
	c       *conn
	src     *stream.Stream
	ses     *session.Session
	stream  uint32 // message stream
	expires time.Time
	wake    chan struct{} // capacity 1, never closed
	begin   chan struct{} // closed by the reading goroutine when Play.Start is on its way
	over    chan struct{} // closed by the reading goroutine when the role ends
	gone    chan struct{} // closed when run has returned

	// Owned by run, then by the reading goroutine.
	cursor stream.Cursor
	skips  stream.Skips // as far as they were counted
	out    batch
	err    error // of the write that failed
}

// Wake is called by the stream for every tag and change of state.
func (p *playing) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// decidePlay asks the gate and looks for the stream.
func (c *conn) decidePlay(current *call) *refusal {
	key, _ := current.args[0].(string)
	c.takes(session.Play)
	name, query, err := stream.ParseName(c.app.app, key)
	c.name = string(name)
	if err != nil {
		return c.refusedRole(refuse(err, playCode))
	}
	if c.srv.draining.Load() {
		return c.refusedRole(refuse(stream.ErrDraining, playCode))
	}
	grant, err := c.srv.gate.Play(time.Now(), auth.Request{Stream: name, Peer: c.peer.Addr(), Query: query, Referer: c.app.pageURL})
	if err != nil {
		c.hold(err)
		return c.refusedRole(refuse(err, playCode))
	}
	if _, ok := c.srv.hub.Lookup(name); !ok && c.srv.hope(name) == 0 {
		return c.refusedRole(&refusal{session.NotFound, codePlayNotFound, "no such stream: " + string(name) + " is not being published"})
	}
	src, err := c.srv.hub.Attach(name, stream.Demand{})
	if err != nil {
		return c.refusedRole(refuse(err, playCode))
	}
	c.play = &playing{
		c: c, src: src, stream: current.stream, expires: grant.Expires,
		ses:  c.srv.table.Open(c.info(session.Play, time.Now()), c.end),
		wake: make(chan struct{}, 1), begin: make(chan struct{}), over: make(chan struct{}), gone: make(chan struct{}),
		cursor: src.NewCursor(stream.CursorOptions{}),
	}
	c.account = c.play.ses
	c.srv.came(c.account)
	go c.play.run()
	return nil
}

// beginPlay is called when Play.Start is on its way: no media may overtake it.
func (c *conn) beginPlay() {
	if c.play != nil {
		close(c.play.begin)
	}
}

// run writes to the player. It is waited for by stopRole.
func (p *playing) run() {
	defer close(p.gone)
	defer p.c.recovered(nil)
	defer p.c.srv.hub.Detach(p.src)
	select {
	case <-p.begin:
	case <-p.over:
		return
	}
	p.src.Watch(p)
	defer p.src.Unwatch(p)
	if r := p.serve(); r != session.None {
		p.c.end(r)
	}
}

// serve sends what the cursor has until the role is over, and returns why it ends
// if that is our doing.
func (p *playing) serve() session.Reason {
	limitUnsent(p.c.plain, p.src.Bitrate())
	var missing, expired <-chan time.Time
	if p.src.State() == stream.Idle {
		t := time.NewTimer(p.c.srv.hope(p.src.Name()))
		defer t.Stop()
		missing = t.C
	}
	if !p.expires.IsZero() {
		t := time.NewTimer(time.Until(p.expires))
		defer t.Stop()
		expired = t.C
	}
	var tags [peekTags]flv.Tag
	for {
		n, err := p.send(tags[:])
		if err != nil {
			p.err = err
			return reasonOf(err)
		}
		if n == 0 && p.cursor.Ended() {
			if !p.cursor.Started() {
				return p.src.Failure()
			}
			return session.StreamEnded
		}
		wake := p.wake
		if n > 0 {
			wake = ready // there may be more: look again, but not past an end
		}
		select {
		case <-wake:
		case <-p.over:
			return session.None
		case <-p.c.done:
			return session.None
		case <-expired:
			return session.TokenExpired
		case <-missing:
			if p.src.State() == stream.Idle {
				return p.src.Failure()
			}
		}
	}
}

// hope returns how long it is worth waiting for a stream that is missing.
func (s *Server) hope(n stream.Name) time.Duration {
	return max(s.hub.Outlook(n).Wait, s.config().PlayWait)
}

// ready is a channel that can always be received from.
var ready = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// send writes one batch and returns how many tags were in it.
func (p *playing) send(tags []flv.Tag) (int, error) {
	n := p.cursor.Peek(tags)
	if s := p.cursor.Skips(); s != p.skips {
		s.Count(p.skips, p.ses)
		p.skips = s
	}
	if n == 0 {
		return 0, nil
	}
	size := p.c.out.chunkSize()
	bytes := 0
	for _, t := range tags[:n] {
		p.out.add(size, p.stream, t)
		bytes += len(t.Wire)
		if p.out.bytes >= batchBytes {
			break
		}
	}
	n = p.out.tags
	err := p.c.out.media(&p.out)
	p.out.reset()
	clear(tags)
	if err != nil {
		return 0, err
	}
	p.cursor.Advance(n)
	p.ses.Bytes.Add(uint64(bytes))
	p.ses.Tags.Add(uint64(n))
	return n, nil
}
