package httpflv

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/internal/socket"
	"millrace/internal/trunk"
)

const (
	// pullHead bounds what may come before the stream: all interim answers and the
	// header of the final one.
	pullHead = 32 << 10
	// pullBuffer is what one read from the socket takes at most, and tagBuffer what
	// stands between it and the tags. Larger ones save little: a node sends each tag
	// on its own.
	pullBuffer = 16 << 10
	tagBuffer  = 4 << 10
	// maxRedirects is for content networks of others, which point at a near server.
	maxRedirects = 3
)

// PullConfig says how streams are pulled.
type PullConfig struct {
	// Timeout is for everything up to the header of the response, redirects and
	// interim answers included. Zero means that only the context limits it.
	Timeout time.Duration
	// Idle ends a connection on which nothing at all came for so long. Zero means
	// never.
	Idle time.Duration
	// MessageBytes is how big the payload of a tag may be.
	MessageBytes int
	// TLS is used for https; nil is the default of the system. It is not changed.
	TLS *tls.Config
	// Dial opens connections; nil is that of a [net.Dialer].
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Agent is the User-Agent, one line of text. Empty sends none.
	Agent string
	// Trunks carry what is pulled with a mark from nodes that take trunks. Nil has a
	// connection for each stream.
	Trunks *Trunks
}

// PullRequest says which stream is pulled, and for whom.
type PullRequest struct {
	// URL is that of the stream: http or https. A user and a password in it are sent.
	URL string
	// Marked sends the mark, with the signature if there is one, and Back: see
	// [Marks]. To servers that are not ours nothing is sent.
	Marked    bool
	Mark      auth.Mark
	Signature string
	Back      time.Duration
	// Patient waits for a trunk that is being opened. See [Trunks].
	Patient bool
	// OnPath is called, if not nil, each time that the other node says through whom
	// it looks for the stream: by Pull itself, before it returns. It must not block.
	OnPath func(path []string)
	// OnTrunk is called, if not nil, when the stream is asked for on a trunk: with the
	// connection that carries it, for looking at it only, and how long its TCP handshake
	// took, if this is the first stream on it, else 0.
	OnTrunk func(carrier net.Conn, handshake time.Duration)
}

// PullConn is a stream that is being pulled. Read is for one goroutine; Close and Addr
// are for any. It costs about 22 KiB (TestPullMemory), and no goroutine of its own.
type PullConn struct {
	// Fixed at construction.
	conn    net.Conn // the socket, below TLS
	content string   // its Content-Type
	idle    time.Duration
	tags    *flv.Reader

	// Owned by the reader.
	begun bool // there was a tag

	// Safe from any goroutine.
	closed atomic.Bool
}

// Pull asks for a stream and returns when the header of the answer is there; tags
// may follow much later. An answer that is not a stream is a [*PullError]. ctx and
// the timeout end Pull, but not the connection that it has returned, which the
// caller closes.
func Pull(ctx context.Context, r PullRequest, cfg PullConfig) (*PullConn, error) {
	u, err := parseURL(r.URL)
	if err != nil {
		return nil, err
	}
	if cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.Timeout)
		defer cancel()
	}
	for range maxRedirects + 1 {
		p, next, err := pullOnce(ctx, u, &r, &cfg)
		if err != nil {
			return nil, fmt.Errorf("pull %s: %w", shown(u), err)
		}
		if p != nil {
			return p, nil
		}
		if u.Scheme == "https" && next.Scheme != "https" {
			return nil, fmt.Errorf("pull %s: redirect to %s, which is not encrypted", shown(u), shown(next))
		}
		if next.Host != u.Host {
			// The way stays, against loops. The signature is for the one who was asked.
			r.Signature = ""
		}
		u = next
	}
	return nil, fmt.Errorf("pull %s: more than %d redirects", shown(u), maxRedirects)
}

