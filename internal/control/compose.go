package control

import (
	"crypto/sha256"
	"reflect"
	"slices"
	"time"

	"millrace/internal/plan"
)

// taken is what the router that answered last has of this node.
type taken struct {
	server   string // that answered; "" for none
	sequence uint64 // of the heartbeat that it took
	identity *Identity
	rechecks []Rechecked
	streams  ledger
}

// waiting is what no router has taken yet.
type waiting struct {
	samples []plan.Sample // the oldest first
	players []Players     // one of each region and ISP
	event   uint64        // the number of the last event that was taken
	lost    uint64        // samples
}

// compose returns the heartbeat for a server: what it has not taken yet.
func (b *Beat) compose(now time.Time, server string) *Heartbeat {
	b.sequence++
	b.collect()
	// The clock may have been set since the program began; what has passed is told by
	// one that is not.
	at := now.UTC().Truncate(time.Millisecond)
	f := b.gather.Figures(now)
	h := &Heartbeat{
		Node: b.client.node, Boot: b.boot, Sequence: b.sequence, At: at, Started: at.Add(-now.Sub(b.begun)).Truncate(time.Millisecond),
		Load: f.Load, Pulled: f.Pulled, Viewers: f.Viewers, Refused: f.Refused, Draining: f.Draining, Full: f.Full, Orders: f.Orders,
		Samples: b.waiting.samples, Players: b.waiting.players,
		Events: b.gather.Events(b.waiting.event, MaxEvents),
	}
	tidyFigures(h)
	tidyEvents(h.Events, at)
	knows := b.taken.server == server
	if i := b.identity(); !knows || !reflect.DeepEqual(i, b.taken.identity) {
		h.Identity = i
	}
	if r := tidyRechecks(b.gather.Rechecks()); !knows || !slices.Equal(r, b.taken.rechecks) {
		h.Rechecks = r
	}
	streams := tidyStreams(b.gather.Streams())
	if !knows {
		b.taken = taken{}
		h.Streams.Set = streams
		return h
	}
	h.Streams = b.taken.streams.changes(streams, now)
	h.Streams.Based = b.taken.sequence
	return h
}

// collect takes over what was measured since the last heartbeat.
func (b *Beat) collect() {
	w := &b.waiting
	w.samples = append(slices.Clip(w.samples), b.gather.Samples(plan.MaxSamples)...)
	w.samples = slices.DeleteFunc(w.samples, func(s plan.Sample) bool { return !finite(s.Loss, s.Retransmits, s.Stalls, s.Switches) })
	if n := len(w.samples) - plan.MaxSamples; n > 0 {
		w.samples = slices.Delete(w.samples, 0, n)
		w.lost += uint64(n)
	}
	for _, p := range b.gather.Players(MaxPlayers) {
		w.addPlayers(p)
	}
}

// addPlayers adds p to what waits of its region and ISP.
func (w *waiting) addPlayers(p Players) {
	if !finite(p.FirstByte, p.FirstFrame, p.Stalled, p.Played, p.Delay) {
		return
	}
	tidyPlayers(&p)
	for i := range w.players {
		if q := &w.players[i]; q.Region == p.Region && q.ISP == p.ISP {
			q.Add(&p)
			return
		}
	}
	if len(w.players) < MaxPlayers {
		w.players = append(w.players, p)
	}
}

// identity returns what the node says it is, with its address on the way to the router
// where it names none.
func (b *Beat) identity() *Identity {
	i := b.gather.Identity()
	i.Addresses = slices.Clone(i.Addresses)
	for j, a := range i.Addresses {
		i.Addresses[j] = a.Unmap().WithZone("")
	}
	if local := b.local.Load(); len(i.Addresses) == 0 && local != nil {
		i.Addresses = append(i.Addresses, *local)
	}
	return &i
}

// identityChanged reports whether the server has not been told yet what this node is: a
// node that names no address knows one once it has spoken.
func (b *Beat) identityChanged(server string) bool {
	return b.taken.server == server && !reflect.DeepEqual(b.identity(), b.taken.identity)
}

// remember notes that the server took h, or that it wants all of it again.
func (b *Beat) remember(h *Heartbeat, server string, ack *Ack) {
	if ack.Resend {
		b.taken = taken{}
		return
	}
	w := &b.waiting
	w.samples, w.players = nil, nil
	if n := len(h.Events); n > 0 {
		w.event = h.Events[n-1].Number
	}
	t := &b.taken
	t.server, t.sequence = server, h.Sequence
	if h.Identity != nil {
		t.identity = h.Identity
	}
	if h.Rechecks != nil {
		t.rechecks = h.Rechecks
	}
	t.streams.taken(&h.Streams, h.At)
}

// packFrom is the length from which packing a body is worth the work at the other end.
const packFrom = 512

// pack returns what is sent.
func (b *Beat) pack(plain []byte) body {
	out := body{bytes: plain}
	if len(plain) >= packFrom {
		if packed := b.packer.EncodeAll(plain, nil); len(packed) < len(plain) {
			out = body{encoding: zstandard, bytes: packed}
		}
	}
	out.sum = sha256.Sum256(out.bytes)
	return out
}
