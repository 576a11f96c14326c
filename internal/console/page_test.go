package console

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/valyala/fasthttp"

	"millrace/internal/fleet"
)

// page follows live over a pipe.
type page struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader // of the body, unpacked; nil before the first read
	head string
	done chan struct{} // closed when the console is through with it
}

// event is one that came.
type event struct{ name, id, data string }

// follow makes a page that follows; it is refused with what is returned.
func (s *session) follow(t *testing.T, fields ...string) (*page, error) {
	var q fasthttp.Request
	q.SetRequestURI("/api/live")
	q.Header.SetHost(host)
	q.Header.Set("Cookie", s.cookie)
	for i := 0; i < len(fields); i += 2 {
		q.Header.Set(fields[i], fields[i+1])
	}
	var ctx fasthttp.RequestCtx
	ctx.Init(&q, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4000}, nil)
	a := &call{RequestCtx: &ctx, now: time.Now()}
	var r *refusal
	if a.caller, r = s.who(&ctx, a.now); r != nil {
		return nil, r
	}
	li, err := s.live.listen(a)
	if err != nil {
		return nil, err
	}
	here, there := net.Pipe()
	p := &page{t: t, conn: here, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		s.live.attend(there, li)
	}()
	return p, nil
}

// next returns the next event; comments and what is no event are passed over.
func (p *page) next() (e event, err error) {
	if p.r == nil {
		raw := bufio.NewReader(p.conn)
		for !strings.HasSuffix(p.head, "\r\n\r\n") {
			line, err := raw.ReadString('\n')
			if err != nil {
				return e, err
			}
			p.head += line
		}
		p.r = raw
		if strings.Contains(p.head, "Content-Encoding: gzip") {
			z, err := gzip.NewReader(raw)
			if err != nil {
				return e, err
			}
			p.r = bufio.NewReader(z)
		}
	}
	for {
		line, err := p.r.ReadString('\n')
		if err != nil {
			return e, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case name == "event":
			e.name = value
		case name == "id":
			e.id = value
		case name == "data":
			e.data = value
		case name == "" && e.name != "":
			return e, nil
		}
	}
}

// want reads the next event and takes its data into v.
func (p *page) want(name string, v any) event {
	p.t.Helper()
	e, err := p.next()
	if err != nil || e.name != name {
		p.t.Fatalf("got %+v %v, want %s", e, err, name)
	}
	if err := json.Unmarshal([]byte(e.data), v); err != nil {
		p.t.Fatalf("%s: %v", name, err)
	}
	return e
}

// running runs f in a bubble, with a console that runs.
func running(t *testing.T, cfg Config, f func(t *testing.T, b *bench)) {
	t.Helper()
	_ = new(fasthttp.ResponseHeader).Header() // the library starts a clock of its own, which must not be in the bubble
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, cfg)
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() {
			if err := b.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		f(t, b)
		cancel()
		run.Wait()
		_ = b.Close()
		synctest.Wait()
		if n := b.Stats().Listeners; n != 0 {
			t.Errorf("%d listeners are left", n)
		}
	})
}

// begin reads what every page is told at first, and returns the id of the events.
func (p *page) begin() (n fleet.Network, id string) {
	p.t.Helper()
	var news planNews
	var events fleet.Events
	p.want("network", &n)
	p.want("plan", &news)
	id = p.want("events", &events).id
	if news != (planNews{42, false, "router-1", 3}) {
		p.t.Errorf("the plan: %+v", news)
	}
	return n, id
}