// parseURL reads the URL of a stream. Its errors do not repeat what may be secret.
func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, errors.New("pull: the address is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("pull %s: the scheme must be http or https", shown(u))
	case u.Hostname() == "":
		return nil, fmt.Errorf("pull %s: there is no host", shown(u))
	}
	return u, nil
}

// shown returns u without what may be secret: the user and the query.
func shown(u *url.URL) string { return u.Scheme + "://" + u.Host + u.EscapedPath() }

// pullOnce asks one server. It returns a connection or where else to ask.
func pullOnce(ctx context.Context, u *url.URL, r *PullRequest, cfg *PullConfig) (*PullConn, *url.URL, error) {
	if r.Marked {
		if c, x := cfg.Trunks.dial(ctx, u, r.Patient); c != nil {
			if r.OnTrunk != nil {
				r.OnTrunk(x.tcp, x.first())
			}
			p, next, err := askOn(ctx, c, c, u, r, cfg)
			if !errors.Is(err, trunk.ErrBroken) {
				return p, next, err
			}
		}
	}
	raw, err := dialPull(ctx, u, cfg.Dial)
	if err != nil {
		return nil, nil, err
	}
	conn, err := secured(ctx, raw, u, cfg.TLS)
	if err != nil {
		_ = raw.Close()
		return nil, nil, err
	}
	return askOn(ctx, raw, conn, u, r, cfg)
}

// askOn asks for a stream on conn, below which is raw, and closes raw if it does not
// get one.
func askOn(ctx context.Context, raw, conn net.Conn, u *url.URL, r *PullRequest, cfg *PullConfig) (*PullConn, *url.URL, error) {
	stop := context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })
	p, next, err := exchange(raw, conn, u, r, cfg)
	if !stop() { // the deadline is set, or will be
		p, err = nil, ctx.Err()
	}
	if p == nil {
		_ = raw.Close()
	}
	return p, next, err
}

func dialPull(ctx context.Context, u *url.URL, dial func(context.Context, string, string) (net.Conn, error)) (net.Conn, error) {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	c, err := dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return nil, err
	}
	return socket.Of(c), nil
}

// secured returns raw, or the TLS on it if u asks for that.
func secured(ctx context.Context, raw net.Conn, u *url.URL, cfg *tls.Config) (net.Conn, error) {
	if u.Scheme != "https" {
		return raw, nil
	}
	t := tls.Client(raw, tlsFor(cfg, u.Hostname()))
	return t, t.HandshakeContext(ctx)
}

// exchange writes the request to conn and reads the answer.
func exchange(raw, conn net.Conn, u *url.URL, r *PullRequest, cfg *PullConfig) (*PullConn, *url.URL, error) {
	if _, err := conn.Write(appendRequest(nil, u, r, cfg.Agent)); err != nil {
		return nil, nil, err
	}
	src := &pullSource{conn: conn, raw: raw, head: pullHead}
	resp, err := readAnswer(bufio.NewReaderSize(src, pullBuffer), r.OnPath)
	if err != nil {
		if src.head == 0 { // whatever the parser made of what was cut
			err = errHead
		}
		return nil, nil, err
	}
	if to := resp.Header.Get("Location"); to != "" && redirects(resp.StatusCode) {
		next, err := u.Parse(to)
		if err != nil {
			return nil, nil, errors.New("the redirect is not to a URL")
		}
		next, err = parseURL(next.String())
		return nil, next, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = raw.SetReadDeadline(time.Now().Add(refusalTime))
		return nil, nil, pullError(resp, time.Now())
	}
	if r.Marked && resp.Header.Get(trunkField) != "" {
		cfg.Trunks.learn(u)
	}
	src.head, src.idle = unlimited, cfg.Idle
	return &PullConn{
		conn: raw, content: resp.Header.Get("Content-Type"), idle: cfg.Idle,
		tags: flv.NewReaderSize(resp.Body, cfg.MessageBytes, tagBuffer),
	}, nil, nil
}

func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

