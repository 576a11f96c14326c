package main

import (
	"context"
	"fmt"
	"net/netip"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"millrace/tools/frames"
)

const answer = "HTTP/1.1 200 OK\r\nContent-Type: video/x-flv\r\nConnection: close\r\n\r\n"

// loop is the whole server: one goroutine on one thread.
type loop struct {
	interval time.Duration
	listener int
	timer    int
	epoll    int
	streams  []*canned
	viewers  [][]*viewer // by stream
	fds      map[int32]*viewer
	accepted int
	begin    time.Time
	vecs     []unix.Iovec
}

// viewer is a connection.
type viewer struct {
	fd      int
	stream  int
	asked   bool // its request came
	started bool // at a keyframe
	pending []byte
}

func newLoop(at netip.AddrPort, interval time.Duration, streams int, cfg frames.Config) (*loop, error) {
	l := &loop{interval: interval, fds: map[int32]*viewer{}, viewers: make([][]*viewer, streams)}
	for i := range streams {
		cfg.Stream = uint32(i)
		c, err := newCanned(cfg)
		if err != nil {
			return nil, err
		}
		l.streams = append(l.streams, c)
	}
	if err := l.open(at); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *loop) open(at netip.AddrPort) (err error) {
	if l.listener, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	if err = unix.SetsockoptInt(l.listener, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return err
	}
	if err = unix.Bind(l.listener, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}); err != nil {
		return fmt.Errorf("bind %v: %w", at, err)
	}
	if err = unix.Listen(l.listener, 4096); err != nil {
		return err
	}
	if l.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err != nil {
		return fmt.Errorf("timerfd: %w", err)
	}
	every := unix.NsecToTimespec(l.interval.Nanoseconds())
	if err = unix.TimerfdSettime(l.timer, 0, &unix.ItimerSpec{Interval: every, Value: every}, nil); err != nil {
		return fmt.Errorf("timerfd: %w", err)
	}
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	if err = l.watch(l.listener, unix.EPOLLIN); err != nil {
		return err
	}
	return l.watch(l.timer, unix.EPOLLIN)
}

func (l *loop) watch(fd int, events uint32) error {
	return unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
}

func (l *loop) close() {
	for fd := range l.fds {
		unix.Close(int(fd))
	}
	unix.Close(l.epoll)
	unix.Close(l.timer)
	unix.Close(l.listener)
}

func (l *loop) run(ctx context.Context) error {
	l.begin = time.Now()
	events := make([]unix.EpollEvent, 512)
	for ctx.Err() == nil {
		n, err := unix.EpollWait(l.epoll, events, 200)
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("epoll: %w", err)
		}
		for _, e := range events[:max(n, 0)] {
			switch int(e.Fd) {
			case l.listener:
				l.accept()
			case l.timer:
				var ticks [8]byte
				unix.Read(l.timer, ticks[:])
				l.tick(time.Now())
			default:
				l.hear(l.fds[e.Fd])
			}
		}
	}
	return nil
}

func (l *loop) accept() {
	for {
		fd, _, err := unix.Accept4(l.listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			return // drained, or a peer that is gone already
		}
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		v := &viewer{fd: fd, stream: l.accepted % len(l.streams)}
		if l.watch(fd, unix.EPOLLIN|unix.EPOLLRDHUP) != nil {
			unix.Close(fd)
			continue
		}
		l.accepted++
		l.fds[int32(fd)] = v
	}
}

// hear takes the request, whatever it says, or sees the viewer go.
func (l *loop) hear(v *viewer) {
	if v == nil {
		return
	}
	var b [4096]byte
	n, err := unix.Read(v.fd, b[:])
	if err == unix.EAGAIN {
		return
	}
	if n <= 0 || err != nil {
		l.drop(v)
		return
	}
	if !v.asked {
		v.asked = true
		v.pending = append([]byte(answer), l.streams[v.stream].head...)
		l.viewers[v.stream] = append(l.viewers[v.stream], v)
	}
}

func (l *loop) drop(v *viewer) {
	delete(l.fds, int32(v.fd))
	unix.Close(v.fd)
	v.fd = -1
}

// tick writes what is due.
func (l *loop) tick(now time.Time) {
	for i, c := range l.streams {
		c.advance(l.begin, now)
		if len(c.batch) == 0 {
			continue
		}
		kept := l.viewers[i][:0]
		for _, v := range l.viewers[i] {
			if v.fd >= 0 {
				l.write(v, c)
				kept = append(kept, v)
			}
		}
		clear(l.viewers[i][len(kept):])
		l.viewers[i] = kept
	}
}

// write is the one writev of a viewer.
func (l *loop) write(v *viewer, c *canned) {
	from := 0
	if !v.started {
		if from = c.key; from < 0 {
			return
		}
		v.started = true
	}
	l.vecs = l.vecs[:0]
	total := 0
	add := func(b []byte) {
		vec := unix.Iovec{Base: &b[0]}
		vec.SetLen(len(b))
		l.vecs = append(l.vecs, vec)
		total += len(b)
	}
	if len(v.pending) > 0 {
		add(v.pending)
	}
	for _, t := range c.batch[from:] {
		add(t.Wire)
	}
	n, _, errno := syscall.RawSyscall(unix.SYS_WRITEV, uintptr(v.fd), uintptr(unsafe.Pointer(&l.vecs[0])), uintptr(min(len(l.vecs), 1024)))
	sent := int(n)
	switch {
	case errno == unix.EAGAIN:
		sent = 0
	case errno != 0:
		l.drop(v)
		return
	}
	if sent == total {
		v.pending = v.pending[:0]
		return
	}
	l.keep(v, c, from, sent)
}

// keep copies what the socket did not take, since the tags change every round.
func (l *loop) keep(v *viewer, c *canned, from, sent int) {
	rest := make([]byte, 0, 64<<10)
	add := func(b []byte) {
		k := min(sent, len(b))
		sent -= k
		rest = append(rest, b[k:]...)
	}
	add(v.pending)
	for _, t := range c.batch[from:] {
		add(t.Wire)
	}
	v.pending = rest
	if len(rest) > 16<<20 { // it reads nothing: a frozen viewer
		l.drop(v)
	}
}
