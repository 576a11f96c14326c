package main

import (
	"fmt"
	"log/slog"

	"golang.org/x/sys/unix"

	"millrace/internal/config"
)

// spareDescriptors is how many the node keeps for itself: sockets that it listens
// on, publishers, operators, files, and connections that have not asked yet.
const spareDescriptors = 256

// mostDescriptors is what is believed of a limit. Container runtimes set a thousand
// million, which says nothing about what the machine can do.
const mostDescriptors = 2 << 20

// raiseDescriptors raises the limit of file descriptors as far as the process may,
// and returns what it got.
func raiseDescriptors(log *slog.Logger) int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		log.Warn("the limit of file descriptors cannot be read; 1024 is assumed", "err", err)
		return 1024
	}
	if limit.Cur < limit.Max {
		// An endless limit is refused; then as much as is of use.
		for _, want := range []uint64{limit.Max, min(limit.Max, 1<<20)} {
			if unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: want, Max: limit.Max}) == nil {
				limit.Cur = want
				break
			}
		}
	}
	return int(min(limit.Cur, mostDescriptors))
}

// fitDescriptors makes the settings fit a limit of descriptors. A capacity that
// somebody asked for and that is above it is an error; a default is lowered. It
// returns the settings and what was lowered.
func fitDescriptors(l config.Loaded, limit int) (config.Node, []string, error) {
	n := l.Node
	room := limit - spareDescriptors
	if room < 1 {
		return n, nil, fmt.Errorf("only %d file descriptors are allowed, %d are needed to run at all: raise the limit (ulimit -n, LimitNOFILE=)", limit, spareDescriptors+1)
	}
	var lowered []string
	for _, c := range []struct {
		key   string
		value *int
	}{
		{"httpflv.max_viewers", &n.HTTPFLV.MaxViewers},
		{"listen.max_connections", &n.Listen.MaxConnections},
	} {
		if *c.value <= room {
			continue
		}
		if from := l.Origin(c.key); from.Name != "" {
			return n, nil, fmt.Errorf("%v: %s is %d, but only %d file descriptors are allowed, %d of which the node keeps for itself: use %d or less, or raise the limit (ulimit -n, LimitNOFILE=)",
				from, c.key, *c.value, limit, spareDescriptors, room)
		}
		*c.value = room
		lowered = append(lowered, c.key)
	}
	return n, lowered, nil
}
