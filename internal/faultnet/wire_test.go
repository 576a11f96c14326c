package faultnet

import (
	"encoding/binary"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestWire: each datagram arrives once, is lost or is dropped; none before its delay;
// and in order unless it was held back.
func TestWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Fault{
			Delay:   time.Duration(rapid.Int64Range(0, int64(50*time.Millisecond)).Draw(t, "delay")),
			Jitter:  time.Duration(rapid.Int64Range(0, int64(50*time.Millisecond)).Draw(t, "jitter")),
			Loss:    rapid.Float64Range(0, 1).Draw(t, "loss"),
			Reorder: rapid.Float64Range(0, 1).Draw(t, "reorder"),
			Rate:    rapid.Int64Range(0, 1<<20).Draw(t, "rate"),
			Buffer:  rapid.IntRange(0, 4096).Draw(t, "buffer"),
		}
		w := newWire[int](rapid.Uint64().Draw(t, "seed"), 0, f)
		const count = 100
		put, got, last, now := 0, 0, -1, zero
		sent := make([]time.Time, count)
		take := func() {
			for _, data, ok := w.take(now); ok; _, data, ok = w.take(now) {
				i := int(binary.BigEndian.Uint64(data))
				if early := sent[i].Add(f.Delay); now.Before(early) {
					t.Fatalf("%d arrives %v before its delay is over", i, early.Sub(now))
				}
				if i < last && f.Reorder == 0 {
					t.Fatalf("%d arrives after %d", i, last)
				}
				got, last = got+1, i
			}
		}
		for i := range count {
			sent[i] = now
			size := rapid.IntRange(8, 200).Draw(t, "size")
			if w.put(now, 0, binary.BigEndian.AppendUint64(make([]byte, 0, size), uint64(i))[:size]) {
				put++
			}
			if w.bytes > bufferOf(f) {
				t.Fatalf("%d bytes under way, at most %d may be", w.bytes, bufferOf(f))
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "pause")) * time.Millisecond)
			take()
		}
		for due, ok := w.deadline(); ok; due, ok = w.deadline() {
			now = due
			take()
		}
		lost, dropped := int(w.lane.lost.Load()), int(w.lane.dropped.Load())
		if got != put || put+lost+dropped != count || w.bytes != 0 {
			t.Fatalf("%d arrived of %d, %d lost, %d dropped of %d, %d bytes left", got, put, lost, dropped, count, w.bytes)
		}
	})
}

func TestWireHoldsBack(t *testing.T) {
	w := newWire[int](1, 0, Fault{Delay: time.Millisecond})
	w.set(Fault{Delay: time.Millisecond, Reorder: 1, Hold: 5 * time.Millisecond})
	w.put(zero, 1, nil)
	w.set(Fault{Delay: time.Millisecond})
	w.put(zero, 2, nil)
	now := zero.Add(10 * time.Millisecond)
	first, _, _ := w.take(now)
	second, _, _ := w.take(now)
	if first != 2 || second != 1 {
		t.Errorf("got %d, then %d; the first was held back", first, second)
	}
}

// TestSeed: the same seed draws the same, another one something else.
func TestSeed(t *testing.T) {
	draw := func(seed uint64) (out [64]bool) {
		w := newWire[int](seed, 0, Fault{Loss: 0.5})
		for i := range out {
			out[i] = w.put(zero, 0, nil)
		}
		return out
	}
	first, again := draw(1), draw(1)
	if first != again {
		t.Error("the same seed lost other datagrams")
	}
	if first == draw(2) {
		t.Error("two seeds lost the same datagrams")
	}
}
