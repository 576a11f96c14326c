package frontend

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	maxUDP = 4096 // the longest reply over UDP that can be configured
	// batch is how many messages one call of the kernel takes or gives. Under load calls
	// are what an answer costs most.
	batch = 64
	// socketBuffer is what may wait in a socket while its worker does not run: some
	// thousand queries. Without CAP_NET_ADMIN the kernel grants what net.core.rmem_max says.
	socketBuffer = 4 << 20
	// controlLen is room for where a message came in.
	controlLen = 64
)

// udpSocket is one of the sockets that share a port (SO_REUSEPORT): the kernel gives
// each client's messages to one of them.
type udpSocket struct {
	conn     *net.UDPConn
	wildcard bool // bound to all addresses: the one that was asked comes with each message
	count    dnsCounters
}

// openUDP opens a socket at addr, with the port of the TCP socket there.
func openUDP(ctx context.Context, tcp *net.TCPAddr, addr string) (*udpSocket, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	wildcard := tcp.IP.IsUnspecified()
	if !wildcard { // a name may stand for several addresses: this is the one that TCP took
		host = tcp.AddrPort().Addr().Unmap().String()
	}
	lc := net.ListenConfig{Control: func(network, _ string, c syscall.RawConn) error {
		var fault error
		err := c.Control(func(fd uintptr) { fault = tuneUDP(int(fd), network == "udp6", wildcard) })
		return errors.Join(err, fault)
	}}
	pc, err := lc.ListenPacket(ctx, "udp", net.JoinHostPort(host, fmt.Sprint(tcp.Port)))
	if err != nil {
		return nil, err
	}
	return &udpSocket{conn: pc.(*net.UDPConn), wildcard: wildcard}, nil
}

func tuneUDP(fd int, v6, wildcard bool) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return os.NewSyscallError("SO_REUSEPORT", err)
	}
	for _, opt := range [][2]int{{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}, {unix.SO_SNDBUFFORCE, unix.SO_SNDBUF}} {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, opt[0], socketBuffer) != nil { // who may not, gets what the system grants
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, opt[1], socketBuffer)
		}
	}
	switch {
	case !wildcard:
		return nil
	case v6: // tells of IPv4 too, in its mapped form
		return os.NewSyscallError("IPV6_RECVPKTINFO", unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1))
	default:
		return os.NewSyscallError("IP_PKTINFO", unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1))
	}
}

// controlData is where a message came in, as struct cmsghdr, which has to be aligned.
type controlData struct {
	_    [0]uint64
	data [controlLen]byte
}

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
}

// udpWorker owns a socket: its goroutine alone reads, answers and writes.
type udpWorker struct {
	// Fixed at construction.
	d      *DNS
	socket *udpSocket
	raw    syscall.RawConn

	receive func(fd uintptr) bool
	send    func(fd uintptr) bool

	// Owned by run. The headers point to the rest.
	r       responder
	in, out [batch]mmsghdr
	inData  [batch]unix.Iovec
	outData [batch]unix.Iovec
	names   [batch]unix.RawSockaddrInet6 // who sent a message; an IPv4 address has room in it
	control [batch]controlData
	msgs    *[batch][maxQuery]byte
	replies *[batch][maxUDP]byte
	got     int // messages in in
	pending int // replies in out
	sent    int // of these
	errno   syscall.Errno
}

func newUDPWorker(d *DNS, s *udpSocket) *udpWorker {
	w := &udpWorker{
		d: d, socket: s, r: responder{d: d, count: &s.count},
		msgs: new([batch][maxQuery]byte), replies: new([batch][maxUDP]byte),
	}
	for i := range batch {
		w.inData[i].Base = &w.msgs[i][0]
		w.inData[i].SetLen(maxQuery)
		w.in[i].hdr.Name = (*byte)(unsafe.Pointer(&w.names[i]))
		w.in[i].hdr.Iov = &w.inData[i]
		w.in[i].hdr.SetIovlen(1)
		if s.wildcard {
			w.in[i].hdr.Control = &w.control[i].data[0]
		}
		w.reset(i)
		w.out[i].hdr.Iov = &w.outData[i]
		w.out[i].hdr.SetIovlen(1)
	}
	w.receive, w.send = w.recvmmsg, w.sendmmsg
	return w
}

