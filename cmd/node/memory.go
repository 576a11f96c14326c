package main

import "time"

// When memory is given back: the collector alone keeps what big streams took for
// minutes after they are over, and a collection of everything is too dear to be had
// for each of them.
const (
	giveBackBytes = 64 << 20
	giveBackEvery = 30 * time.Second
)

// thrift decides when to give memory back to the machine. It belongs to sweep.
type thrift struct {
	cleared int64     // by the logs of streams, when memory was last given back
	next    time.Time // not before
}

// due reports whether the logs of streams have let go of so much, given what they ever
// let go of, that it is time. It must then be done.
func (t *thrift) due(now time.Time, cleared int64) bool {
	if cleared-t.cleared < giveBackBytes || now.Before(t.next) {
		return false
	}
	t.cleared, t.next = cleared, now.Add(giveBackEvery)
	return true
}
