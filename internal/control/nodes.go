package control

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/auth"
	"millrace/internal/stream"
)

// MaxSent is how many bytes the body of a request may have, as it is sent: far more than
// a packed heartbeat of the most streams. HTTP servers in front of a Server should read
// no more.
const MaxSent = 2 << 20

const notARouter = "this server takes no heartbeats and gives no orders: name the URL of a router"

// heartbeat takes what a node says.
func (s *Server) heartbeat(ctx *fasthttp.RequestCtx, q question, signature string) (Refusal, string) {
	fleet := s.fleet.Load()
	if fleet == nil {
		return NotFound, notARouter
	}
	from := addressOf(ctx)
	ack, err := s.hear(ctx, *fleet, q, signature, from)
	if err != nil {
		if errors.Is(err, errCrowd) {
			ctx.Response.Header.Set("Retry-After", strconv.Itoa(s.gate.reject(time.Now())))
		}
		s.tellRefused(*fleet, q.node, from, err)
		return RefusalOf(err), err.Error()
	}
	s.heard.Add(1)
	s.sendOne(ctx, signature, ack)
	return NotRefused, ""
}

// tellRefused tells the backend what it has not refused itself. That the server has too
// much to do, or ends, is not the fault of the node.
func (s *Server) tellRefused(f Backend, node string, from netip.Addr, err error) {
	why := RefusalOf(err)
	if _, told := errors.AsType[backendError](err); told || why == TooMany || why == Draining {
		return
	}
	if !auth.ValidNodeID(node) {
		node = ""
	}
	f.Refused(time.Now(), node, from, why, err.Error())
}

// backendError is an error of the backend's own.
type backendError struct{ error }

// hear reads a heartbeat and hands it on. Who sent it is known before anything is
// unpacked.
func (s *Server) hear(ctx *fasthttp.RequestCtx, f Backend, q question, signature string, from netip.Addr) (*Ack, error) {
	if s.gate.full() {
		return nil, errCrowd
	}
	// A body of unknown length has been read by the HTTP server, within its own limit.
	if n := max(ctx.Request.Header.ContentLength(), len(ctx.Request.Body())); n > MaxSent {
		return nil, deny(TooBig, "the heartbeat has %d bytes, even packed, at most %d are read", n, MaxSent)
	}
	sent := ctx.Request.Body()
	sum := sha256.Sum256(sent)
	q.encoding, q.sum = string(ctx.Request.Header.ContentEncoding()), &sum
	if len(q.encoding) > maxEncoding {
		return nil, deny(BadRequest, "a header field is too long")
	}
	if r, text := s.admit(q, signature); r != NotRefused {
		return nil, deny(r, "%s", text)
	}
	if !s.gate.enter() {
		return nil, errCrowd
	}
	begun := time.Now()
	ack, err := s.take(f, begun, q, sent, from)
	now := time.Now()
	s.gate.leave(begun, now)
	if err == nil {
		ack.Interval = int(float64(ack.Interval) * s.gate.stretch(now))
	}
	return ack, err
}

var errCrowd = deny(TooMany, "too many nodes speak at once: come back, or tell another router")

// maxEncoding is how long the name of an encoding may be.
const maxEncoding = 16

// take unpacks, reads and checks a heartbeat, and hands it on.
func (s *Server) take(f Backend, now time.Time, q question, sent []byte, from netip.Addr) (*Ack, error) {
	var h *Heartbeat
	err := s.unpacker.unpack(q.encoding, sent, MaxHeartbeat, func(b []byte) (err error) {
		h, err = ParseHeartbeat(b)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := h.Validate(now); err != nil {
		return nil, err
	}
	if h.Node != q.node {
		return nil, deny(NotYours, "the heartbeat is of node %s and the question of %.80q: a node speaks for itself", h.Node, q.node)
	}
	ack, refusal, err := f.Heartbeat(now, h, from)
	if refusal != NotRefused {
		if err == nil {
			err = fmt.Errorf("the heartbeat is refused: %v", refusal)
		}
		return nil, deny(refusal, "%w", backendError{err})
	}
	return &ack, nil
}

// ordersOf tells a node its orders, as soon as there are others than it has.
func (s *Server) ordersOf(ctx *fasthttp.RequestCtx, node, signature string) (Refusal, string) {
	fleet := s.fleet.Load()
	args := ctx.QueryArgs()
	wait, err := parseWait(string(args.Peek("wait")))
	switch {
	case err != nil:
		return BadRequest, err.Error()
	case fleet == nil:
		return NotFound, notARouter
	case !auth.ValidNodeID(node):
		return BadRequest, "say whose orders are wanted: header " + nodeField
	}
	have := string(args.Peek("have"))
	p, ok := s.orders.await(*fleet, node, have, min(wait, s.cfg.MaxWait), s.cfg.MaxWaiting, s.ended)
	switch {
	case !ok:
		return TooMany, "too many nodes wait here for orders already: ask another router"
	case p == nil:
		return NoOrders, "there are no orders for this node yet: they follow its first heartbeat and the first plan"
	case p.Token() == have:
		s.send(ctx, signature, fasthttp.StatusNotModified, have, &nobody)
	default:
		s.send(ctx, signature, fasthttp.StatusOK, p.Token(), p.payload.in(best(string(ctx.Request.Header.Peek("Accept-Encoding")))))
	}
	return NotRefused, ""
}

// route tells a node where to pull a stream from.
func (s *Server) route(ctx *fasthttp.RequestCtx, signer, signature string) (Refusal, string) {
	fleet := s.fleet.Load()
	args := ctx.QueryArgs()
	node := string(args.Peek("node"))
	n, err := stream.ParsePath(string(args.Peek("stream")))
	switch {
	case fleet == nil:
		return NotFound, notARouter
	case err != nil:
		return BadRequest, err.Error()
	case !auth.ValidNodeID(node):
		return BadRequest, "say which node asks: node=ID"
	case node != signer && (signer != "" || s.cluster.Enabled()):
		return NotYours, "a node asks for itself: node and the header " + nodeField + " must be the same"
	}
	s.routed.Add(1)
	r := (*fleet).Path(node, n)
	s.sendOne(ctx, signature, &r)
	return NotRefused, ""
}

// sendOne answers with what nobody else is answered.
func (s *Server) sendOne(ctx *fasthttp.RequestCtx, signature string, v any) {
	b := mustJSON(v)
	s.send(ctx, signature, fasthttp.StatusOK, "", &body{bytes: b, sum: sha256.Sum256(b)})
}

// addressOf returns where a question came from, the zero Addr if that is no address.
func addressOf(ctx *fasthttp.RequestCtx) netip.Addr {
	if a, ok := ctx.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
