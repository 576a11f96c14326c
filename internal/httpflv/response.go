package httpflv

import (
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/session"
	"millrace/internal/stream"
)

// refusal is an answer that is not a stream. Its text says what to do.
type refusal struct {
	status int
	reason session.Reason
	text   string
	header string        // more header lines, each with its end
	delay  time.Duration // before it is told
}

// The refusals that are always the same.
var (
	draining = refusal{
		status: fasthttp.StatusServiceUnavailable, reason: session.Draining, header: "Retry-After: 1\r\n",
		text: "this node is shutting down: ask again, another one will answer",
	}
	overLimit = refusal{
		status: fasthttp.StatusServiceUnavailable, reason: session.OverLimit, header: "Retry-After: 5\r\n",
		text: "this node has as many viewers as it may: try again in a few seconds",
	}
	notAllowed = refusal{
		status: fasthttp.StatusMethodNotAllowed, reason: session.BadRequest, header: "Allow: GET, HEAD, OPTIONS\r\n",
		text: "a stream can be read with GET only: publish over RTMP",
	}
	badOrigin = refusal{
		status: fasthttp.StatusForbidden, reason: session.Forbidden,
		text: "this web page may not read streams here: add its origin to origins in the configuration",
	}
	notNode = refusal{
		status: fasthttp.StatusForbidden, reason: session.Unsigned,
		text: "this address is for other nodes, which sign what they ask: players use the public one",
	}
	noPage = refusal{
		status: fasthttp.StatusNotFound, reason: session.None,
		text: "nothing here: a stream is at /APP/NAME.flv",
	}
)

// reasonField is the header field with the word of a refusal, for programs.
const reasonField = "Millrace-Reason"

// missing is the answer to who waited for a stream that did not come.
func missing(n stream.Name, why session.Reason) refusal {
	switch why {
	case session.Draining:
		return draining
	case session.NoKeyframe:
		return refusal{
			status: fasthttp.StatusServiceUnavailable, reason: why, header: "Retry-After: 2\r\n",
			text: string(n) + " is live but has shown no keyframe, and a player begins at one: look at the keyframe interval of the encoder",
		}
	case session.UpstreamLost:
		return refusal{
			status: fasthttp.StatusBadGateway, reason: why, header: "Retry-After: 2\r\n",
			text: "no upstream of this node answers for " + string(n) + ": see /v1/events on its admin address",
		}
	case session.Loop:
		return refusal{
			status: fasthttp.StatusLoopDetected, reason: why,
			text: "the upstreams of this node lead back to it: see /v1/events on its admin address",
		}
	}
	return refusal{
		status: fasthttp.StatusNotFound, reason: session.NotFound,
		text: "nobody publishes " + string(n) + " now: publish to rtmp://HOST/" + string(n) + " and ask again",
	}
}

func badRequest(text string) refusal {
	return refusal{status: fasthttp.StatusBadRequest, reason: session.BadRequest, text: text}
}

// append appends the whole response, for a connection that the HTTP library has
// given up. It ends the connection.
func (r refusal) append(dst []byte, cors string, now time.Time) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(r.status), 10)
	dst = append(dst, ' ')
	dst = append(dst, fasthttp.StatusMessage(r.status)...)
	dst = append(dst, "\r\nDate: "...)
	dst = fasthttp.AppendHTTPDate(dst, now)
	dst = append(dst, "\r\nContent-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\nConnection: close\r\nContent-Length: "...)
	dst = strconv.AppendInt(dst, int64(len(r.text)+1), 10)
	dst = append(dst, crlf...)
	dst = append(dst, r.header...)
	if r.reason != session.None {
		dst = append(dst, reasonField+": "+r.reason.String()+crlf...)
	}
	dst = append(dst, cors...)
	dst = append(dst, crlf...)
	dst = append(dst, r.text...)
	return append(dst, '\n')
}

// streamHead are the header fields of every stream. A stream has no length, no
// ranges and no end that is known, and what is cached of it is old.
const streamHead = "Content-Type: video/x-flv\r\nCache-Control: no-cache, no-store\r\nPragma: no-cache\r\n" +
	"Accept-Ranges: none\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n"

// appendHead appends the response header of a stream.
func appendHead(dst []byte, f framing, cors string, now time.Time) []byte {
	dst = append(dst, "HTTP/1.1 200 OK\r\nDate: "...)
	dst = fasthttp.AppendHTTPDate(dst, now)
	dst = append(dst, crlf...)
	dst = append(dst, streamHead...)
	if f == chunked {
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
	}
	dst = append(dst, cors...)
	return append(dst, crlf...)
}

// answer is a refusal that is told later: whoever guesses keys shall wait. It
// costs a connection, and no goroutine.
type answer struct {
	conn net.Conn
	at   time.Duration // on the clock of the shards
	text []byte
}

// answerTime is how long telling may take. The first bytes on a connection fit into
// its send buffer, so it takes none.
const answerTime = 100 * time.Millisecond

func (a answer) deliver() {
	_ = a.conn.SetWriteDeadline(time.Now().Add(answerTime))
	_, _ = a.conn.Write(a.text)
	_ = a.conn.Close()
}

// maxAnswers is how many answers a shard holds back; beyond that they are told at
// once.
const maxAnswers = 1024

// answerLater holds an answer back for delay.
func (f *Fanout) answerLater(conn net.Conn, text []byte, delay time.Duration) {
	s := f.shards[int(f.first[0].Load())%len(f.shards)]
	a := answer{conn: conn, text: text, at: s.now() + delay}
	s.mu.Lock()
	now := s.stopped || s.held.Load() >= maxAnswers
	if !now {
		s.held.Add(1)
		s.inbox.answers = append(s.inbox.answers, a)
	}
	s.mu.Unlock()
	if now {
		a.deliver()
		return
	}
	s.mail.Store(true)
	s.wake()
}

// readOnly are the methods of what can only be read.
const readOnly = "GET, HEAD, OPTIONS"

// setLines sets header lines, each with its end.
func setLines(ctx *fasthttp.RequestCtx, lines string) {
	for line := range strings.SplitSeq(strings.TrimSuffix(lines, crlf), crlf) {
		if name, value, ok := strings.Cut(line, ": "); ok {
			ctx.Response.Header.Set(name, value)
		}
	}
}

// preflight answers OPTIONS (Fetch standard, "CORS-preflight fetch").
func preflight(ctx *fasthttp.RequestCtx, cors, methods string) {
	ctx.SetStatusCode(fasthttp.StatusNoContent)
	h := &ctx.Response.Header
	h.Set("Allow", methods)
	setLines(ctx, cors)
	h.Set("Access-Control-Allow-Methods", methods)
	h.Set("Access-Control-Allow-Headers", "*")
	h.Set("Access-Control-Max-Age", "86400")
}

// answerHead says what a GET would, and starts nothing.
func answerHead(ctx *fasthttp.RequestCtx, p play) {
	setLines(ctx, streamHead)
	setLines(ctx, p.cors)
	ctx.Response.SkipBody = true
	if p.framing == chunked {
		ctx.Response.Header.SetContentLength(-1)
	} else {
		ctx.Response.Header.SetContentLength(-2) // none: to the end of the connection
	}
	ctx.SetConnectionClose()
}
