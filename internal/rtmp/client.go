package rtmp

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"millrace/internal/flv"
	"millrace/internal/session"
)

// ClientConfig is how a Client behaves. Start from [DefaultClientConfig].
type ClientConfig struct {
	// Timeout bounds dialling with its handshakes, and each command, besides ctx.
	Timeout time.Duration
	// IdleTimeout is how long Read waits for the next tag.
	IdleTimeout time.Duration
	// WriteTimeout is how long Write may block.
	WriteTimeout time.Duration
	// ChunkSize is what the client announces and sends with.
	ChunkSize int
	// MessageBytes is the limit of one message from the server.
	MessageBytes int
	// Agent is sent as flashVer.
	Agent string
	// TLS is used for rtmps; nil verifies the server by the URL's host.
	TLS *tls.Config
	// Dial opens the TCP connection; nil uses a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// DefaultClientConfig returns settings that suit other servers as well as ours.
func DefaultClientConfig() ClientConfig {
	return ClientConfig{
		Timeout:      10 * time.Second,
		IdleTimeout:  30 * time.Second,
		WriteTimeout: 10 * time.Second,
		ChunkSize:    60_000,
		MessageBytes: 8 << 20,
		Agent:        "FMLE/3.0 (compatible; Millrace)", // some servers take publishers of this family only
	}
}

// StatusError is a refusal that the server told in its own words.
type StatusError struct {
	Code        string // such as NetStream.Publish.BadName
	Description string
}

// Error returns code and description.
func (e *StatusError) Error() string {
	if e.Description == "" {
		return "server says " + e.Code
	}
	return "server says " + e.Code + ": " + e.Description
}

// ErrRole is returned by Write without Publish, by Read without Play, and by a
// second Publish or Play.
var ErrRole = errors.New("the connection was not opened for this, or for something else already")

// Client is a connection to an RTMP server that either publishes or plays one
// stream. Close may be called from any goroutine; the other methods from one.
type Client struct {
	// Fixed at construction.
	cfg    ClientConfig
	net    net.Conn
	target target
	out    *chunkWriter

	// Owned by who reads: the caller, or after Publish the goroutine listen.
	in       *chunkReader
	shaken   bool // the handshake is over
	received uint64
	acked    uint64
	window   uint64
	early    []flv.Tag  // tags that Read has yet to return: several from an aggregate, or before Play.Start
	room     [4]flv.Tag // for early, mostly
	clock    int64
	timed    bool

	// Owned by the caller.
	batch batch

	// Owned by whoever holds out.mu.
	scratch []byte

	// Written by the caller, with mu held; Close reads them with it.
	mu        sync.Mutex
	stream    uint32
	role      session.Action
	begun     bool
	listening chan struct{} // closed when listen has returned; nil without it
	lost      error         // why; valid after listening is closed

	heard   atomic.Int64 // when something was read last, Unix ns
	closing sync.Once
	ending  atomic.Bool // Close has begun: nothing may block for long any more
}

// target is a URL taken apart as RTMP wants it.
type target struct {
	tls  bool
	addr string
	host string
	app  string
	name string // with the query
	url  string // tcUrl
}

// parseTarget splits rtmp://HOST[:PORT]/APP/NAME[?QUERY]. The app is the first
// segment of the path; the rest, slashes included, is the name.
func parseTarget(raw string) (target, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return target{}, fmt.Errorf("RTMP URL: %w", err)
	}
	t := target{tls: u.Scheme == "rtmps", host: u.Hostname()}
	if u.Scheme != "rtmp" && !t.tls || t.host == "" {
		return target{}, fmt.Errorf("RTMP URL %q: must be rtmp://HOST/APP/NAME or rtmps://HOST/APP/NAME", raw)
	}
	port := u.Port()
	switch {
	case port == "" && t.tls:
		port = "443"
	case port == "":
		port = "1935"
	}
	t.addr = net.JoinHostPort(t.host, port)
	t.app, t.name, _ = strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	if t.app == "" || t.name == "" {
		return target{}, fmt.Errorf("RTMP URL %q: must name an app and a stream, /APP/NAME", raw)
	}
	if u.RawQuery != "" {
		t.name += "?" + u.RawQuery
	}
	t.url = u.Scheme + "://" + u.Host + "/" + t.app
	return t, nil
}

// Dial connects to the server of rawURL, rtmp:// or rtmps://, up to an accepted
// connect command. A refusal is a [*StatusError].
func Dial(ctx context.Context, rawURL string, cfg ClientConfig) (*Client, error) {
	t, err := parseTarget(rawURL)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	dial := cfg.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	nc, err := dial(ctx, "tcp", t.addr)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", t.addr, err)
	}
	if t.tls {
		conf := cfg.TLS.Clone()
		if conf == nil {
			conf = &tls.Config{}
		}
		if conf.ServerName == "" {
			conf.ServerName = t.host
		}
		nc = tls.Client(nc, conf)
	}
	c := &Client{cfg: cfg, net: nc, target: t, window: ackWindow}
	c.in = newChunkReader(readerFunc(c.readSocket), idleBuffer, limits{message: cfg.MessageBytes, partial: 2 * cfg.MessageBytes, streams: 64})
	c.out = newChunkWriter(clientSink{c})
	if err := c.within(ctx, c.connect); err != nil {
		nc.Close()
		return nil, fmt.Errorf("connect to %s: %w", t.addr, err)
	}
	return c, nil
}

