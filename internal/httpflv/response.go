package httpflv

import (
	"net"
	"strconv"
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
	noPage = refusal{
		status: fasthttp.StatusNotFound, reason: session.None,
		text: "nothing here: a stream is at /APP/NAME.flv",
	}
)

func notFound(n stream.Name) refusal {
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
