package pull

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bufferSize is what one read can take. A GOP of the usual stream fits.
const bufferSize = 512 << 10

// slowTick is how often slow viewers read.
const slowTick = 100 * time.Millisecond

// slowBuffer is the receive buffer of a slow viewer, of which the kernel gives about
// half to data.
const slowBuffer = 16 << 10

// nearLive is how old a frame may be for a thawed viewer to count as recovered.
const nearLive = time.Second

// worker reads for its viewers. One goroutine, run, does everything.
type worker struct {
	// Fixed at construction.
	cfg     Config
	targets []target
	start   time.Time // of the first join
	from    int64     // measuring time, ns since 1970
	to      int64
	epoll   int

	// Owned by run; read after it has returned.
	viewers   []*viewer // in order of joining
	byFD      map[int32]*viewer
	joined    int
	slow      []*viewer // that are read by the tick
	nextSlow  time.Time
	frozen    []*viewer // in order of thawing
	cur       *viewer   // whose bytes are being read
	now       int64     // when they were read
	buf       []byte
	delay     [kinds]Histogram
	first     Histogram
	recovered Histogram
	slices    []Histogram
	errors    map[string]uint64
	onBody    func([]byte) error
	onTag     func(*Tag)

	// Safe from any goroutine.
	bytes atomic.Uint64
}

// viewer is one connection.
type viewer struct {
	index   int
	fd      int
	kind    Kind
	first   bool // got its first keyframe
	closed  bool // by the server, or by an error
	sent    bool // the request
	asked   int64
	thawAt  time.Time
	thawed  int64
	budget  float64
	resp    response
	parser  Parser
	check   Checker
	request []byte // what of it is still to be sent
}

func newWorker(cfg Config, targets []target, number int, start, from, to time.Time) (*worker, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	w := &worker{
		cfg: cfg, targets: targets, start: start, from: from.UnixNano(), to: to.UnixNano(), epoll: ep,
		byFD: map[int32]*viewer{}, buf: make([]byte, bufferSize), errors: map[string]uint64{}, nextSlow: start,
	}
	w.onBody = func(b []byte) error { return w.cur.parser.Feed(b, w.onTag) }
	w.onTag = w.tag
	for i := number; i < cfg.Viewers; i += cfg.Workers {
		t := &targets[i%len(targets)]
		w.viewers = append(w.viewers, &viewer{
			index: i, fd: -1, kind: cfg.kind(i), request: t.request,
			parser: Parser{Verify: i < cfg.Verify}, check: NewChecker(t.stream, i < cfg.Verify),
		})
	}
	return w, nil
}

// run plays until ctx ends.
func (w *worker) run(ctx context.Context) {
	defer unix.Close(w.epoll)
	events := make([]unix.EpollEvent, 256)
	for ctx.Err() == nil {
		now := time.Now()
		w.join(now)
		w.readSlow(now)
		w.thaw(now)
		n, err := unix.EpollWait(w.epoll, events, w.pause(now))
		if err != nil && err != unix.EINTR {
			w.errors["epoll: "+err.Error()]++
			break
		}
		for _, e := range events[:max(n, 0)] {
			if v := w.byFD[e.Fd]; v != nil {
				w.ready(v, e.Events)
			}
		}
	}
	for _, v := range w.viewers {
		if v.fd >= 0 {
			unix.Close(v.fd)
		}
	}
}

// pause returns how many milliseconds there are until something is due, at most 20.
func (w *worker) pause(now time.Time) int {
	d := 20 * time.Millisecond
	if w.joined < len(w.viewers) {
		d = min(d, w.joinTime(w.viewers[w.joined]).Sub(now))
	}
	if len(w.slow) > 0 {
		d = min(d, w.nextSlow.Sub(now))
	}
	return int(max(0, d+time.Millisecond-1) / time.Millisecond)
}

func (w *worker) joinTime(v *viewer) time.Time {
	if w.cfg.Rate == 0 {
		return w.start
	}
	return w.start.Add(time.Duration(float64(v.index) / w.cfg.Rate * 1e9))
}

func (w *worker) join(now time.Time) {
	for w.joined < len(w.viewers) && !w.joinTime(w.viewers[w.joined]).After(now) {
		v := w.viewers[w.joined]
		w.joined++
		if err := w.connect(v); err != nil {
			w.fail(v, fmt.Errorf("connect: %w", err))
		}
	}
}

func (w *worker) connect(v *viewer) error {
	addr := w.targets[v.index%len(w.targets)].addr
	family := unix.AF_INET
	var to unix.Sockaddr
	if ip := addr.IP.To4(); ip != nil {
		to = &unix.SockaddrInet4{Port: addr.Port, Addr: [4]byte(ip)}
	} else {
		family = unix.AF_INET6
		to = &unix.SockaddrInet6{Port: addr.Port, Addr: [16]byte(addr.IP.To16())}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	v.fd, w.byFD[int32(fd)] = fd, v
	if w.cfg.Sources > 0 && family == unix.AF_INET {
		from := net.IPv4(127, 0, 0, byte(1+v.index%w.cfg.Sources)).To4()
		if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte(from)}); err != nil {
			return err
		}
	}
	if v.kind == Slow {
		// Behind a slow network nothing piles up at the viewer.
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, slowBuffer); err != nil {
			return err
		}
	}
	v.asked = time.Now().UnixNano()
	if err := unix.Connect(fd, to); err != nil && err != unix.EINPROGRESS {
		return err
	}
	e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT, Fd: int32(fd)}
	return unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, fd, &e)
}

