package frontend

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
)

// TestBatchOverTCP sends many queries before it reads a reply (RFC 7766, 6.2.1.1).
func TestBatchOverTCP(t *testing.T) {
	d := newTestDNS(t)
	c, err := net.Dial("tcp", serveDNS(t, d, "127.0.0.1:0").String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	var out []byte
	const n = 300
	for i := range n {
		q := question(fmt.Sprintf("h%d.app.example.com", i), dns.TypeA)
		q.Id = uint16(i)
		b, _ := q.Pack()
		out = append(binary.BigEndian.AppendUint16(out, uint16(len(b))), b...)
	}
	go func() {
		for len(out) > 0 { // in pieces that no message ends with
			k := min(97, len(out))
			if _, err := c.Write(out[:k]); err != nil {
				return
			}
			out = out[k:]
		}
	}()
	conn := &dns.Conn{Conn: c}
	for i := range n {
		m, err := conn.ReadMsg()
		if err != nil || int(m.Id) != i || len(m.Answer) != 3 {
			t.Fatalf("reply %d: %v %v", i, m, err)
		}
	}
	if st := d.Stats(); st.TCP != n || st.Connections != 1 {
		t.Errorf("counted as %+v", st)
	}
}

func TestLimitsOfConnections(t *testing.T) {
	d := newTestDNS(t, func(c *DNSConfig) { c.MaxConnections, c.MaxPerAddress = 3, 2 })
	addr := serveDNS(t, d, "127.0.0.1:0").String()
	dial := func(from string) net.Conn {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		c, err := dialer.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	served := func(c net.Conn) bool {
		conn := &dns.Conn{Conn: c}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		_ = conn.WriteMsg(question("live.example.com", dns.TypeA))
		_, err := conn.ReadMsg()
		return err == nil
	}
	a, b := dial("127.0.0.2"), dial("127.0.0.2")
	if !served(a) || !served(b) {
		t.Error("not served within the limits")
	}
	if served(dial("127.0.0.2")) {
		t.Error("a third connection of one address is served")
	}
	if !served(dial("127.0.0.3")) {
		t.Error("another address is not served")
	}
	if served(dial("127.0.0.4")) {
		t.Error("a fourth connection is served")
	}
	if p := d.conns.patience(d.settings.Load()); p != crowdedTimeout {
		t.Errorf("with all places taken the patience is %v", p)
	}
	if st := d.Stats(); st.Ended["address_limit"] != 1 || st.Ended["over_limit"] != 1 || st.Connections != 3 {
		t.Errorf("counted as %+v", st)
	}
}

// TestConnectionsEnd has every way in which a connection ends, with a clock that waits
// for nobody.
func TestConnectionsEnd(t *testing.T) {
	query := func(id uint16) []byte {
		q := question("live.example.com", dns.TypeA)
		q.Id = id
		b, _ := q.Pack()
		return append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...)
	}
	f := func(name string, want connEnd, after time.Duration, client func(ctx context.Context, stop func(), c net.Conn)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newTestDNS(t, func(c *DNSConfig) { c.IdleTimeout, c.MaxQueries = 10*time.Second, 3 })
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ours, theirs := net.Pipe()
				start := time.Now()
				var peer sync.WaitGroup
				peer.Go(func() { client(ctx, cancel, theirs) })
				unblock := context.AfterFunc(ctx, func() { _ = ours.SetDeadline(time.Unix(1, 0)) })
				defer unblock()
				got := d.serveConn(ctx, ours, netip.MustParseAddr("192.0.2.1"), newTCPBuffers(d))
				_ = ours.Close()
				if took := time.Since(start); got != want || took != after {
					t.Errorf("ended as %s after %v, want %s after %v", endWords[got], took, endWords[want], after)
				}
				peer.Wait()
			})
		})
	}
	read := func(c net.Conn) {
		if _, err := (&dns.Conn{Conn: c}).ReadMsg(); err != nil && !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	}
	f("idle", endIdle, 10*time.Second, func(context.Context, func(), net.Conn) {})
	f("idle after a query", endIdle, 12*time.Second, func(_ context.Context, _ func(), c net.Conn) {
		time.Sleep(2 * time.Second)
		_, _ = c.Write(query(1))
		read(c)
	})
	f("half a query", endIdle, 10*time.Second, func(_ context.Context, _ func(), c net.Conn) {
		for _, b := range query(1)[:20] { // byte by byte does not gain time
			if _, err := c.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(time.Second)
		}
	})
	f("closed", endPeer, time.Second, func(_ context.Context, _ func(), c net.Conn) {
		_, _ = c.Write(query(1))
		read(c)
		time.Sleep(time.Second)
		_ = c.Close()
	})
	f("too many queries", endQueries, 0, func(_ context.Context, _ func(), c net.Conn) {
		for i := range 3 {
			_, _ = c.Write(query(uint16(i)))
			read(c)
		}
	})
	f("too many queries at once", endQueries, 0, func(_ context.Context, _ func(), c net.Conn) {
		_, _ = c.Write(slices.Concat(query(1), query(2), query(3), query(4)))
		conn := &dns.Conn{Conn: c}
		for want := range 3 { // those before the limit have their replies
			if m, err := conn.ReadMsg(); err != nil || int(m.Id) != want+1 {
				t.Errorf("reply %d: %v %v", want+1, m, err)
				return
			}
		}
	})
	f("too long", endTooLong, 0, func(_ context.Context, _ func(), c net.Conn) { _, _ = c.Write([]byte{0xff, 0xff, 1, 2, 3}) })
	f("too short", endTooLong, 0, func(_ context.Context, _ func(), c net.Conn) { _, _ = c.Write([]byte{0, 11, 1, 2, 3}) })
	f("takes nothing", endWrite, 10*time.Second, func(_ context.Context, _ func(), c net.Conn) { _, _ = c.Write(query(1)) })
	f("too long, behind a query", endTooLong, 0, func(_ context.Context, _ func(), c net.Conn) {
		_, _ = c.Write(append(query(1), 0xff, 0xff))
		read(c)
	})
	f("we stop", endDraining, 3*time.Second, func(_ context.Context, stop func(), c net.Conn) {
		_, _ = c.Write(query(1))
		read(c)
		time.Sleep(3 * time.Second)
		stop()
	})
}
