package measure

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"millrace/internal/auth"
)

func source(addr string) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr(addr), 1) }

// respond starts a responder on an address and returns where it is.
func respond(t *testing.T, id, addr string, c *auth.Cluster) (*Responder, *net.UDPAddr) {
	t.Helper()
	at, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.ListenUDP("udp", at)
	if err != nil {
		t.Skipf("skipped: this machine has no %s: %v", addr, err)
	}
	r, err := NewResponder(DefaultResponderConfig(), id, c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := r.Run(ctx, conn); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return r, conn.LocalAddr().(*net.UDPAddr)
}

func TestReply(t *testing.T) {
	c := cluster(t, keyA)
	signed := func(node string, at time.Time) []byte {
		p := asked(c, at, node)
		return p.append(nil)
	}
	other := asked(cluster(t, keyB), t0, "relay-1")
	back := packet{kind: answer}
	back.sign(t0, c, "relay-1", nil)
	for _, tc := range []struct {
		name string
		b    []byte
		want Refusal
		ok   bool
	}{
		{"good", signed("relay-1", t0), 0, true},
		{"noise", []byte("GET / HTTP/1.1\r\n\r\n"), Malformed, false},
		{"an answer", back.append(nil), Malformed, false},
		{"to another node", signed("relay-2", t0), BadSignature, false},
		{"another key", other.append(nil), BadSignature, false},
		{"old", signed("relay-1", t0.Add(-time.Minute)), ClockSkew, false},
	} {
		r, err := NewResponder(DefaultResponderConfig(), "relay-1", c, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		size := len(tc.b)
		out, why, ok := r.reply(t0, newLimiter(10, 10), source("192.0.2.1"), tc.b)
		if ok != tc.ok || !ok && why != tc.want {
			t.Errorf("%s: %v %v, want %v", tc.name, why, ok, tc.want)
		}
		if len(out) > size {
			t.Errorf("%s: the answer has %d bytes, the question had %d", tc.name, len(out), size)
		}
	}
}

// What is too much is refused before its signature is looked at, and costs others nothing.
func TestReplyTooMany(t *testing.T) {
	c := cluster(t, keyA)
	r, err := NewResponder(DefaultResponderConfig(), "relay-1", c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l := newLimiter(5, 100)
	q := asked(c, t0, "relay-1")
	for i := range 10 {
		_, why, ok := r.reply(t0, l, source("192.0.2.1"), q.append(nil))
		if ok != (i < 5) || !ok && why != TooMany {
			t.Errorf("packet %d: %v %v", i, why, ok)
		}
	}
	if _, why, ok := r.reply(t0, l, source("192.0.2.2"), q.append(nil)); !ok {
		t.Errorf("another source: %v", why)
	}
}

func TestLimiter(t *testing.T) {
	l := newLimiter(10, 50)
	took := func(now time.Time, addr string, n int) (count int) {
		for range n {
			if l.take(now, netip.MustParseAddr(addr)) {
				count++
			}
		}
		return count
	}
	f := func(what string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	f("one source", took(t0, "192.0.2.1", 20), 10)
	f("the same, mapped", took(t0, "::ffff:192.0.2.1", 20), 0)
	f("half a second later", took(t0.Add(500*time.Millisecond), "192.0.2.1", 20), 5)
	f("a network", took(t0, "2001:db8::1", 20)+took(t0, "2001:db8::2", 20), 10)
	f("another network", took(t0, "2001:db8:0:1::1", 20), 10)
	f("all together", took(t0, "192.0.2.7", 20)+took(t0, "192.0.2.8", 20)+took(t0, "192.0.2.9", 20), 25)
	f("a minute later", took(t0.Add(time.Minute), "192.0.2.1", 20), 10)
	f("the clock goes back", took(t0, "192.0.2.1", 20), 0)
	if n := len(l.sources); n != 1 {
		t.Errorf("%d sources are remembered", n)
	}
	l = newLimiter(1, 1_000_000)
	for i := range 2 * maxSources {
		l.take(t0, netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}))
	}
	if n := len(l.sources); n != maxSources {
		t.Errorf("%d sources are remembered", n)
	}
	if l.take(t0, netip.MustParseAddr("192.0.2.1")) {
		t.Error("those who are too many have no allowance in common")
	}
}

// Whichever address of a node is asked, the answer comes from there.
func TestAnswersFromWhereItWasAsked(t *testing.T) {
	c := cluster(t, keyA)
	for _, tc := range []struct{ listen, ask string }{
		{"0.0.0.0:0", "127.0.0.1"},
		{"0.0.0.0:0", "127.0.0.2"},
		{"[::]:0", "127.0.0.2"},
		{"[::]:0", "::1"},
		{"[::1]:0", "::1"},
	} {
		r, at := respond(t, "relay-1", tc.listen, c)
		conn, err := net.Dial("udp", net.JoinHostPort(tc.ask, strconv.Itoa(at.Port)))
		if err != nil {
			t.Logf("skipped: no %s here: %v", tc.ask, err)
			continue
		}
		q := asked(c, time.Now(), "relay-1")
		if _, err := conn.Write(q.append(nil)); err != nil {
			t.Error(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		var buf [packetSize + 1]byte
		n, err := conn.Read(buf[:]) // of a connected socket: from nobody else
		if err != nil {
			t.Errorf("%s asked at %s: %v", tc.listen, tc.ask, err)
		} else if a, err := parse(buf[:n]); err != nil || a.verify(time.Now(), c, "relay-1", &q) != nil {
			t.Errorf("%s asked at %s: %+v %v", tc.listen, tc.ask, a, err)
		}
		_ = conn.Close()
		for range 60_000 { // it counts after it has sent
			if r.Stats().Answered > 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if st := r.Stats(); st.Answered != 1 {
			t.Errorf("%s: %+v", tc.listen, st)
		}
	}
}

func TestResponderConfig(t *testing.T) {
	c := cluster(t)
	for _, bad := range []ResponderConfig{{}, {PerSource: 1}, {Total: 1}, {PerSource: -1, Total: 1}, {PerSource: 1, Total: 2_000_000}} {
		if _, err := NewResponder(bad, "a", c, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
	if _, err := NewResponder(DefaultResponderConfig(), "a b", c, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a bad id is taken")
	}
	seen := map[string]bool{}
	for _, r := range Refusals() {
		b, err := r.MarshalText()
		if err != nil || string(b) != r.String() || seen[r.String()] {
			t.Errorf("%v: %q %v", r, b, err)
		}
		seen[r.String()] = true
	}
	if s := Refusal(99).String(); s != "refusal(99)" {
		t.Error(s)
	}
}

func BenchmarkReply(b *testing.B) {
	c := cluster(b, keyA)
	r, err := NewResponder(DefaultResponderConfig(), "relay-1", c, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	q := asked(c, t0, "relay-1")
	l := newLimiter(1<<40, 1<<40)
	good, noise := q.append(nil), []byte("noise")
	buf := make([]byte, 0, packetSize+1)
	b.Run("good", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.reply(t0, l, source("192.0.2.1"), append(buf[:0], good...))
		}
	})
	b.Run("noise", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.reply(t0, l, source("192.0.2.1"), append(buf[:0], noise...))
		}
	})
	none := newLimiter(1, 1)
	b.Run("too many", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.reply(t0, none, source("192.0.2.1"), append(buf[:0], good...))
		}
	})
}

// What is refused costs no memory.
func TestRefusalsAllocateNothing(t *testing.T) {
	c := cluster(t, keyA)
	r, err := NewResponder(DefaultResponderConfig(), "relay-1", c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	q := asked(c, t0, "relay-1")
	good, noise, buf := q.append(nil), []byte("noise"), make([]byte, packetSize+1)
	none := newLimiter(1, 1)
	none.take(t0, source("192.0.2.1").Addr())
	if n := testing.AllocsPerRun(100, func() {
		r.reply(t0, none, source("192.0.2.1"), buf[:copy(buf, noise)])
		r.reply(t0, none, source("192.0.2.1"), buf[:copy(buf, good)])
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
