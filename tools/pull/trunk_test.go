package pull

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"millrace/internal/trunk"
)

// trunks are a server's end of trunks: what is opened on them is accepted from it.
type trunks struct {
	net.Listener
	opened chan net.Conn
	done   chan struct{}
	asked  int
}

func (l *trunks) Accept() (net.Conn, error) {
	select {
	case c := <-l.opened:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *trunks) Close() error { return nil }

// take makes a trunk of each connection.
func (l *trunks) take(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "millrace-trunk" || r.Header.Get("Millrace-Purpose") != "trunk" || r.Header.Get("Via") != "1.1 edge (millrace)" {
		http.Error(w, "no trunk", http.StatusBadRequest)
		return
	}
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	l.asked++
	_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: millrace-trunk\r\n\r\n")
	_ = trunk.Accept(c, nil, func(x *trunk.Conn) { l.opened <- x }).Wait()
}

// Two nodes with three streams each and trunks for two of them.
func TestRunOnTrunks(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &trunks{Listener: ln, opened: make(chan net.Conn), done: make(chan struct{})}
	front, streams := &http.Server{Handler: http.HandlerFunc(l.take)}, &http.Server{Handler: &origin{t, nil}}
	var serving sync.WaitGroup
	serving.Go(func() { _ = front.Serve(ln) })
	serving.Go(func() { _ = streams.Serve(l) })
	cfg := DefaultConfig()
	for _, name := range []string{"s0", "s1", "s2"} {
		cfg.URLs = append(cfg.URLs, "http://"+ln.Addr().String()+"/live/"+name+".flv")
	}
	cfg.Viewers, cfg.Numbered, cfg.Node, cfg.Trunk, cfg.Verify = 6, true, "edge", 2, 6
	cfg.Warmup, cfg.Duration = 100*time.Millisecond, 2*time.Second
	r, err := Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK() || r.Normal.FirstFrames != 6 || r.Normal.Frames < 60 || r.Bytes == 0 || l.asked != 4 {
		t.Errorf("%d trunks, %+v", l.asked, r)
	}
	close(l.done)
	_ = front.Close()
	_ = streams.Close()
	serving.Wait()
}
