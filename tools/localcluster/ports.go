package main

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"strings"

	"millrace/tools/cluster"
)

// frontPorts are those of a node without configuration: whoever has read how to use
// one finds the first edge where that is.
var frontPorts = cluster.Ports{HTTP: ":8080", RTMP: ":1935", Admin: "127.0.0.1:9090"}

// options returns how to run a topology.
func (s settings) options(t cluster.Topology) cluster.Options {
	front := s.front
	if s.port != 0 {
		front.HTTP = cmp.Or(front.HTTP, frontPorts.HTTP)
		front.RTMP = cmp.Or(front.RTMP, frontPorts.RTMP)
		front.Admin = cmp.Or(front.Admin, frontPorts.Admin)
	}
	return cluster.Options{
		Program: s.node, Scheduler: s.scheduler, Router: s.router, Logs: s.logs, Port: s.port,
		At: map[string]cluster.Ports{doors(t)[0].ID: front},
	}
}

// checkAddr refuses what no node could listen on, or nobody find.
func checkAddr(flag, addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if n, bad := strconv.ParseUint(port, 10, 16); addr != "" && (err != nil || bad != nil || n == 0) {
		return fmt.Errorf("--%s %s: use HOST:PORT or :PORT, with a port of 1 to 65535", flag, addr)
	}
	return nil
}

// otherPorts returns the flags that go round all addresses that are taken.
func (s settings) otherPorts(taken cluster.TakenError, nodes int) string {
	var flags []string
	moved := false
	for _, t := range taken {
		if t.Given {
			flags = append(flags, "--"+t.Protocol+" "+next(t.Addr))
		} else if !moved {
			moved = true
			port := s.port + 100
			for range 50 {
				if rangeFree(port, 4*nodes) {
					break
				}
				port += 100
			}
			flags = append(flags, fmt.Sprintf("--port %d", port))
		}
	}
	return strings.Join(flags, " ")
}

// next returns the next address that can be listened on.
func next(addr string) string {
	host, text, _ := net.SplitHostPort(addr)
	port, _ := strconv.Atoi(text) // a node could not listen on it otherwise
	for range 100 {
		port++
		if addr = net.JoinHostPort(host, strconv.Itoa(port)); canListen(addr) {
			break
		}
	}
	return addr
}

func rangeFree(first, n int) bool {
	for port := first; port < first+n; port++ {
		if !canListen(net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) {
			return false
		}
	}
	return true
}

func canListen(addr string) bool {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	ln.Close()
	return true
}