func (w *worker) ready(v *viewer, events uint32) {
	if !v.sent && events&(unix.EPOLLOUT|unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		if err := w.ask(v); err != nil {
			w.fail(v, err)
			return
		}
	}
	if events&(unix.EPOLLIN|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		w.read(v, len(w.buf))
	}
}

// ask sends the request, and then waits for readability alone.
func (w *worker) ask(v *viewer) error {
	n, err := unix.Write(v.fd, v.request)
	if err != nil && err != unix.EAGAIN {
		return fmt.Errorf("request: %w", err)
	}
	v.request = v.request[max(n, 0):]
	if len(v.request) > 0 {
		return nil
	}
	v.sent = true
	e := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(v.fd)}
	return unix.EpollCtl(w.epoll, unix.EPOLL_CTL_MOD, v.fd, &e)
}

// read takes at most limit bytes and returns how many there were.
func (w *worker) read(v *viewer, limit int) int {
	// The socket does not block, so the scheduler need not hear of it.
	r, _, errno := syscall.RawSyscall(unix.SYS_READ, uintptr(v.fd), uintptr(unsafe.Pointer(&w.buf[0])), uintptr(min(limit, len(w.buf))))
	w.now = time.Now().UnixNano()
	n := int(r)
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		return 0
	case errno != 0:
		w.fail(v, fmt.Errorf("read: %w", errno))
		return 0
	case n == 0:
		w.fail(v, errors.New("closed by the server"))
		return 0
	}
	w.bytes.Add(uint64(n))
	w.cur = v
	if err := v.resp.feed(w.buf[:n], w.onBody); err != nil {
		w.fail(v, err)
	} else if v.resp.ended {
		w.fail(v, errors.New("body ended by the server"))
	}
	return n
}

// fail ends a viewer. That a slow or frozen one is closed is no error.
func (w *worker) fail(v *viewer, err error) {
	if v.kind == Normal || !v.first {
		w.errors[err.Error()]++
	}
	v.closed = true
	if v.fd >= 0 {
		delete(w.byFD, int32(v.fd))
		unix.Close(v.fd)
		v.fd = -1
	}
}

// tag is called for every tag of the viewer being read.
func (w *worker) tag(t *Tag) {
	v := w.cur
	s, key, ok := v.check.Tag(t)
	if !ok {
		return
	}
	if key && !v.first {
		v.first = true
		w.first.Add(time.Duration(w.now - v.asked))
		w.hold(v)
	}
	delay := time.Duration(w.now - s.Sent)
	if v.thawed != 0 && delay <= nearLive {
		w.recovered.Add(time.Duration(w.now - v.thawed))
		v.thawed = 0
	}
	if w.now < w.from || w.now >= w.to || s.Sent < v.asked {
		return
	}
	w.delay[v.kind].Add(delay)
	if w.cfg.Slice > 0 && v.kind == Normal {
		i := int((w.now - w.from) / int64(w.cfg.Slice))
		for len(w.slices) <= i {
			w.slices = append(w.slices, Histogram{})
		}
		w.slices[i].Add(delay)
	}
}

// hold takes a slow or frozen viewer out of the epoll set after its first frame.
func (w *worker) hold(v *viewer) {
	if v.kind == Normal {
		return
	}
	if err := unix.EpollCtl(w.epoll, unix.EPOLL_CTL_DEL, v.fd, nil); err != nil {
		w.errors["epoll: "+err.Error()]++
		return
	}
	if v.kind == Slow {
		w.slow = append(w.slow, v)
	} else if w.cfg.Thaw > 0 {
		v.thawAt = time.Unix(0, w.now).Add(w.cfg.Thaw)
		w.frozen = append(w.frozen, v)
	}
}

func (w *worker) readSlow(now time.Time) {
	if len(w.slow) == 0 || now.Before(w.nextSlow) {
		return
	}
	w.nextSlow = now.Add(slowTick)
	for _, v := range w.slow {
		v.budget = min(v.budget+w.cfg.SlowRate*slowTick.Seconds(), w.cfg.SlowRate)
		if v.fd >= 0 && v.budget >= 1 {
			v.budget -= float64(w.read(v, int(v.budget)))
		}
	}
}

func (w *worker) thaw(now time.Time) {
	for len(w.frozen) > 0 && !now.Before(w.frozen[0].thawAt) {
		v := w.frozen[0]
		w.frozen = w.frozen[1:]
		if v.fd < 0 {
			continue
		}
		v.thawed = now.UnixNano()
		e := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(v.fd)}
		if err := unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, v.fd, &e); err != nil {
			w.fail(v, fmt.Errorf("epoll: %w", err))
		}
	}
}
