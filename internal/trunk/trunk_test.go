package trunk

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair returns both ends of a trunk over TCP; accept gets what is opened. They are closed
// at the end of the test.
func pair(t testing.TB, accept func(*Conn)) (opener, accepter *Session) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	a, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return ends(t, a, b, accept)
}

// ends makes a trunk of the two ends of a connection.
func ends(t testing.TB, a, b net.Conn, accept func(*Conn)) (opener, accepter *Session) {
	t.Helper()
	accepter = Accept(b, nil, accept)
	opener = Open(a, nil)
	t.Cleanup(func() {
		_ = opener.Close()
		_ = accepter.Close()
	})
	return opener, accepter
}

func dial(t testing.TB, s *Session) *Conn {
	t.Helper()
	c, err := s.Dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func send(t testing.TB, c net.Conn, text string) {
	t.Helper()
	if n, err := c.Write([]byte(text)); n != len(text) || err != nil {
		t.Fatalf("write of %d bytes: %d, %v", len(text), n, err)
	}
}

func receive(t testing.TB, c net.Conn, text string) {
	t.Helper()
	b := make([]byte, len(text))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != text {
		t.Fatalf("read %.40q, %v; want %.40q", b, err, text)
	}
}

// echo sends back what it gets.
func echo(c *Conn) {
	_, _ = io.Copy(c, c)
	_ = c.Close()
}

// Random bytes of random sizes come back on all of many connections as they were sent, in
// both directions at once, over windows and frames.
func TestManyAtOnce(t *testing.T) {
	opener, accepter := pair(t, echo)
	var all sync.WaitGroup
	for i := range 50 {
		c := dial(t, opener)
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 1))
			sent := make([]byte, 1+rnd.IntN(2*openerWindow))
			for k := range sent {
				sent[k] = byte(rnd.Uint32())
			}
			var write sync.WaitGroup
			write.Go(func() {
				for p := sent; len(p) > 0; {
					n := min(len(p), 1+rnd.IntN(3*maxFrame))
					if _, err := c.Write(p[:n]); err != nil {
						t.Error(err)
						return
					}
					p = p[n:]
				}
			})
			got := make([]byte, len(sent))
			if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, sent) {
				t.Errorf("connection %d: %d bytes came back otherwise, %v", i, len(sent), err)
			}
			write.Wait()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := opener.Len(); n != 0 {
		t.Errorf("%d connections are open", n)
	}
	_ = opener.Close()
	if err := accepter.Wait(); err == nil {
		t.Error("the other side says that nothing ended it")
	}
}

// Who does not read holds up its own connection: the others go on, and so does that one
// when it reads.
func TestWhoDoesNotReadHoldsUpItself(t *testing.T) {
	conns := make(chan *Conn, 2)
	opener, _ := pair(t, func(c *Conn) { conns <- c })
	idle, busy := dial(t, opener), dial(t, opener)
	from := <-conns
	other := <-conns
	if from.id != idle.id {
		from, other = other, from
	}
	text := bytes.Repeat([]byte("0123456789abcdef"), openerWindow/8) // two windows
	written := make(chan error, 1)
	go func() {
		_, err := from.Write(text)
		written <- err
	}()
	for range 100 {
		send(t, other, "frame")
		receive(t, busy, "frame")
	}
	for range 8 { // also what takes many windows
		go func() { _, _ = other.Write(text) }()
		receive(t, busy, string(text))
	}
	select {
	case err := <-written:
		t.Fatalf("two windows went out to who does not read: %v", err)
	default:
	}
	receive(t, idle, string(text))
	if err := <-written; err != nil {
		t.Error(err)
	}
}

func TestClose(t *testing.T) {
	conns := make(chan *Conn, 1)
	opener, _ := pair(t, func(c *Conn) { conns <- c })
	c := dial(t, opener)
	there := <-conns
	send(t, there, "last words")
	_ = there.Close()
	_ = there.Close()
	receive(t, c, "last words")
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("behind the end: %v, want EOF", err)
	}
	var op *net.OpError
	if _, err := c.Write([]byte("x")); !errors.As(err, &op) {
		t.Errorf("write to who has closed: %v", err)
	}
	if _, err := there.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read of what was closed here: %v", err)
	}
	if _, err := there.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("write to what was closed here: %v", err)
	}
	if opener.Len() != 0 || opener.Idle() == 0 {
		t.Errorf("%d connections are open, none for %v", opener.Len(), opener.Idle())
	}
}

