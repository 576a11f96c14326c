package httpflv

import (
	"io"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/auth"
	"millrace/internal/session"
	"millrace/internal/trunk"
)

// carrier reads what the HTTP library has read already, and then the connection.
type carrier struct {
	net.Conn
	in io.Reader
}

// NetConn returns the connection below.
func (c *carrier) NetConn() net.Conn { return c.Conn }

func (c *carrier) Read(p []byte) (int, error) { return c.in.Read(p) }

// takeTrunk makes a trunk of a connection, on which another node then asks for streams
// as it would on connections of their own.
func (s *Server) takeTrunk(ctx *fasthttp.RequestCtx, now time.Time) {
	if r := s.judgeTrunk(ctx, now); r != nil {
		st := s.settings.Load()
		s.refused(st.infoOf(ctx, now), r.reason, r.text)
		s.refuse(ctx, *r, "")
		return
	}
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(hijacked net.Conn) { s.carry(underlying(hijacked), hijacked) })
}

// judgeTrunk decides whether the request for a trunk is a good one.
func (s *Server) judgeTrunk(ctx *fasthttp.RequestCtx, now time.Time) *refusal {
	m, marked, err := ParseMarks("", ctx.Request.Header.PeekAll)
	switch {
	case err != nil:
		return denied(err)
	case !marked || m.Mark.Purpose != auth.Trunk || !ctx.IsGet() || !headerHas(ctx, "Upgrade", trunkProto) || onTrunk(ctx.Conn()) != nil:
		return &refusal{status: fasthttp.StatusBadRequest, reason: session.BadRequest, text: errTrunkUse}
	case s.draining.Load():
		return &draining
	}
	if err := s.self.Cluster.Verify(now, m.Mark, m.Signature); err != nil {
		return denied(err)
	}
	if err := m.Mark.CheckPath(s.self.ID); err != nil {
		return denied(err)
	}
	return nil
}

// carry serves what is asked on a trunk until that ends.
func (s *Server) carry(c net.Conn, in io.Reader) {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		_ = c.Close()
		return
	}
	s.running.Add(1)
	s.mu.Unlock()
	defer s.running.Done()
	if tcp := tcpOf(c); tcp != nil {
		_ = boundUnsentOf(tcp, trunkUnsent)
	}
	_ = c.SetDeadline(time.Time{})
	if _, err := io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+trunkProto+crlf+crlf); err != nil {
		_ = c.Close()
		return
	}
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		_ = c.Close()
		return
	}
	b := newCoach()
	b.session = trunk.Accept(&carrier{c, in}, nil, func(x *trunk.Conn) { _ = s.http.ServeConn(x) })
	b.session.OnSend(b.fill)
	s.coaches[b.session] = b
	s.mu.Unlock()
	s.fan.trunks.Add(1)
	err := b.session.Wait()
	s.fan.trunks.Add(-1)
	s.mu.Lock()
	delete(s.coaches, b.session)
	s.mu.Unlock()
	s.log.Debug("trunk over", "peer", c.RemoteAddr(), "err", err)
}

// coach returns that of a trunk.
func (s *Server) coach(of *trunk.Session) *coach {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.coaches[of]; b != nil {
		return b
	}
	b := newCoach() // the trunk is over already
	b.session = of
	return b
}

// closeTrunks ends all trunks.
func (s *Server) closeTrunks() {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.coaches))
	s.mu.Unlock()
	for _, x := range all {
		_ = x.Close()
	}
}

// onTrunk returns the trunk's connection that c is, nil if it is none.
func onTrunk(c net.Conn) *trunk.Conn {
	x, _ := underlying(c).(*trunk.Conn)
	return x
}
