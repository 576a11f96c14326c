package faultnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// UDP is a link for datagrams. Every address that sends to it gets a socket of its
// own towards the target, for as long as something passes. Its methods may be called
// from any goroutine.
type UDP struct {
	// Fixed at construction.
	cfg    Config
	addr   netip.AddrPort
	target netip.AddrPort
	wg     sync.WaitGroup
	done   chan struct{}    // closed by Close
	wake   [2]chan struct{} // capacity 1, never closed: something was put on up, on down

	// Guarded by mu.
	mu       sync.Mutex
	near     *net.UDPConn // nil while refusing
	peers    map[netip.AddrPort]*peer
	up       wire[*peer]
	down     wire[*peer]
	frozen   bool
	closed   bool
	accepted uint64
	failed   uint64
}

// peer is an address on the near side and its socket on the far side.
type peer struct {
	near netip.AddrPort
	far  *net.UDPConn
}

const (
	// maxPeers is how many near addresses are served at once; datagrams of others
	// are dropped.
	maxPeers = 1024
	// peerIdle is after how long without an answer from the target an address is
	// forgotten.
	peerIdle = time.Minute
	// maxDatagram is what UDP can carry at most.
	maxDatagram = 64 << 10
)

// ListenUDP opens a link that listens on addr, such as 127.0.0.1:0, and sends what
// comes to target, and its answers back. It passes on until Close.
func ListenUDP(addr, target string, cfg Config) (*UDP, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	to, err := net.ResolveUDPAddr("udp", target)
	if err != nil {
		return nil, err
	}
	at, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return nil, err
	}
	near, err := net.ListenUDP("udp", at)
	if err != nil {
		return nil, err
	}
	l := &UDP{
		cfg: cfg, addr: near.LocalAddr().(*net.UDPAddr).AddrPort(), target: to.AddrPort(), done: make(chan struct{}),
		near: near, peers: make(map[netip.AddrPort]*peer),
		up: newWire[*peer](cfg.Seed, 0, cfg.Up), down: newWire[*peer](cfg.Seed, 1, cfg.Down),
	}
	for i, w := range []*wire[*peer]{&l.up, &l.down} {
		l.wake[i] = make(chan struct{}, 1)
		l.wg.Go(func() { l.carry(w, l.wake[i], i == 0) })
	}
	l.wg.Go(func() { l.receive(near) })
	return l, nil
}

// Addr returns where the link listens, also while it refuses.
func (l *UDP) Addr() string { return l.addr.String() }

// receive puts on the up wire what comes to the link.
func (l *UDP) receive(near *net.UDPConn) {
	buf := make([]byte, maxDatagram)
	for {
		n, from, err := near.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // that a near peer is gone says nothing of the others
		}
		if p := l.peer(from); p != nil {
			l.put(&l.up, l.wake[0], p, buf[:n])
		}
	}
}

// peer returns the peer for an address, nil when there cannot be one.
func (l *UDP) peer(from netip.AddrPort) *peer {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.peers[from]
	if p != nil || l.closed {
		return p
	}
	if len(l.peers) == maxPeers {
		l.up.lane.dropped.Add(1)
		return nil
	}
	l.accepted++
	far, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(l.target))
	if err != nil {
		l.failed++
		return nil
	}
	p = &peer{near: from, far: far}
	l.peers[from] = p
	l.wg.Go(func() { l.answers(p) })
	return p
}

// answers puts on the down wire what the target sends to a peer, until the target
// has been silent for long.
func (l *UDP) answers(p *peer) {
	defer func() {
		p.far.Close()
		l.mu.Lock()
		delete(l.peers, p.near)
		l.mu.Unlock()
	}()
	buf := make([]byte, maxDatagram)
	for {
		p.far.SetReadDeadline(time.Now().Add(peerIdle))
		n, err := p.far.Read(buf)
		var late net.Error
		switch {
		case err == nil:
			l.put(&l.down, l.wake[1], p, buf[:n])
		case errors.Is(err, net.ErrClosed), errors.As(err, &late) && late.Timeout():
			return
		}
		// Another error says that the target has no socket: it may get one.
	}
}

func (l *UDP) put(w *wire[*peer], wake chan struct{}, p *peer, data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.frozen {
		w.lane.dropped.Add(1)
		return
	}
	if w.put(time.Now(), p, append([]byte(nil), data...)) {
		poke(wake)
	}
}

// carry sends what has arrived at the end of a wire.
func (l *UDP) carry(w *wire[*peer], wake <-chan struct{}, up bool) {
	for {
		l.mu.Lock()
		near := l.near
		now := time.Now()
		p, data, ok := w.take(now)
		due, more := w.deadline()
		l.mu.Unlock()
		if ok {
			// What fails is lost, as datagrams are.
			if up {
				p.far.Write(data)
			} else if near != nil {
				near.WriteToUDPAddrPort(data, p.near)
			}
			continue
		}
		var after <-chan time.Time
		if more {
			after = time.After(due.Sub(now))
		}
		select {
		case <-l.done:
			return
		case <-wake:
		case <-after:
		}
	}
}

// Set puts other faults in force for what comes from now on.
func (l *UDP) Set(up, down Fault) error {
	if err := (Config{Up: up, Down: down}).Validate(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up.set(up)
	l.down.set(down)
	return nil
}

// Freeze drops everything, what is under way too, until Thaw or Heal.
func (l *UDP) Freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen = true
	l.up.clear()
	l.down.clear()
}

// Thaw ends Freeze.
func (l *UDP) Thaw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen = false
}

// Refuse closes the socket: who sends is told that the port is unreachable.
func (l *UDP) Refuse() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.near == nil {
		return nil
	}
	err := l.near.Close()
	l.near = nil
	return err
}

// Accept ends Refuse, on the same address.
func (l *UDP) Accept() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return ErrClosed
	case l.near != nil:
		return nil
	}
	near, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(l.addr))
	if err != nil {
		return fmt.Errorf("listen again: %w", err)
	}
	l.near = near
	l.wg.Go(func() { l.receive(near) })
	return nil
}

// Heal makes the link as it was at first.
func (l *UDP) Heal() error {
	l.Thaw()
	l.mu.Lock()
	l.up.set(l.cfg.Up)
	l.down.set(l.cfg.Down)
	l.mu.Unlock()
	return l.Accept()
}

// Stats returns what the link did so far and how it stands.
func (l *UDP) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Stats{
		Up: l.up.lane.traffic(), Down: l.down.lane.traffic(), Frozen: l.frozen, Refusing: l.near == nil,
		Open: len(l.peers), Accepted: l.accepted, Failed: l.failed,
	}
}

// Close ends the link and returns when nothing of it runs any more. Further calls do
// nothing.
func (l *UDP) Close() error {
	err := l.Refuse()
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.done)
	}
	for _, p := range l.peers {
		p.far.Close()
	}
	l.mu.Unlock()
	l.wg.Wait()
	return err
}
