package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Ports are where a node listens, as host:port.
type Ports struct {
	HTTP     string `json:"http"`
	RTMP     string `json:"rtmp"`
	Admin    string `json:"admin"`
	Internal string `json:"internal,omitempty"` // for nodes that sign, where there is a key
	DNS      string `json:"dns,omitempty"`      // of the scheduler, which has no RTMP
}

// pull returns where other nodes pull streams.
func (p Ports) pull() string { return cmp.Or(p.Internal, p.HTTP) }

// reachable returns where this machine reaches a node that listens on p.
func (p Ports) reachable() Ports {
	for _, addr := range []*string{&p.HTTP, &p.RTMP, &p.Admin, &p.Internal, &p.DNS} {
		host, port, err := net.SplitHostPort(*addr)
		if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
			*addr = net.JoinHostPort("localhost", port)
		}
	}
	return p
}

// Taken is an address at which a node should listen and another program does.
type Taken struct {
	Node     string
	Protocol string // http, rtmp, admin, internal or dns
	Addr     string
	Given    bool // by Options.At; else it follows from Options.Port
}

// TakenError are all addresses that are taken, those that were given first.
type TakenError []Taken

// takenShown is how many addresses a TakenError names.
const takenShown = 5

// Error names the addresses.
func (e TakenError) Error() string {
	var addrs []string
	for i, t := range e {
		if i == takenShown {
			addrs[i-1] += fmt.Sprintf(" and %d more", len(e)-i)
			break
		}
		addrs = append(addrs, t.Addr)
	}
	return "taken by another program: " + strings.Join(addrs, ", ")
}

// pick chooses where all nodes listen, as the options say, and reserves the ports that
// these leave open. Nothing keeps those free that were given.
func (t Topology) pick(opt Options, own *reservations) (map[string]Ports, error) {
	var held []net.Listener // until all are chosen, so that all differ
	defer func() {
		for _, ln := range held {
			ln.Close()
		}
	}()
	try := func(addr string) (string, error) {
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			return "", err
		}
		held = append(held, ln)
		return ln.Addr().String(), nil
	}
	var taken TakenError
	out := map[string]Ports{}
	nodes, edges := slices.Clone(t.Nodes), 0
	placed := t.Scheduler != nil && opt.Scheduler != ""
	if placed {
		nodes = append(nodes, Node{ID: SchedulerID, Role: SchedulerID})
	}
	for _, r := range t.Routers {
		nodes = append(nodes, Node{ID: r.ID, Role: router})
	}
	for i, n := range nodes {
		p, host := opt.At[n.ID], loopback
		if n.Role == edge && placed {
			host = loopbackOf(edges)
			edges++
		}
		listens := []named{{"http", &p.HTTP}, {"rtmp", &p.RTMP}, {"admin", &p.Admin}, {"internal", &p.Internal}}
		switch n.Role {
		case SchedulerID:
			listens[1] = named{"dns", &p.DNS}
		case router:
			listens[1], listens[3] = named{}, named{}
		}
		for k, to := range listens {
			if to.addr == nil {
				continue
			}
			given := *to.addr != ""
			var err error
			switch {
			case given: // it stays as it was written: :8080 is more than what it listens on
				_, err = try(*to.addr)
			case opt.Port == 0:
				*to.addr, err = own.free(host)
			default:
				*to.addr = net.JoinHostPort(host.String(), strconv.Itoa(opt.Port+4*i+k))
				_, err = try(*to.addr)
			}
			switch {
			case errors.Is(err, syscall.EADDRINUSE):
				taken = append(taken, Taken{n.ID, to.protocol, *to.addr, given})
			case err != nil:
				return nil, fmt.Errorf("a port for %s: %w", n.ID, err)
			}
		}
		if t.ClusterKey == "" {
			p.Internal = ""
		}
		out[n.ID] = p
	}
	if len(taken) > 0 {
		slices.SortStableFunc(taken, func(a, b Taken) int {
			if a.Given == b.Given {
				return 0
			} else if a.Given {
				return -1
			}
			return 1
		})
		return nil, taken
	}
	return out, nil
}

// loopback is where programs listen unless told otherwise.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// named is an address by what is spoken there.
type named struct {
	protocol string
	addr     *string
}