func tlsFor(cfg *tls.Config, host string) *tls.Config {
	if cfg == nil {
		cfg = &tls.Config{}
	}
	cfg = cfg.Clone()
	if cfg.ServerName == "" {
		cfg.ServerName = host
	}
	cfg.NextProtos = []string{"http/1.1"}
	return cfg
}

// appendRequest appends the head of the request.
func appendRequest(dst []byte, u *url.URL, r *PullRequest, agent string) []byte {
	dst = append(dst, "GET "...)
	dst = append(dst, strings.ReplaceAll(u.RequestURI(), " ", "%20")...)
	dst = append(dst, " HTTP/1.1\r\nHost: "+u.Host+crlf...)
	if agent != "" {
		dst = append(dst, "User-Agent: "+agent+crlf...)
	}
	dst = append(dst, "Accept: */*\r\nConnection: close\r\n"...)
	if u.User != nil {
		password, _ := u.User.Password()
		dst = append(dst, "Authorization: Basic "...)
		dst = base64.StdEncoding.AppendEncode(dst, []byte(u.User.Username()+":"+password))
		dst = append(dst, crlf...)
	}
	if r.Marked {
		dst = AppendMarks(dst, Marks{Mark: r.Mark, Signature: r.Signature, Back: r.Back})
	}
	return append(dst, crlf...)
}

// readAnswer reads the header of the final answer, and passes on what interim ones
// say (RFC 9110, 15.2).
func readAnswer(r *bufio.Reader, onPath func([]string)) (*http.Response, error) {
	for {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return nil, unexpectedEOF(err)
		}
		if resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, nil
		}
		if path := parsePath(resp.Header.Get(pathField)); path != nil && onPath != nil {
			onPath(path)
		}
	}
}

func unexpectedEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// pullSource is what bytes are read from, through a buffer.
type pullSource struct {
	conn net.Conn
	raw  net.Conn // the socket below conn
	head int      // how much may still come before the end of the header
	idle time.Duration
}

// unlimited is the head of a pullSource that is behind it.
const unlimited = -1

var errHead = fmt.Errorf("the header of the response is over %d bytes", pullHead)

// Read implements [io.Reader].
func (s *pullSource) Read(b []byte) (int, error) {
	if s.head == unlimited {
		if s.idle > 0 {
			_ = s.raw.SetReadDeadline(time.Now().Add(s.idle))
		}
		return s.conn.Read(b)
	}
	if s.head == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := s.conn.Read(b[:min(len(b), s.head)])
	s.head -= n
	return n, err
}

// Read returns the next tag, whose bytes are the caller's. Link tags come like all
// others: see [ParseLink]. When the server has ended the stream the error is io.EOF.
// A connection that was cut is io.ErrUnexpectedEOF, one that was idle too long
// os.ErrDeadlineExceeded, one that was closed here net.ErrClosed, and a body that is
// no FLV stream flv.ErrNotFLV, flv.ErrTag or flv.ErrTooBig, all of them wrapped with
// what is known. The end of a body without chunks or length cannot be told from a
// cut, unless it is within a tag.
func (p *PullConn) Read() (flv.Tag, error) {
	t, err := p.tags.Read()
	if err != nil {
		return flv.Tag{}, p.explain(err)
	}
	p.begun = true
	return t, nil
}

func (p *PullConn) explain(err error) error {
	if p.closed.Load() {
		return net.ErrClosed
	}
	if err == io.EOF && p.begun {
		return err
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return fmt.Errorf("nothing came for %v: %w", p.idle, err)
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, err)
	}
	if errors.Is(err, flv.ErrNotFLV) {
		return fmt.Errorf("%w; its Content-Type is %.80q", err, p.content)
	}
	return unexpectedEOF(err) // an end before the first tag is none of a stream
}

// Close ends the connection, and a Read that waits. It may be called again.
func (p *PullConn) Close() error {
	if p.closed.Swap(true) {
		return nil
	}
	return p.conn.Close() // not that of TLS, which waits for a frozen peer
}

// Addr returns the address of the server.
func (p *PullConn) Addr() net.Addr { return p.conn.RemoteAddr() }
