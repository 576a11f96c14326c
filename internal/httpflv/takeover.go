package httpflv

import (
	"crypto/tls"
	"net"
	"time"

	"millrace/internal/flv"
	"millrace/internal/session"
	"millrace/internal/stream"
)

// underlying returns what the HTTP library wrapped.
func underlying(c net.Conn) net.Conn {
	if w, ok := c.(interface{ UnsafeConn() net.Conn }); ok {
		return w.UnsafeConn()
	}
	return c
}

// encrypted reports whether c is TLS, or wraps it.
func encrypted(c net.Conn) bool {
	for {
		switch w := c.(type) {
		case *tls.Conn:
			return true
		case interface{ NetConn() net.Conn }:
			c = w.NetConn()
		default:
			return false
		}
	}
}

// takeOver makes a viewer of a connection that the HTTP library has given up. It
// runs in a goroutine of its own and, but for viewers that no shard can write to,
// ends soon: what there is to play goes out before the viewer is handed over, so
// the first picture does not wait for the shard's next pass.
func (s *Server) takeOver(p play, hijacked net.Conn) {
	c := underlying(hijacked)
	str, r := s.attach(p)
	if r != nil {
		s.refused(p.info, r.reason, r.text)
		answer{conn: c, text: r.append(nil, p.cors, time.Now())}.deliver()
		return
	}
	tcp := tcpOf(c)
	if tcp == nil || p.node != nil || p.framing == webSocket || encrypted(c) {
		s.startWriter(p, str, c, hijacked)
		return
	}
	v, err := s.newViewer(p, str, c, tcp)
	if err != nil {
		// Most likely there are no descriptors left, and this is not the only one.
		s.log.Debug("take over a connection", "stream", p.name, "peer", p.info.Peer, "err", err)
		s.refused(p.info, session.Internal, "")
		s.release(str)
		_ = c.Close()
		return
	}
	s.firstWrite(v)
	if err := s.fan.join(v); err != nil {
		abandon(v.fd)
		if s.fan.settle(v, session.Draining) { // who logs later may have ended too
			newDepartureLog(s.fan.log).left(departureOf(v.sess, session.Draining))
		}
	}
}

// newViewer takes the socket of c, which is tcp at the bottom, and chooses a shard.
func (s *Server) newViewer(p play, str *stream.Stream, c net.Conn, tcp *net.TCPConn) (*viewer, error) {
	fd, err := takeSocket(tcp)
	if err != nil {
		return nil, err
	}
	v := &viewer{
		fd: fd, conn: c, server: s, stream: str, shard: s.fan.place(str),
		info: p.info, cors: p.cors, framing: p.framing, cur: str.NewCursor(stream.CursorOptions{}),
	}
	now := v.shard.now()
	v.until = now + s.patience(&p, str)
	if !p.expires.IsZero() {
		v.expires = max(1, now+time.Until(p.expires))
	}
	_ = boundUnsent(fd, unsentFor(str.Bitrate())) // an old kernel only hides more of a backlog
	return v, nil
}

// firstWrite writes the start of the response if there is something to play. What
// the socket does not take, and any error, is found again by the shard.
func (s *Server) firstWrite(v *viewer) {
	b := s.fan.batches.Get().(*batch)
	var first [4]flv.Tag
	if v.cur.Peek(first[:]) > 0 {
		v.begin()
		b.serve(v)
	}
	b.release()
	s.fan.countFirst(b.counts)
	b.counts = counts{}
	s.fan.batches.Put(b)
}

// attach counts one more viewer, on the node and on its stream.
func (s *Server) attach(p play) (*stream.Stream, *refusal) {
	if !s.fan.admit() {
		return nil, &overLimit
	}
	str, err := s.hub.Attach(p.name, p.demand())
	if err != nil {
		s.fan.admitted.Add(-1)
		r := overLimit
		r.text = err.Error() + ": try again in a few seconds"
		return nil, &r
	}
	if str.State() == stream.Idle && s.hope(&p) == 0 {
		s.release(str)
		r := missing(p.name, s.hub.Outlook(p.name).Why)
		return nil, &r
	}
	return str, nil
}

// release undoes attach.
func (s *Server) release(str *stream.Stream) {
	s.hub.Detach(str)
	s.fan.admitted.Add(-1)
}

// hope returns how long it is worth waiting for a stream that is missing.
func (s *Server) hope(p *play) time.Duration {
	wait := s.hub.Outlook(p.name).Wait
	if p.node != nil && p.node.marks.Back > 0 {
		wait = max(wait, resumeWait)
	}
	return max(wait, s.settings.Load().cfg.PlayWait)
}

// patience returns how long a viewer waits for something to play: for a stream that
// is missing as configured, or as long as it may take to bring it; for one that has just lost its publisher, or that shows
// its first keyframe late, as long as a viewer may take nothing. A stream whose
// grace time ends is found out about at once.
func (s *Server) patience(p *play, str *stream.Stream) time.Duration {
	cfg := &s.settings.Load().cfg
	if str.State() == stream.Idle {
		return s.hope(p)
	}
	return max(cfg.PlayWait, cfg.StallTimeout)
}
