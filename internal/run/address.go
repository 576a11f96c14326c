package run

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// Opened is a listener that is open.
type Opened struct {
	Scheme string // rtmp, http, dns, admin, …
	Addr   net.Addr
	Close  func() error
}

// Listen listens for TCP at addr. The error names the setting and the flag of scheme.
func Listen(scheme, addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, Unopened(err, scheme, addr)
	}
	return ln, nil
}

// Unopened says what to do about an address that cannot be listened on: take the next
// port when it is in use, and a high one when low ones are not for everybody.
func Unopened(err error, scheme, addr string) error {
	host, port, _ := net.SplitHostPort(addr)
	p, _ := strconv.Atoi(port)
	other := func(port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
	switch {
	case errors.Is(err, syscall.EADDRINUSE) && p > 0 && p < 65535:
		err = fmt.Errorf("%w: use --%s %s or stop the other program", err, scheme, other(p+1))
	case errors.Is(err, syscall.EACCES) && p > 0 && p < 1024:
		err = fmt.Errorf("%w: ports below 1024 need root or CAP_NET_BIND_SERVICE (AmbientCapabilities= of systemd); use them or --%s %s", err, scheme, other(p+8000))
	}
	return fmt.Errorf("address.%s: %w", scheme, err)
}

// Reachable returns an address that a person on this machine can type.
func Reachable(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