// What came before the carrier broke can be read; then the error says what happened.
func TestCarrierBreaks(t *testing.T) {
	conns := make(chan *Conn, 1)
	opener, accepter := pair(t, func(c *Conn) { conns <- c })
	c := dial(t, opener)
	there := <-conns
	send(t, there, "before")
	receive(t, c, "b")
	_ = accepter.carrier.Close()
	<-opener.done
	receive(t, c, "efore")
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, ErrBroken) {
		t.Errorf("read: %v", err)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, ErrBroken) {
		t.Errorf("write: %v", err)
	}
	if _, err := opener.Dial(); !errors.Is(err, ErrBroken) {
		t.Errorf("dial: %v", err)
	}
	if n := there.TryWrite([]byte("x")); n != 1 {
		t.Errorf("what is over took %d bytes", n)
	}
	if opener.Err() == nil || accepter.Wait() == nil {
		t.Error("no end has a reason")
	}
}

func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		conns := make(chan *Conn, 1)
		opener, _ := ends(t, a, b, func(c *Conn) { conns <- c })
		c := dial(t, opener)
		there := <-conns
		f := func(what string, op func() error, set func(time.Time) error) {
			t.Helper()
			for _, d := range []time.Duration{time.Second, 3 * time.Second, time.Millisecond} {
				began := time.Now()
				_ = set(began.Add(d))
				if err := op(); err != os.ErrDeadlineExceeded || time.Since(began) != d {
					t.Errorf("%s until %v: %v after %v", what, d, err, time.Since(began))
				}
			}
			_ = set(time.Unix(1, 0))
			if err := op(); err != os.ErrDeadlineExceeded {
				t.Errorf("%s that is too late: %v", what, err)
			}
			// One that waits for ever, or for long, is ended by a deadline that is set
			// meanwhile, and a deadline that moves away is kept to.
			for _, first := range []time.Time{{}, time.Now().Add(time.Hour)} {
				_ = set(first)
				began, done := time.Now(), make(chan error)
				go func() { done <- op() }()
				time.Sleep(time.Second)
				_ = set(time.Now())
				if err := <-done; err != os.ErrDeadlineExceeded || time.Since(began) != time.Second {
					t.Errorf("%s ended from outside: %v after %v", what, err, time.Since(began))
				}
			}
			began, done := time.Now(), make(chan error)
			_ = set(began.Add(time.Second))
			go func() { done <- op() }()
			time.Sleep(time.Second / 2)
			_ = set(began.Add(5 * time.Second))
			if err := <-done; err != os.ErrDeadlineExceeded || time.Since(began) != 5*time.Second {
				t.Errorf("%s put off: %v after %v", what, err, time.Since(began))
			}
		}
		f("a read", func() error { _, err := c.Read(make([]byte, 1)); return err }, c.SetReadDeadline)
		big := make([]byte, openerWindow)
		send(t, there, string(big)) // the window is used up
		f("a write", func() error { _, err := there.Write([]byte("x")); return err }, there.SetWriteDeadline)
		_ = there.SetDeadline(time.Time{})
		go func() { _, _ = there.Write([]byte("end")) }()
		_ = c.SetDeadline(time.Time{})
		receive(t, c, string(big)+"end")
		_ = opener.Close()
		synctest.Wait()
	})
}

// A carrier that takes nothing ends in bounded time, and its writers with it.
func TestCarrierTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe() // nobody reads b
		s := Open(a, nil)
		c := dial(t, s)
		began := time.Now()
		_, err := c.Write(make([]byte, accepterWindow))
		for err == nil {
			_, err = c.Write([]byte("x"))
		}
		if !errors.Is(err, ErrBroken) || time.Since(began) > writeTimeout+time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		_ = s.Close()
		_ = b.Close()
	})
}

func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		opener, _ := ends(t, a, b, echo)
		time.Sleep(lookEvery - 1)
		if d := opener.Silent(); d != lookEvery-1 {
			t.Errorf("silent for %v, want %v", d, lookEvery-1)
		}
		opener.Ping()
		time.Sleep(10 * time.Millisecond)
		if d := opener.Silent(); d > 10*time.Millisecond {
			t.Errorf("silent for %v after a ping", d)
		}
		_ = opener.Close()
		synctest.Wait()
	})
}