// run answers until ctx ends. It closes the socket.
func (w *udpWorker) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = w.socket.conn.Close() })
	defer stop()
	defer w.socket.conn.Close()
	var err error
	if w.raw, err = w.socket.conn.SyscallConn(); err != nil {
		return fmt.Errorf("serve DNS over UDP: %w", err)
	}
	for {
		if err := w.read(); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("read DNS over UDP on %v: %w", w.socket.conn.LocalAddr(), err)
		}
		now := time.Now()
		for i := range w.got {
			w.answer(now, i)
		}
		if err := w.write(); err != nil && ctx.Err() == nil {
			return fmt.Errorf("write DNS over UDP on %v: %w", w.socket.conn.LocalAddr(), err)
		}
	}
}

// read waits for messages and takes as many as there are.
func (w *udpWorker) read() error {
	for i := range w.got {
		w.reset(i)
	}
	w.got = 0
	if err := w.raw.Read(w.receive); err != nil {
		return err
	}
	switch w.errno {
	case 0, unix.EINTR, unix.ENOBUFS, unix.ENOMEM: // these pass
		return nil
	}
	return os.NewSyscallError("recvmmsg", w.errno)
}

// reset undoes what the kernel wrote into the header of message i.
func (w *udpWorker) reset(i int) {
	h := &w.in[i].hdr
	h.Namelen = unix.SizeofSockaddrInet6
	if w.socket.wildcard {
		h.SetControllen(controlLen)
	}
}

func (w *udpWorker) recvmmsg(fd uintptr) bool {
	n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&w.in[0])), batch, unix.MSG_DONTWAIT, 0, 0)
	if errno == unix.EAGAIN {
		return false
	}
	if w.errno = errno; errno == 0 {
		w.got = int(n)
	}
	return true
}

// answer makes the reply to message i, if there is one.
func (w *udpWorker) answer(now time.Time, i int) {
	h := &w.in[i]
	addr, port := w.sender(i)
	switch {
	case h.hdr.Flags&unix.MSG_TRUNC != 0:
		w.socket.count.drop(dropTooLong)
		return
	case port == 0:
		w.socket.count.drop(dropNoPort)
		return
	}
	reply := w.r.respond(now, peer{addr: addr}, w.msgs[i][:h.n], w.replies[w.pending][:0])
	if len(reply) == 0 {
		return
	}
	o := &w.out[w.pending]
	w.outData[w.pending].Base = &reply[0]
	w.outData[w.pending].SetLen(len(reply))
	o.hdr.Name, o.hdr.Namelen = h.hdr.Name, h.hdr.Namelen
	o.hdr.Control = nil
	o.hdr.SetControllen(0)
	if n := int(h.hdr.Controllen); w.socket.wildcard && fromAsked(w.control[i].data[:n]) {
		o.hdr.Control = &w.control[i].data[0]
		o.hdr.SetControllen(n)
	}
	w.pending++
}

// sender returns who sent message i.
func (w *udpWorker) sender(i int) (netip.Addr, uint16) {
	sa := &w.names[i]
	port := binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&sa.Port))[:])
	if sa.Family == unix.AF_INET {
		return netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(sa)).Addr), port
	}
	return netip.AddrFrom16(sa.Addr).Unmap(), port
}

// fromAsked makes the control data of a message that came in those of its reply: the
// address that was asked is the one to send from. The interface is left to the routes,
// but for link-local addresses, which mean nothing without.
func fromAsked(control []byte) bool {
	if len(control) < unix.SizeofCmsghdr {
		return false
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
	data := control[unix.CmsgLen(0):]
	switch {
	case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
		clear(data[:4])
	case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
		if !netip.AddrFrom16([16]byte(data)).IsLinkLocalUnicast() {
			clear(data[16:20])
		}
	default:
		return false
	}
	return true
}

// write sends the replies. What the socket does not take at once is lost, as it could
// be on its way: the client asks again.
func (w *udpWorker) write() error {
	for w.sent = 0; w.sent < w.pending; {
		if err := w.raw.Write(w.send); err != nil {
			return err
		}
		if w.errno != 0 {
			w.socket.count.drop(dropSend)
			w.sent++ // the first one is the one that failed
		}
	}
	w.pending = 0
	return nil
}

func (w *udpWorker) sendmmsg(fd uintptr) bool {
	n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&w.out[w.sent])),
		uintptr(w.pending-w.sent), unix.MSG_DONTWAIT, 0, 0)
	if w.errno = errno; errno == 0 {
		w.sent += int(n)
	}
	return true
}
