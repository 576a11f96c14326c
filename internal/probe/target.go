package probe

import (
	"container/heap"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"millrace/internal/sched"
)

// key names a target.
type key struct {
	node   string
	family sched.Families // V4, V6, or both when one probe speaks for both
}

// address is where a target is asked.
type address struct {
	network string // tcp4, tcp6 or tcp
	addr    string // host:port to connect to
	host    string // Host of the request
	path    string // of the base URL, without a slash at the end
	tls     bool
	name    string // in the certificate
	names   bool   // ask for the names of streams: once per node does
}

// target is an edge over a family.
type target struct {
	key
	address

	// Owned by Run.
	due     time.Time
	index   int // in the queue, -1 while a probe is under way
	probing bool
	gone    bool    // it was taken off the list while a probe was under way
	asked   bool    // last is of a probe
	last    Outcome // of the newest probe
	told    uint32  // a bit for each outcome that is in the log since it rose or fell
}

const roleEdge = "edge"

// targetsOf returns the targets of a node: one for each family that it has, none for
// what is no edge or says not where it is asked.
func targetsOf(n *sched.Node) []target {
	if n.Role != roleEdge {
		return nil
	}
	var addrs [2]netip.Addr // the first of each family, as players get them
	for _, a := range n.Addresses {
		i := 0
		if a = a.Unmap(); a.Is6() {
			i = 1
		}
		if a.IsValid() && !addrs[i].IsValid() {
			addrs[i] = a
		}
	}
	if n.Probe != "" {
		return targetsAt(n, addrs)
	}
	var out []target
	for i, family := range [...]sched.Families{sched.V4, sched.V6} {
		if !addrs[i].IsValid() {
			continue
		}
		at := address{host: n.Host, name: n.Host, network: "tcp4", names: len(out) == 0}
		if i == 1 {
			at.network = "tcp6"
		}
		switch {
		case n.HTTPPort != 0:
			at.addr = netip.AddrPortFrom(addrs[i], n.HTTPPort).String()
		case n.HTTPSPort != 0:
			at.addr, at.tls = netip.AddrPortFrom(addrs[i], n.HTTPSPort).String(), true
		default:
			return nil
		}
		if n.Host == "" {
			at.host, at.name = at.addr, addrs[i].String()
		}
		out = append(out, target{key: key{n.ID, family}, address: at})
	}
	return out
}

// targetsAt returns the targets of a node that is asked at its Probe URL. An address
// there is asked once and speaks for all families of the node; a name is asked over
// each.
func targetsAt(n *sched.Node, addrs [2]netip.Addr) []target {
	u, err := url.Parse(n.Probe)
	if err != nil || u.Hostname() == "" {
		return nil // a snapshot that is valid has none
	}
	at := address{network: "tcp", host: u.Host, tls: u.Scheme == "https", name: u.Hostname(), names: true}
	for at.path = u.EscapedPath(); at.path != "" && at.path[len(at.path)-1] == '/'; {
		at.path = at.path[:len(at.path)-1]
	}
	port := u.Port()
	switch {
	case port != "":
	case at.tls:
		port = strconv.Itoa(443)
	default:
		port = strconv.Itoa(80)
	}
	at.addr = net.JoinHostPort(u.Hostname(), port)
	var families sched.Families
	var out []target
	_, err = netip.ParseAddr(u.Hostname())
	for i, family := range [...]sched.Families{sched.V4, sched.V6} {
		if !addrs[i].IsValid() {
			continue
		}
		families |= family
		over := at
		over.network, over.names = [...]string{"tcp4", "tcp6"}[i], len(out) == 0
		out = append(out, target{key: key{n.ID, family}, address: over})
	}
	if err == nil && families != 0 {
		return []target{{key: key{n.ID, families}, address: at}}
	}
	return out
}

// queue is the targets that no probe is under way for, the next one first.
type queue []*target

var _ heap.Interface = (*queue)(nil)

// Len is how many there are.
func (q queue) Len() int { return len(q) }

// Less orders them by when they are due.
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }

// Swap swaps two.
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push adds a *target at the end.
func (q *queue) Push(x any) {
	t := x.(*target)
	t.index = len(*q)
	*q = append(*q, t)
}

// Pop takes off the last one.
func (q *queue) Pop() any {
	last := len(*q) - 1
	t := (*q)[last]
	(*q)[last], t.index = nil, -1
	*q = (*q)[:last]
	return t
}
