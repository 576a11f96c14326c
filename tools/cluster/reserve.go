package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"
)

// reservations are ports of loopback addresses that are kept for nodes that start later, or again.
// Each is a socket that is bound and never listens:
//
//   - The kernel chooses the port while the socket does not share addresses, so that it
//     is nobody else's: neither one that somebody listens on, in whatever program, nor
//     one that is reserved. Nor does it ever give one that is bound to an outgoing
//     connection, or to who asks for any.
//   - Then the socket is made to share, as listeners of Go are: of two that do, both may
//     have the port if no more than one listens. So a node finds its own free, again
//     and again.
type reservations []int

// free reserves a port of an address and returns both.
func (r *reservations) free(host netip.Addr) (addr string, err error) {
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("a socket: %w", os.NewSyscallError("socket", err))
	}
	port, err := reserve(s, host)
	if err != nil {
		return "", errors.Join(err, syscall.Close(s))
	}
	*r = append(*r, s)
	return netip.AddrPortFrom(host, uint16(port)).String(), nil
}

// reserve binds a socket to a port of the kernel's choice.
func reserve(s int, host netip.Addr) (port int, err error) {
	if err := syscall.Bind(s, &syscall.SockaddrInet4{Addr: host.As4()}); err != nil {
		return 0, os.NewSyscallError("bind", err)
	}
	if err := syscall.SetsockoptInt(s, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, os.NewSyscallError("setsockopt", err)
	}
	at, err := syscall.Getsockname(s)
	if err != nil {
		return 0, os.NewSyscallError("getsockname", err)
	}
	in4, ok := at.(*syscall.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("bound to %T", at)
	}
	return in4.Port, nil
}

// close lets go of all ports.
func (r *reservations) close() {
	for _, s := range *r {
		syscall.Close(s) // nothing was written to it
	}
	*r = nil
}
