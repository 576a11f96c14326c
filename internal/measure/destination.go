package measure

import (
	"errors"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// oobSize is room for what the kernel says of a datagram: the address that it came to, on
// a socket of both families once for each.
const oobSize = 128

// tellDestination has the kernel tell to which address of this machine each datagram of c
// came.
func tellDestination(c *net.UDPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var v4, v6 error
	err = raw.Control(func(fd uintptr) {
		v4 = os.NewSyscallError("IP_PKTINFO", unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1))
		v6 = os.NewSyscallError("IPV6_RECVPKTINFO", unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1))
	})
	if err != nil {
		return err
	}
	if v4 != nil && v6 != nil { // a socket of one family knows one of them
		return errors.Join(v4, v6)
	}
	return nil
}

// sourceFrom makes of what the kernel said of a datagram what it has to know to answer
// from the address that was asked, nil if it said nothing. The interface is left to the
// routes, but for link-local addresses, which mean nothing without. It works on oob.
func sourceFrom(oob []byte) []byte {
	if len(oob) == 0 {
		return nil
	}
	h, data, _, err := unix.ParseOneSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	size := unix.CmsgSpace(len(data))
	switch {
	case size > len(oob):
		return nil
	case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
		clear(data[:4])
	case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
		if !netip.AddrFrom16([16]byte(data)).IsLinkLocalUnicast() {
			clear(data[16:20])
		}
	default:
		return nil
	}
	return oob[:size]
}
