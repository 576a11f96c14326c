package run

import (
	"fmt"
	"log/slog"
	"slices"

	"golang.org/x/sys/unix"
)

// SpareDescriptors is how many a program keeps for itself: sockets that it listens on,
// operators, files, and some connections to other programs.
const SpareDescriptors = 256

// leastRoom is for how many connections there must be room: fewer are no service.
const leastRoom = 32

// AdminConnections is how many operators, scrapers and scripts may be connected.
const AdminConnections = 64

// mostDescriptors is what is believed of a limit. Container runtimes set a thousand
// million, which says nothing about what the machine can do.
const mostDescriptors = 2 << 20

// RaiseDescriptors raises the limit of file descriptors as far as the process may,
// and returns what it got.
func RaiseDescriptors(log *slog.Logger) int {
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

// Capacity is a setting of which each takes a descriptor.
type Capacity struct {
	Key   string
	Value *int
	// Asked is who asked for the value, "" for a default.
	Asked string
}

// Lowered is a default that is above what the limit of descriptors allows.
type Lowered struct {
	Key      string
	From, To int
}

// FitDescriptors makes settings fit a limit of descriptors, of which the program keeps
// some. A capacity that somebody asked for and that is above it is an error; a default
// is lowered. It returns what was lowered.
func FitDescriptors(limit, kept int, capacities []Capacity) ([]Lowered, error) {
	room := limit - kept
	if room < leastRoom {
		return nil, fmt.Errorf("only %d file descriptors are allowed, %d are needed to run at all: raise the limit (ulimit -n, LimitNOFILE=)", limit, kept+leastRoom)
	}
	var lowered []Lowered
	for _, c := range capacities {
		if *c.Value <= room {
			continue
		}
		if c.Asked != "" {
			return nil, fmt.Errorf("%s: %s is %d, but only %d file descriptors are allowed, %d of which the program keeps for itself: use %d or less, or raise the limit (ulimit -n, LimitNOFILE=)",
				c.Asked, c.Key, *c.Value, limit, kept, room)
		}
		lowered = append(lowered, Lowered{c.Key, *c.Value, room})
		*c.Value = room
	}
	return lowered, nil
}

// TellLowered logs what was lowered, but for the keys that were already.
func TellLowered(log *slog.Logger, lowered, before []Lowered, limit int) {
	for _, l := range lowered {
		if slices.ContainsFunc(before, func(old Lowered) bool { return old.Key == l.Key }) {
			continue
		}
		log.Warn("lowered to what the limit of file descriptors allows: raise it with ulimit -n or LimitNOFILE=",
			"setting", l.Key, "from", l.From, "to", l.To, "descriptors", limit)
	}
}
