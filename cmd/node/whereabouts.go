package main

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lookTime is how long it may take to find the way to a router: looking up its name.
	lookTime = 2 * time.Second
	// lookAgain is how often it is looked while no way is known, and lookLater while one is.
	lookAgain = time.Second
	lookLater = 30 * time.Second
)

// whereabouts finds the address that this node speaks to routers from: what others reach
// it by when nothing else is said.
type whereabouts struct {
	// Safe from any goroutine.
	servers atomic.Pointer[[]string]
	local   atomic.Pointer[netip.Addr] // nil while no way is known

	once  sync.Once
	known chan struct{} // closed when local is there
}

func newWhereabouts(servers []string) *whereabouts {
	w := &whereabouts{known: make(chan struct{})}
	w.servers.Store(&servers)
	return w
}

// addr returns the address, the zero one while it is not known.
func (w *whereabouts) addr() netip.Addr {
	if a := w.local.Load(); a != nil {
		return *a
	}
	return netip.Addr{}
}

// run looks again and again until ctx ends: an address may change.
func (w *whereabouts) run(ctx context.Context) error {
	for ctx.Err() == nil {
		pause := lookAgain
		if a, ok := w.look(ctx); ok {
			w.local.Store(&a)
			w.once.Do(func() { close(w.known) })
			pause = lookLater
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
	}
	return nil
}

// await waits until the address is known, and reports whether it is.
func (w *whereabouts) await(ctx context.Context) bool {
	select {
	case <-w.known:
		return true
	case <-ctx.Done():
		return false
	}
}

// look asks the system from which address it would speak to a router. Nothing is sent.
func (w *whereabouts) look(ctx context.Context) (netip.Addr, bool) {
	d := net.Dialer{Timeout: lookTime}
	for _, server := range *w.servers.Load() {
		conn, err := d.DialContext(ctx, "udp", hostPort(server))
		if err != nil {
			continue
		}
		at, err := netip.ParseAddrPort(conn.LocalAddr().String())
		_ = conn.Close()
		if a := at.Addr().Unmap().WithZone(""); err == nil && !a.IsUnspecified() {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// hostPort returns the host and port of an http or https URL.
func hostPort(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// bound is where a listener is.
type bound struct {
	scheme string
	addr   netip.Addr // not valid for all addresses of the machine
	port   uint16
}

// boundOf returns where the listener of the first of schemes is that is open; ok is
// false when none is.
func (n *node) boundOf(schemes ...string) (b bound, ok bool) {
	for _, scheme := range schemes {
		addr := n.doors.Addr(scheme)
		if addr == nil {
			continue
		}
		at, err := netip.ParseAddrPort(addr.String())
		if err != nil {
			continue
		}
		b = bound{scheme: scheme, port: at.Port()}
		if a := at.Addr().Unmap().WithZone(""); !a.IsUnspecified() {
			b.addr = a
		}
		return b, true
	}
	return bound{}, false
}

// hostOf returns the host by which others reach a listener: its address if it has one of
// its own, else the first that players are given, else local. "" when none is known.
func (b bound) hostOf(given []netip.Addr, local netip.Addr) string {
	switch {
	case b.addr.IsValid():
		return b.addr.String()
	case len(given) > 0:
		return given[0].String()
	case local.IsValid():
		return local.String()
	}
	return ""
}

// at returns host and the port of the listener.
func (b bound) at(host string) string {
	return net.JoinHostPort(host, strconv.Itoa(int(b.port)))
}
