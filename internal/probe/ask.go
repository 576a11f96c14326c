package probe

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"millrace/internal/auth"
	"millrace/internal/sched"
	"millrace/internal/stream"
)

// What is asked; see internal/httpflv, which answers.
const (
	healthPath  = "/healthz"
	figuresPath = "/.well-known/millrace"
	reasonField = "Millrace-Reason" // why not 200
)

// Bounds of what a node may say.
const (
	maxHead    = 8 << 10 // status line and header
	maxHealth  = 4 << 10 // body of /healthz
	maxFigures = 1 << 20 // as a node keeps to
	maxStreams = 10_000  // as a node keeps to
	maxLoad    = 1 << 50 // bytes/s: a petabyte
	maxViewers = 1 << 31
)

// probe asks t once. It ends within the timeout, or when ctx ends.
func (p *Prober) probe(ctx context.Context, t *target) result {
	r := result{of: t}
	r.err = p.ask(ctx, t, time.Now().Add(p.cfg.Timeout), &r)
	if r.err != nil {
		r.outcome, r.figures = outcomeOf(r.err), nil
	}
	r.at = time.Now()
	return r
}

// ask fills in r.
func (p *Prober) ask(ctx context.Context, t *target, deadline time.Time, r *result) error {
	begun := time.Now()
	w, err := p.connect(ctx, t, deadline)
	if err != nil {
		return err
	}
	defer func() { w.close() }()
	r.rtt = w.opened.Sub(begun)
	signed := p.cluster.Enabled()
	open, err := p.health(w, t, r, signed)
	if err != nil || !signed {
		return err
	}
	if !open {
		w.close()
		again, err := p.connect(ctx, t, deadline)
		if err != nil {
			return err
		}
		w = again
	}
	return p.figures(w, t, r)
}

// connect opens a connection to t.
func (p *Prober) connect(ctx context.Context, t *target, deadline time.Time) (*wire, error) {
	within, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	conn, err := p.dial(within, t.network, t.addr)
	if err != nil {
		return nil, err
	}
	w := &wire{conn: conn, opened: time.Now()}
	// Whoever stops the prober does not wait for a deadline.
	w.stop = context.AfterFunc(ctx, func() { conn.Close() })
	if err := conn.SetDeadline(deadline); err != nil {
		w.close()
		return nil, err
	}
	if t.tls {
		secure := tls.Client(conn, p.tlsConfig(t))
		if err := secure.HandshakeContext(within); err != nil {
			w.close()
			return nil, err
		}
		w.conn = secure
	}
	w.limit.R = w
	w.in = bufio.NewReaderSize(&w.limit, 4<<10)
	return w, nil
}

func (p *Prober) tlsConfig(t *target) *tls.Config {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if p.tls != nil {
		conf = p.tls.Clone()
	}
	conf.ServerName = cmp.Or(conf.ServerName, t.name)
	return conf
}

// health asks /healthz. It reports whether the connection is still open.
func (p *Prober) health(w *wire, t *target, r *result, more bool) (open bool, err error) {
	said, err := w.get(t, healthPath, "", !more, maxHealth)
	switch {
	case err != nil:
		return false, err
	case said.status == http.StatusOK:
	case said.status == http.StatusServiceUnavailable && said.reason == "draining":
		r.outcome = Draining
	case said.status == http.StatusServiceUnavailable && said.reason == "over_limit":
		r.outcome = Full
	default:
		return false, fail(BadStatus, "%s says %d %.40q", healthPath, said.status, said.reason)
	}
	return !said.closed, nil
}

// told is what a node says of itself.
type told struct {
	Node     string   `json:"node"`
	Draining bool     `json:"draining"`
	Full     bool     `json:"full"`
	Load     int64    `json:"load"`
	Viewers  int64    `json:"viewers"`
	Refused  uint64   `json:"refused"`
	Streams  []string `json:"streams"`
}