// Each side ends a carrier on which nothing comes, and none on which the peer only has
// nothing to say.
func TestSilentPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		opener, accepter := ends(t, a, b, echo)
		time.Sleep(time.Hour)
		if opener.Err() != nil || accepter.Err() != nil {
			t.Errorf("with a peer that is there: %v, %v", opener.Err(), accepter.Err())
		}
		_ = opener.Close()
		for _, begin := range []func(net.Conn) *Session{
			func(c net.Conn) *Session { return Open(c, nil) },
			func(c net.Conn) *Session { return Accept(c, nil, echo) },
		} {
			a, b := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, b) }()
			began := time.Now()
			s := begin(a)
			_, _ = b.Write(appendHead(nil, head{open, 1, 0})[:3]) // half a frame
			if err := s.Wait(); err != errSilent || time.Since(began) > silence+lookEvery {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		}
	})
}

// stuck is a connection below which there is another one, and whose Close takes for ever.
type stuck struct{ net.Conn }

func (c stuck) NetConn() net.Conn { return c.Conn }
func (c stuck) Close() error      { select {} }

// The end does not wait for what TLS has to say to a peer that takes nothing.
func TestEndDoesNotWait(t *testing.T) {
	a, b := net.Pipe()
	s := Open(stuck{a}, nil)
	c := dial(t, s)
	_ = s.Close()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, ErrBroken) {
		t.Error(err)
	}
	_ = b.Close()
}

// Whoever opens connections faster than they can be let go of, or does not read that they
// are refused, takes a bounded part of this node.
func TestFloods(t *testing.T) {
	frame := func(k kind, id uint32) []byte { return appendHead(nil, head{k, id, 0}) }
	t.Run("open and close", func(t *testing.T) {
		a, b := net.Pipe()
		defer b.Close()
		release := make(chan struct{})
		s := Accept(a, nil, func(c *Conn) {
			<-release
			_ = c.Close()
		})
		go func() {
			var flood []byte
			for id := range uint32(2 * maxHeld) {
				flood = append(append(flood, frame(open, id+1)...), frame(closed, id+1)...)
			}
			_, _ = b.Write(append(flood, frame(ping, 0)...))
		}()
		for r := newReader(nil, b); ; {
			h, _, err := r.next()
			if err != nil {
				t.Fatal(err)
			}
			if h.kind == pong { // what came before was taken in
				break
			}
		}
		s.mu.Lock()
		if s.held != maxHeld {
			t.Errorf("%d connections are held, want %d", s.held, maxHeld)
		}
		s.mu.Unlock()
		close(release)
		go func() { _, _ = io.Copy(io.Discard, b) }()
		_ = s.Close()
		if s.held != 0 {
			t.Errorf("%d connections are held at the end", s.held)
		}
	})
	t.Run("open and do not read", func(t *testing.T) {
		a, b := net.Pipe()
		defer b.Close()
		s := Accept(a, nil, func(c *Conn) { <-c.s.done })
		go func() {
			for id := uint32(1); ; {
				var p []byte
				for range 1000 {
					p = append(p, frame(open, id)...)
					id++
				}
				if _, err := b.Write(p); err != nil {
					return
				}
			}
		}()
		if err := s.Wait(); !errors.Is(err, ErrProtocol) {
			t.Error(err)
		}
	})
}

func TestFull(t *testing.T) {
	opener, accepter := pair(t, echo)
	for range MaxConns {
		dial(t, opener)
	}
	if _, err := opener.Dial(); err != ErrFull {
		t.Errorf("one more: %v", err)
	}
	// Who does not count is refused that one connection, and the others stay.
	last := dialUncounted(opener)
	if _, err := last.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("one too many: %v, want EOF", err)
	}
	if accepter.Err() != nil {
		t.Error(accepter.Err())
	}
}

// dialUncounted opens a connection beyond MaxConns.
func dialUncounted(s *Session) *Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	c := newConn(s, s.last, accepterWindow)
	s.conns[c.id] = c
	s.frame(open, c.id, nil)
	return c
}