// within runs f, which blocks on the socket, until ctx is done.
func (c *Client) within(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	c.net.SetReadDeadline(time.Time{})
	stop := context.AfterFunc(ctx, func() { c.net.SetDeadline(time.Unix(1, 0)) })
	err := f()
	if !stop() { // the deadline has struck, perhaps just after
		return context.Cause(ctx)
	}
	return err
}

func (c *Client) connect() error {
	if err := clientHandshake(c.net, c.in); err != nil {
		return err
	}
	c.shaken = true
	size := uint32(c.cfg.ChunkSize)
	if err := c.out.control(chunksControl, typeSetChunkSize, 0, binary.BigEndian.AppendUint32(nil, size)); err != nil {
		return err
	}
	if err := c.call(0, "connect", 1, object{
		{"app", c.target.app},
		{"type", "nonprivate"},
		{"flashVer", c.cfg.Agent},
		{"tcUrl", c.target.url},
		{"fpad", false},
		{"capabilities", 239},
		{"audioCodecs", 3575},
		{"videoCodecs", 252},
		{"videoFunction", 1},
		{"fourCcList", []any{"*"}},
	}); err != nil {
		return err
	}
	_, err := c.result(1)
	return err
}

// call sends a command.
func (c *Client) call(stream uint32, name string, args ...any) error {
	return c.out.control(chunksCommand, typeCommand, stream, encode(append([]any{name}, args...)...))
}

// next returns the next message that is not about the connection itself.
func (c *Client) next() (message, error) {
	for {
		var m message
		if err := c.in.readMessage(&m); err != nil {
			return m, err
		}
		p := m.payload()
		switch {
		case m.kind == typeWindowAckSize && len(p) >= 4 && binary.BigEndian.Uint32(p) > 0:
			c.window = uint64(binary.BigEndian.Uint32(p))
		case m.kind == typeUserControl && len(p) >= 6 && binary.BigEndian.Uint16(p) == eventPing:
			pong := [6]byte{1: eventPong}
			copy(pong[2:], p[2:6])
			if err := c.out.control(chunksControl, typeUserControl, 0, pong[:]); err != nil {
				return m, err
			}
		case m.kind == typeCommand, m.kind == typeCommandAMF3, m.kind == typeAggregate, m.kind == typeDataAMF3, isMedia(m.kind):
			return m, nil
		}
	}
}

// result waits for the answer to a call.
func (c *Client) result(tx float64) (command, error) {
	for {
		m, err := c.next()
		if err != nil {
			return command{}, unexpected(err)
		}
		if m.kind != typeCommand && m.kind != typeCommandAMF3 {
			continue
		}
		cmd, err := parseCommand(&m)
		switch {
		case err != nil:
			return cmd, err
		case cmd.name == "_result" && cmd.tx == tx:
			return cmd, nil
		case cmd.name == "_error" && cmd.tx == tx:
			return cmd, cmd.status().refusal()
		case cmd.name == "onStatus" && cmd.status().level == levelError:
			return cmd, cmd.status().refusal()
		}
	}
}

// status is the information object of onStatus and _error.
type status struct{ level, code, text string }

// status returns the first object that has a code.
func (c *command) status() status {
	for _, a := range c.args {
		if o, ok := a.(object); ok && o.get("code") != nil {
			return status{o.text("level"), o.text("code"), o.text("description")}
		}
	}
	return status{}
}

func (s status) refusal() error {
	if s.code == "" {
		s.code = codeCallFailed
	}
	return &StatusError{s.code, s.text}
}

// readSocket reads from the server and acknowledges (RTMP 1.0, section 5.4.3).
func (c *Client) readSocket(p []byte) (int, error) {
	n, err := c.net.Read(p)
	c.received += uint64(n)
	if n > 0 {
		c.heard.Store(time.Now().UnixNano())
	}
	if c.shaken && c.received-c.acked >= c.window {
		c.acked = c.received
		ack := binary.BigEndian.AppendUint32(nil, uint32(c.received))
		if err := c.out.control(chunksControl, typeAck, 0, ack); err != nil {
			return n, err
		}
	}
	return n, err
}

// clientSink writes for the chunkWriter of a client.
type clientSink struct{ c *Client }

func (s clientSink) write(bufs *net.Buffers) error {
	c := s.c
	limit := c.cfg.WriteTimeout
	if c.ending.Load() {
		limit = farewellTimeout
	}
	c.net.SetWriteDeadline(time.Now().Add(limit))
	if tcp := tcpConn(c.net); tcp != nil {
		_, err := bufs.WriteTo(tcp)
		return err
	}
	c.scratch = c.scratch[:0]
	for _, b := range *bufs {
		c.scratch = append(c.scratch, b...)
	}
	_, err := c.net.Write(c.scratch)
	return err
}

// Close ends the publish or the play, tells the server if that takes no time, and
// closes the connection. It unblocks other methods.
func (c *Client) Close() error {
	var err error
	c.closing.Do(func() {
		c.ending.Store(true)
		c.mu.Lock()
		stream, listening := c.stream, c.listening
		c.mu.Unlock()
		if listening != nil { // a publish that was accepted
			_ = c.call(0, "FCUnpublish", 0, nil, c.target.name)
			_ = c.call(0, "deleteStream", 0, nil, stream)
		}
		err = c.net.Close()
		if listening != nil {
			<-listening
		}
	})
	return err
}

// Err returns why the server has ended the publish, nil while it goes on.
func (c *Client) Err() error {
	if c.listening == nil {
		return nil
	}
	select {
	case <-c.listening:
		return c.lost
	default:
		return nil
	}
}

// Addr returns the server's address.
func (c *Client) Addr() net.Addr { return c.net.RemoteAddr() }