// figures asks for the figures, on the connection of the health check.
func (p *Prober) figures(w *wire, t *target, r *result) error {
	target := figuresPath
	if !t.names {
		target += "?streams=0"
	}
	mark := auth.Mark{Node: p.observer, Via: []string{p.observer}, Purpose: auth.Probe}
	head := "Via: 1.1 " + p.observer + " (millrace)\r\nMillrace-Purpose: " + mark.Purpose.String() +
		"\r\nMillrace-Signature: " + p.cluster.Sign(time.Now(), mark) + "\r\n"
	said, err := w.get(t, target, head, true, maxFigures)
	if err != nil {
		return err
	}
	if said.status != http.StatusOK {
		if r.outcome == Up {
			r.outcome = NoFigures
		}
		r.note = fmt.Sprintf("%s says %d %.40q: do the cluster keys and clocks agree?", figuresPath, said.status, said.reason)
		return nil
	}
	f, err := parseFigures(said.body)
	if err != nil {
		return err
	}
	if f.Node != t.node {
		return fail(WrongNode, "node %s answers there", f.Node)
	}
	switch {
	case f.Draining:
		r.outcome = Draining
	case f.Full && r.outcome == Up:
		r.outcome = Full
	}
	if !t.names {
		return nil // the other family has them
	}
	r.figures = &sched.Figures{Load: f.Load, Viewers: int(f.Viewers), Refused: f.Refused, Streams: make([]stream.Name, len(f.Streams))}
	for i, name := range f.Streams {
		r.figures.Streams[i] = stream.Name(name)
	}
	return nil
}

// parseFigures reads what a node says of itself, and believes nothing that makes no
// sense.
func parseFigures(b []byte) (told, error) {
	var f told
	if err := json.Unmarshal(b, &f); err != nil || !auth.ValidNodeID(f.Node) {
		return told{}, fail(BadAnswer, "%s says %.80q", figuresPath, b)
	}
	if f.Load < 0 || f.Load > maxLoad || f.Viewers < 0 || f.Viewers > maxViewers || len(f.Streams) > maxStreams {
		return told{}, fail(BadAnswer, "%s says load %d, viewers %d and %d streams", figuresPath, f.Load, f.Viewers, len(f.Streams))
	}
	for _, s := range f.Streams {
		if n, err := stream.ParsePath(s); err != nil || string(n) != s {
			return told{}, fail(BadAnswer, "%s names a stream %.80q", figuresPath, s)
		}
	}
	return f, nil
}

// wire speaks HTTP/1.1 on one connection.
type wire struct {
	conn   net.Conn
	opened time.Time
	stop   func() bool      // ends the watch over the context
	limit  io.LimitedReader // what may still come
	in     *bufio.Reader    // of limit
	broke  error            // why nothing more could be read; the parser takes half a line for a whole one
}

// Read reads from the connection and keeps its error.
func (w *wire) Read(b []byte) (int, error) {
	n, err := w.conn.Read(b)
	if err != nil && err != io.EOF {
		w.broke = err
	}
	return n, err
}

func (w *wire) close() {
	w.stop()
	w.conn.Close()
}

// response is what is of interest of one.
type response struct {
	status int
	reason string
	body   []byte
	closed bool // nothing more can be asked
}

// get asks for a path below the base of t. more are header lines; last says that
// nothing else will be asked.
func (w *wire) get(t *target, path, more string, last bool, maxBody int64) (response, error) {
	if last {
		more += "Connection: close\r\n"
	}
	if _, err := fmt.Fprintf(w.conn, "GET %s%s HTTP/1.1\r\nHost: %s\r\nUser-Agent: millrace\r\n%s\r\n", t.path, path, t.host, more); err != nil {
		return response{}, err
	}
	w.limit.N = maxHead + maxBody
	if _, err := w.in.Peek(1); err != nil {
		return response{}, err
	}
	resp, err := http.ReadResponse(w.in, nil)
	if err != nil {
		return response{}, w.fault(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err == nil && int64(len(body)) > maxBody {
		err = fail(BadAnswer, "%s says more than %d bytes", path, maxBody)
	}
	if err != nil {
		return response{}, w.fault(err)
	}
	reason := resp.Header.Get(reasonField)
	if reason == "" && resp.StatusCode != http.StatusOK {
		reason = strings.TrimSpace(string(body[:min(len(body), 40)]))
	}
	return response{resp.StatusCode, reason, bytes.TrimSpace(body), resp.Close}, nil
}

// fault tells apart an answer that makes no sense from a connection that broke.
func (w *wire) fault(err error) error {
	var network net.Error
	switch _, known := errors.AsType[*failure](err); {
	case known:
		return err
	case w.limit.N <= 0:
		return fail(BadAnswer, "more comes than any node says")
	case errors.As(err, &network), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.Is(err, io.ErrClosedPipe):
		return err
	case w.broke != nil:
		return w.broke
	}
	return fail(BadAnswer, "no HTTP: %.100s", err.Error())
}
