package faultnet

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// wire is one direction of a link for datagrams. It has no socket and no clock.
// Everybody who uses it holds the link's mutex.
type wire[T any] struct {
	lane  lane
	rng   *rand.Rand
	last  time.Time // when the newest datagram arrives that was not held back
	bytes int       // under way
	seq   uint64
	heap  flight[T]
}

func newWire[T any](seed, direction uint64, f Fault) wire[T] {
	return wire[T]{lane: lane{fault: f}, rng: rand.New(rand.NewPCG(seed, direction))}
}

// datagram is one that is under way to a peer.
type datagram[T any] struct {
	due  time.Time
	seq  uint64 // keeps the order of those that are due together
	to   T
	data []byte
}

// put sends data, which it keeps, and reports whether it is under way. Every
// datagram draws the same numbers, so that a fault that is switched on changes
// nothing for the draws of another.
func (w *wire[T]) put(now time.Time, to T, data []byte) bool {
	f := w.lane.fault
	lost, late := w.rng.Float64() < f.Loss, w.rng.Float64() < f.Reorder
	jitter := time.Duration(w.rng.Float64() * float64(f.Jitter))
	if w.bytes+len(data) > bufferOf(f) {
		w.lane.dropped.Add(1)
		return false
	}
	if f.Rate > 0 { // what is lost further on has passed the narrow place
		if w.lane.free.Before(now) {
			w.lane.free = now
		}
		w.lane.free = w.lane.free.Add(transmission(len(data), f.Rate))
		now = w.lane.free
	}
	if lost {
		w.lane.lost.Add(1)
		return false
	}
	due := now.Add(f.Delay + jitter)
	if due.Before(w.last) {
		due = w.last
	}
	if late {
		hold := f.Hold
		if hold == 0 {
			hold = defaultHold
		}
		due = due.Add(hold)
		w.lane.late.Add(1)
	} else {
		w.last = due
	}
	w.bytes += len(data)
	w.seq++
	heap.Push(&w.heap, datagram[T]{due: due, seq: w.seq, to: to, data: data})
	return true
}

// deadline returns when take has something, false while nothing is under way.
func (w *wire[T]) deadline() (time.Time, bool) {
	if len(w.heap) == 0 {
		return time.Time{}, false
	}
	return w.heap[0].due, true
}

// take returns the next datagram that has arrived by now.
func (w *wire[T]) take(now time.Time) (to T, data []byte, ok bool) {
	if len(w.heap) == 0 || w.heap[0].due.After(now) {
		return to, nil, false
	}
	d := heap.Pop(&w.heap).(datagram[T])
	w.bytes -= len(d.data)
	w.lane.bytes.Add(uint64(len(d.data)))
	return d.to, d.data, true
}

// clear drops what is under way.
func (w *wire[T]) clear() {
	w.lane.dropped.Add(uint64(len(w.heap)))
	w.heap, w.bytes = nil, 0
}

// set puts f in force for what comes from now on.
func (w *wire[T]) set(f Fault) {
	w.lane.set(f)
	w.last = time.Time{}
}

// flight is a heap by due time.
type flight[T any] []datagram[T]

func (f flight[T]) Len() int { return len(f) }

func (f flight[T]) Less(i, j int) bool {
	if f[i].due.Equal(f[j].due) {
		return f[i].seq < f[j].seq
	}
	return f[i].due.Before(f[j].due)
}

func (f flight[T]) Swap(i, j int) { f[i], f[j] = f[j], f[i] }

func (f *flight[T]) Push(x any) { *f = append(*f, x.(datagram[T])) }

func (f *flight[T]) Pop() any {
	last := len(*f) - 1
	d := (*f)[last]
	(*f)[last] = datagram[T]{}
	*f = (*f)[:last]
	return d
}
