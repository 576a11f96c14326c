package frontend

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"millrace/internal/address"
)

const (
	maxTCP = 1<<16 - 1 // what the length before a message can say (RFC 1035, 4.2.2)
	// maxQuery is the longest query that is read: a question has at most 271 bytes, and
	// options that pad it fill 468 (RFC 8467).
	maxQuery = 4096
	// crowdedTimeout is the most patience with a connection while there are many.
	crowdedTimeout = time.Second
	// maxPause is the longest wait for the system to have descriptors again.
	maxPause = time.Second
)

// connEnd is why a connection over TCP ended, or was not served at all.
type connEnd uint8

const (
	endPeer      connEnd = iota // the client closed it, or broke it
	endIdle                     // no whole query in the time for one
	endQueries                  // as many queries as one connection may bring
	endTooLong                  // longer than any query is, or shorter
	endWrite                    // the client took no reply
	endDraining                 // we stop
	endOverLimit                // not served: as many as may be are open
	endAddress                  // not served: as many as one address may have are open
	ends
)

var endWords = [ends]string{
	"peer_closed", "idle", "query_limit", "bad_length", "write_failed", "draining", "over_limit", "address_limit",
}

// connTable counts the connections over TCP.
type connTable struct {
	count dnsCounters // of what they ask

	// Guarded by mu. An address without a connection has no entry.
	mu    sync.Mutex
	total int
	open  map[netip.Addr]int // by source
	ended [ends]uint64
}

// enter counts a connection, if there may be one more.
func (t *connTable) enter(s *dnsSettings, source netip.Addr) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.total >= s.MaxConnections:
		t.ended[endOverLimit]++
		return false
	case t.open[source] >= s.MaxPerAddress:
		t.ended[endAddress]++
		return false
	}
	t.total++
	t.open[source]++
	return true
}

func (t *connTable) leave(source netip.Addr, why connEnd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total--
	if t.open[source]--; t.open[source] <= 0 {
		delete(t.open, source)
	}
	t.ended[why]++
}

// patience is how long a connection may take for its next query, or to take a reply. It
// is short while there are so many that new ones may soon have no place.
func (t *connTable) patience(s *dnsSettings) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.total > s.MaxConnections*3/4 {
		return min(s.IdleTimeout, crowdedTimeout)
	}
	return s.IdleTimeout
}

func (t *connTable) addTo(s *DNSStats) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Connections = t.total
	for i, n := range t.ended {
		if n > 0 {
			s.Ended[endWords[i]] = n
		}
	}
}

// accept serves connections until ctx ends, and returns when the last has ended.
func (d *DNS) accept(ctx context.Context, ln net.Listener) error {
	var conns sync.WaitGroup
	defer conns.Wait()
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() })
	defer stop()
	buffers := sync.Pool{New: func() any { return newTCPBuffers(d) }}
	pause := time.Duration(0)
	for {
		c, err := ln.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = c.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept DNS over TCP on %v: %w", ln.Addr(), err)
		case err != nil: // mostly a lack of descriptors, which passes
			pause = min(max(2*pause, time.Millisecond), maxPause)
			d.log.Warn("accept DNS over TCP", "err", err, "pause", pause)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			continue
		}
		pause = 0
		addr := plain(c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr())
		source := address.Source(addr)
		if !d.conns.enter(d.settings.Load(), source) {
			_ = c.Close()
			continue
		}
		conns.Go(func() {
			unblock := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
			b := buffers.Get().(*tcpBuffers)
			why := d.serveConn(ctx, c, addr, b)
			buffers.Put(b)
			unblock()
			_ = c.Close()
			d.conns.leave(source, why)
		})
	}
}

// tcpBuffers are the memory of one connection.
type tcpBuffers struct {
	r     *responder
	in    *bufio.Reader // holds a whole query
	out   []byte        // replies that wait to be written
	reply []byte
}

func newTCPBuffers(d *DNS) *tcpBuffers {
	return &tcpBuffers{
		r:  &responder{d: d, count: &d.conns.count},
		in: bufio.NewReaderSize(nil, 2+maxQuery), reply: make([]byte, 0, 1024),
	}
}

// serveConn answers the queries of one connection, in their order. Replies to
// queries that came together leave together (RFC 7766, 6.2.1.1).
func (d *DNS) serveConn(ctx context.Context, c net.Conn, addr netip.Addr, b *tcpBuffers) connEnd {
	b.in.Reset(c)
	b.out = b.out[:0]
	s := d.settings.Load()
	for left := s.MaxQueries; left > 0; left-- {
		msg, why, ok := b.next(c, d.conns.patience(s))
		if !ok {
			if ctx.Err() != nil {
				return endDraining
			}
			return why
		}
		if reply := b.r.respond(time.Now(), peer{addr: addr, tcp: true}, msg, b.reply[:0]); reply != nil {
			b.reply = reply
			b.out = binary.BigEndian.AppendUint16(b.out, uint16(len(reply)))
			b.out = append(b.out, reply...)
		}
		_, _ = b.in.Discard(2 + len(msg)) // is there
		if len(b.out) == 0 || left > 1 && b.waiting() && len(b.out) < maxTCP {
			continue
		}
		_ = c.SetWriteDeadline(time.Now().Add(d.conns.patience(s)))
		if _, err := c.Write(b.out); err != nil {
			return endWrite
		}
		b.out = b.out[:0]
	}
	return endQueries
}

// next waits for the next query and returns it. It stays in b.in.
func (b *tcpBuffers) next(c net.Conn, within time.Duration) (msg []byte, why connEnd, ok bool) {
	_ = c.SetReadDeadline(time.Now().Add(within))
	head, err := b.in.Peek(2)
	if err == nil {
		n := int(binary.BigEndian.Uint16(head))
		if n < headerLen || n > maxQuery {
			return nil, endTooLong, false
		}
		if head, err = b.in.Peek(2 + n); err == nil {
			return head[2:], 0, true
		}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, endIdle, false
	}
	return nil, endPeer, false
}

// waiting reports whether the next query is here already.
func (b *tcpBuffers) waiting() bool {
	if b.in.Buffered() < 2 {
		return false
	}
	head, _ := b.in.Peek(2) // is there
	n := int(binary.BigEndian.Uint16(head))
	return n >= headerLen && b.in.Buffered() >= 2+n
}
