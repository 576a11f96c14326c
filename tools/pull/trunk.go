package pull

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"millrace/internal/trunk"
)

// runTrunks is run for viewers that are on trunks: as many nodes as there are viewers of
// each URL, each with trunks of its own.
func (w *worker) runTrunks(ctx context.Context) {
	unix.Close(w.epoll)
	var mu sync.Mutex // held while a viewer is looked after
	var group sync.WaitGroup
	defer group.Wait()
	fail := func(v *viewer, err error) {
		mu.Lock()
		defer mu.Unlock()
		w.fail(v, err)
	}
	var s *trunk.Session
	var err error
	for node := 0; node < len(w.viewers); node += len(w.targets) {
		all := w.viewers[node:min(node+len(w.targets), len(w.viewers))]
		for i, v := range all {
			if !sleep(ctx, time.Until(w.joinTime(v))) {
				return
			}
			t := &w.targets[v.index%len(w.targets)]
			if i%w.cfg.Trunk == 0 {
				if s, err = openTrunk(ctx, t.addr.String(), w.cfg.Node); err == nil {
					open := s
					context.AfterFunc(ctx, func() { _ = open.Close() })
				}
			}
			if err != nil {
				fail(v, fmt.Errorf("trunk: %w", err))
				continue
			}
			c, err := s.Dial()
			if err != nil {
				fail(v, err)
				continue
			}
			v.asked = time.Now().UnixNano()
			group.Go(func() {
				if err := w.follow(v, c, &mu); err != nil && ctx.Err() == nil {
					fail(v, err)
				}
			})
		}
	}
	<-ctx.Done()
}

// follow reads a viewer's stream until it ends.
func (w *worker) follow(v *viewer, c net.Conn, mu *sync.Mutex) error {
	defer c.Close()
	if _, err := c.Write(v.request); err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return err
		}
		w.bytes.Add(uint64(n))
		mu.Lock()
		w.now, w.cur = time.Now().UnixNano(), v
		err = v.resp.feed(buf[:n], w.onBody)
		mu.Unlock()
		switch {
		case err != nil:
			return err
		case v.resp.ended:
			return errors.New("body ended by the server")
		}
	}
}

// openTrunk opens a trunk as the node with the given id does.
func openTrunk(ctx context.Context, addr, node string) (*trunk.Session, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(c, "GET /.well-known/millrace/trunk HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: millrace-trunk\r\n"+
		"Via: 1.1 %s (millrace)\r\nMillrace-Purpose: trunk\r\n\r\n", addr, node)
	if err == nil {
		var resp *http.Response
		r := bufio.NewReader(c)
		if resp, err = http.ReadResponse(r, nil); err == nil {
			if resp.StatusCode == http.StatusSwitchingProtocols {
				first, _ := r.Peek(r.Buffered()) // all of it is there
				return trunk.Open(c, first), nil
			}
			err = errors.New(resp.Status)
		}
	}
	_ = c.Close()
	return nil, err
}

// sleep waits for d and reports whether ctx lasted.
func sleep(ctx context.Context, d time.Duration) bool {
	wait(ctx, d)
	return ctx.Err() == nil
}
