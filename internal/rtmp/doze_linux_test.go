package rtmp

import (
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"millrace/internal/session"
	"millrace/internal/stream"
)

// TestDozeWant: sound is left in the socket while nobody wants it, a picture never, nor
// what is missing of a message.
func TestDozeWant(t *testing.T) {
	d := doze{able: true}
	f := func(what string, awaitsPicture bool, rest, want int) {
		t.Helper()
		if got := d.want(awaitsPicture, rest); got != want {
			t.Errorf("%s: %d bytes wake, want %d", what, got, want)
		}
		d.mark = d.want(awaitsPicture, rest)
	}
	pictures := func(n, size int) {
		for range n {
			d.picture(size)
		}
	}
	pictures(dozeWindow-1, 1000)
	f("before a window is full", true, 0, 1)
	pictures(1, 900)
	f("it knows the smallest picture", true, 0, 900)
	f("somebody wants sound", false, 0, 1)
	f("again", true, 0, 900)
	f("much of a message is missing", false, 5000, 900)
	f("little of it", true, 80, 80)
	f("it is not known how much", true, -1, 1)
	f("a message is missing again", true, 5000, 1)
	pictures(1, 700)
	f("a smaller picture", true, 0, 700)
	pictures(dozeWindow, 2000)
	f("it is of the last window yet", true, 0, 700)
	pictures(dozeWindow, 2000)
	f("and no more", true, 0, 2000)
	d.struck()
	f("it was in vain", true, 0, 1)
	pictures(dozeWindow-1, 2000)
	f("not soon again", true, 0, 1)
	pictures(1, 2000)
	f("later", true, 0, 2000)
	d.able = false
	f("where it would not be confirmed", true, 0, 1)
	d.able = true
	pictures(1, dozeLeast-1)
	f("pictures as small as sound", true, 0, 1)
}

// accepting tells of the connections that a listener accepts.
type accepting struct {
	net.Listener
	conns chan *net.TCPConn
}

func (a accepting) Accept() (net.Conn, error) {
	c, err := a.Listener.Accept()
	if err == nil {
		a.conns <- c.(*net.TCPConn)
	}
	return c, err
}

// TestDoze: how many bytes wake the reader of a real socket, and that nothing is left
// lying in it.
func TestDoze(t *testing.T) {
	conns := make(chan *net.TCPConn, 1)
	n := newNode(t, option{wrap: func(ln net.Listener) net.Listener { return accepting{ln, conns} }})
	p := n.publisher(t, "live", "doze")
	conn := <-conns
	mark := func() (got int) {
		raw, err := conn.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		_ = raw.Control(func(fd uintptr) { got, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT) })
		return max(1, got) // where it was never set it may be 0
	}
	confirmed := func() (within time.Duration, ok bool) {
		raw, err := conn.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		_ = raw.Control(func(fd uintptr) {
			us, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_DELACK_MAX_US)
			within, ok = time.Duration(us)*time.Microsecond, err == nil
		})
		return within, ok
	}
	if _, ok := confirmed(); !ok {
		t.Skip("the kernel cannot be told when to confirm: Linux 6.15")
	}
	src, ok := n.hub.Lookup("live/doze")
	if !ok {
		t.Fatal("no stream")
	}
	now := uint32(0)
	picture := func(size int) {
		now += 40
		payload := inter(int(now))
		if now%4000 == 40 {
			payload = keyframe(int(now))
		}
		p.message(6, typeVideo, 1, now, append(payload, make([]byte, size-len(payload))...))
	}
	sound := func() { p.message(4, typeAudio, 1, now+20, append(aac(int(now)), make([]byte, 100)...)) }
	arrives := func(what string, send func()) {
		t.Helper()
		head := src.Head()
		send()
		eventually(t, what+" arrives", func() bool { return src.Head() > head })
	}
	// wakes sends on until so many bytes wake the reader. When this test stands still for
	// a while that takes as many pictures as after anything else that was in vain.
	wakes := func(want, size int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d bytes wake", want), func() bool {
			arrives("a picture", func() { sound(); picture(size) })
			return mark() == want
		})
	}
	p.message(6, typeVideo, 1, 0, avcHeader)
	p.message(4, typeAudio, 1, 0, aacHeader)
	if got := mark(); got != 1 {
		t.Errorf("at first %d bytes wake", got)
	}
	wakes(3000, 3000)
	if got, _ := confirmed(); got > ackWithin {
		t.Errorf("what is not read is confirmed within %v, want %v", got, ackWithin)
	}
	arrives("sound alone", sound)
	wakes(3000, 3000)
	arrives("a picture smaller than all", func() { picture(300) })
	wakes(3000, 3000)

	reader := &watcher{t: t, cursor: src.NewCursor(stream.CursorOptions{}), wake: make(chan struct{}, 1)}
	src.Watch(reader)
	wakes(1, 3000)
	src.Unwatch(reader)
	wakes(3000, 3000)

	// A large picture in pieces: its last bytes do not wait for more.
	arrives("a picture in pieces", func() {
		now += 40
		b := appendMessage(nil, defaultChunkSize, 6, typeVideo, 1, now, append(inter(int(now)), make([]byte, 8000)...))
		for piece := range slices.Chunk(b, 2000) {
			p.write(piece)
		}
	})
	wakes(3000, 3000)
	p.sync() // a command alone is answered
	wakes(3000, 3000)
	p.command(0, "FCUnpublish", 9, nil, "doze")
	p.expectStatus(codeUnpublish)
	eventually(t, "without a publish any byte wakes", func() bool { return mark() == 1 })
	p.command(1, "publish", 0, nil, "doze", "live")
	p.expectStatus(codePublishStart)
	now = 0 // which makes the next picture a keyframe
	p.message(6, typeVideo, 1, 0, avcHeader)
	wakes(3000, 3000)
	if err := p.net.(*net.TCPConn).SetLinger(0); err != nil { // closes with a reset
		t.Fatal(err)
	}
	p.net.Close()
	n.endsWith(t, session.PeerClosed)
}