// Whoever breaks the rules is given up, whatever it sends.
func TestRules(t *testing.T) {
	f := func(what string, fromOpener bool, frames ...[]byte) {
		t.Helper()
		a, b := net.Pipe()
		defer b.Close()
		var s *Session
		if fromOpener {
			s = Accept(a, nil, func(c *Conn) { <-c.s.done })
		} else {
			s = Open(a, nil)
			_, _ = s.Dial()
		}
		go func() { _, _ = io.Copy(io.Discard, b) }()
		for _, p := range frames {
			if _, err := b.Write(p); err != nil {
				break
			}
		}
		if err := s.Wait(); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", what, err)
		}
	}
	frame := func(k kind, id uint32, payload ...byte) []byte {
		return append(appendHead(nil, head{k, id, len(payload)}), payload...)
	}
	f("kind 0", true, frame(0, 1))
	f("a kind of the future", true, frame(kinds, 1))
	f("data without bytes", true, frame(data, 1))
	f("a frame that is too big", true, appendHead(nil, head{data, 1, maxFrame + 1}))
	f("connection 0", true, frame(open, 0))
	f("a ping about a connection", true, frame(ping, 1))
	f("a window of three bytes", true, frame(window, 1, 1, 2, 3))
	f("a number twice", true, frame(open, 7), frame(open, 7))
	f("a number that goes back", true, frame(open, 7), frame(open, 6))
	f("open from the wrong side", false, frame(open, 2))
	f("a window beyond measure", false, frame(window, 1, 0xff, 0xff, 0xff, 0xff))
	var much [][]byte
	much = append(much, frame(open, 1))
	for range accepterWindow/maxFrame + 1 {
		much = append(much, frame(data, 1, make([]byte, maxFrame)...))
	}
	f("more than the window", true, much...)
}

// What a filler writes goes out with the write that it is asked for, and who had no room
// is told when there is some.
func TestFiller(t *testing.T) {
	conns := make(chan *Conn, 1)
	opener, accepter := pair(t, func(c *Conn) { conns <- c })
	c := dial(t, opener)
	there := <-conns
	free := make(chan struct{}, 1)
	there.OnRoom(func() { ring(free) })
	left := bytes.Repeat([]byte("media"), openerWindow/4)
	whole := string(left)
	accepter.OnSend(func() {
		n := there.TryWrite(left[:len(left)/2], left[len(left)/2:])
		left = left[n:]
	})
	go func() {
		accepter.Poke()
		for range free {
			accepter.Poke()
		}
	}()
	receive(t, c, whole)
	_ = accepter.Close()
	close(free)
}

// A stream's way through a trunk takes no memory.
func TestAllocs(t *testing.T) {
	conns := make(chan *Conn, 1)
	opener, _ := pair(t, func(c *Conn) { conns <- c })
	c := dial(t, opener)
	there := <-conns
	tag, buf := make([]byte, 2000), make([]byte, 2000)
	step := func() {
		if n := there.TryWrite(tag[:11], tag[11:]); n != len(tag) {
			t.Errorf("only %d bytes were taken", n)
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.ReadFull(c, buf); err != nil {
			t.Error(err)
		}
	}
	for range 100 {
		step()
	}
	if n := testing.AllocsPerRun(500, step); n > 0 {
		t.Errorf("%v allocations a tag", n)
	}
}

func FuzzFrames(f *testing.F) {
	frame := func(k kind, id uint32, payload ...byte) []byte {
		return append(appendHead(nil, head{k, id, len(payload)}), payload...)
	}
	f.Add(append(frame(open, 1), frame(data, 1, []byte("GET / HTTP/1.1")...)...))
	f.Add(append(frame(open, 9), frame(closed, 9)...))
	f.Add(append(frame(ping, 0), frame(window, 1, 0, 0, 1, 0)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, open := range []bool{false, true} {
			at, far := net.Pipe()
			var s *Session
			if open {
				s = Open(at, b)
				if c, err := s.Dial(); err == nil {
					go echo(c)
				}
			} else {
				s = Accept(at, b, echo)
			}
			go func() { _, _ = io.Copy(io.Discard, far) }()
			_, _ = far.Write(b) // once more: now it comes from the carrier
			_ = far.Close()
			if s.Wait() == nil {
				t.Error("it ended without a reason")
			}
		}
	})
}

func BenchmarkTrunk(b *testing.B) {
	conns := make(chan *Conn, 64)
	opener, _ := pair(b, func(c *Conn) { conns <- c })
	var all sync.WaitGroup
	tag := make([]byte, 2000)
	b.SetBytes(int64(len(tag)))
	b.ReportAllocs()
	for range cap(conns) {
		c := dial(b, opener)
		all.Go(func() { _, _ = io.CopyN(io.Discard, c, int64(len(tag))*int64(b.N/cap(conns))) })
		there := <-conns
		all.Go(func() {
			for range b.N / cap(conns) {
				if _, err := there.Write(tag); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
