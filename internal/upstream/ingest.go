package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"millrace/internal/auth"
	"millrace/internal/failover"
	"millrace/internal/flv"
	"millrace/internal/rtmp"
	"millrace/internal/session"
	"millrace/internal/stream"
)

const (
	// inletGap is how long a publish that was pushed here goes on without the node
	// that pushed it: so long it may take to come back on another connection, and
	// goes on where it was.
	inletGap = 3 * time.Second
)

// Open lets a publisher in: one that is pushed by another node, or one of this node,
// which is pushed on to the stream's center if there are centers. It implements
// [rtmp.Inlet]. Errors are of package stream, an [*auth.Denied], or what the center
// says.
func (o *Origin) Open(ctx context.Context, r rtmp.PublishRequest) (rtmp.Feed, error) {
	m, signature, pushed, err := auth.ParsePush(r.Stream, r.Query)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	proven := pushed && o.opt.Cluster.Enabled()
	if pushed {
		if err := o.opt.Cluster.Verify(now, m, signature); err != nil {
			return nil, err
		}
		if err := m.CheckPath(o.opt.Self); err != nil {
			return nil, err
		}
	}
	if !proven {
		grant, err := o.opt.Gate.Publish(now, auth.Request{Stream: r.Stream, Peer: r.Peer, Query: r.Query})
		if err != nil {
			return nil, err
		}
		if !pushed {
			m = auth.Mark{Stream: r.Stream, Owner: digestOf(grant.Owner), Epoch: now.UnixMilli()}
			if s, ok := o.opt.Hub.Lookup(r.Stream); ok { // the clock of who has published it may be ahead
				m.Epoch = max(m.Epoch, s.Epoch()+1)
			}
		}
	}
	p := &push{o: o, mark: m, session: r.Session}
	p.mark.Node, p.mark.Purpose = o.opt.Self, auth.Push
	p.mark.Via = append(append([]string{}, m.Via...), o.opt.Self)
	var client *rtmp.Client
	if len(o.centers(r.Stream)) > 0 {
		if client, err = p.admit(ctx); err != nil {
			return nil, err
		}
	}
	f, err := o.inlet(now, m, r.Session, pushed)
	if err != nil {
		if client != nil {
			_ = client.Close()
		}
		return nil, err
	}
	if client != nil && !o.startPush(p, f, client) {
		_ = client.Close()
		f.Close(now, session.Draining)
		return nil, stream.ErrDraining
	}
	f.in.away.Store(client != nil)
	return f, nil
}

// digestOf makes a word for an owner that tells nothing about its secrets.
func digestOf(owner string) string {
	sum := sha256.Sum256([]byte("millrace-owner\x00" + owner))
	return hex.EncodeToString(sum[:16])
}

// inlet is a publish on this node. A node that pushes it may lose its connection and
// come back on another: what it sends again is recognised and left out.
type inlet struct {
	// Fixed at construction.
	o     *Origin
	name  stream.Name
	owner string
	epoch int64
	from  string // the clock of the push; empty for a publisher of this node
	pub   *stream.Publisher

	// Safe from any goroutine.
	away atomic.Bool // it is pushed to a center

	// Guarded by mu.
	mu      sync.Mutex
	by      string            // the node that pushes it; empty for an encoder
	splicer *failover.Splicer // nil for a publisher of this node
	clock   clockName
	out     []flv.Tag
	holder  *inletFeed // nil while nobody feeds it
	lostAt  time.Time  // since when
}

// inletFeed is one connection that feeds an inlet.
type inletFeed struct {
	in   *inlet
	done chan struct{} // closed when it has lost the inlet

	// Guarded by in.mu.
	reason session.Reason
}

// inlet gives the stream to a new connection. The same publish on a new connection
// of its node goes on where it was; of two publishes the newer one has the stream.
func (o *Origin) inlet(now time.Time, m auth.Mark, by *session.Session, pushed bool) (*inletFeed, error) {
	o.inletsMu.Lock()
	defer o.inletsMu.Unlock()
	old := o.inlets[m.Stream]
	if old != nil && old.owner == m.Owner && pushed && old.pub.Reason() == session.None {
		switch {
		case old.epoch == m.Epoch:
			return old.take(now, m.Node, true), nil
		case old.epoch > m.Epoch:
			return nil, stream.ErrBusy
		}
	}
	pub, err := o.opt.Hub.Continue(now, m.Stream, m.Owner, m.Epoch, by)
	if err != nil {
		return nil, err
	}
	in := &inlet{o: o, name: m.Stream, owner: m.Owner, epoch: m.Epoch, pub: pub}
	same := true // what was forwarded is on the clock of the push
	if pushed {
		in.splicer = failover.NewSplicer()
		// A push goes on at another center on the same clock.
		in.from = "push-" + m.Owner + "-" + strconv.FormatInt(m.Epoch, 36)
		if pub.Resumed() { // it was here before, by another way or another connection
			same = pub.Stream().Clock() == in.from
			in.splicer.Seed(pub.Stream().Past())
		}
	}
	in.nameClock()
	o.inlets[m.Stream] = in
	if old != nil {
		old.leave(session.Displaced)
	}
	return in.take(now, m.Node, same), nil
}

// leave takes the inlet from its holder.
func (in *inlet) leave(r session.Reason) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.holder != nil {
		in.holder.lose(r)
		in.holder = nil
	}
}

// take makes a new connection the holder, of a node unless it is an encoder's. sameClock
// says that what came before is on its clock.
func (in *inlet) take(now time.Time, by string, sameClock bool) *inletFeed {
	in.mu.Lock()
	defer in.mu.Unlock()
	if old := in.holder; old != nil {
		old.lose(session.Displaced)
	}
	f := &inletFeed{in: in, done: make(chan struct{})}
	in.holder, in.by = f, by
	if in.splicer != nil {
		in.out = in.splicer.Join(now, nil, sameClock, in.out[:0])
	}
	return f
}

// lose is called once, with in.mu held.
func (f *inletFeed) lose(r session.Reason) {
	f.reason = r
	close(f.done)
}

// Write implements [rtmp.Feed].
func (f *inletFeed) Write(now time.Time, t flv.Tag) error {
	in := f.in
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.holder != f {
		return stream.ErrDisplaced
	}
	if in.splicer == nil {
		return in.pub.Write(now, t)
	}
	return in.forward(now, in.splicer.Take(now, t, in.out[:0]))
}

// AwaitsPicture implements [rtmp.Feed].
func (f *inletFeed) AwaitsPicture() bool { return f.in.pub.AwaitsPicture() }

// nameClock keeps the name of the clock up to date.
func (in *inlet) nameClock() {
	offset := int64(0)
	if in.splicer != nil {
		offset = in.splicer.Offset()
	}
	if name, ok := in.clock.changed(in.o, in.from, offset); ok {
		in.pub.SetClock(name, in.clock.own)
	}
}

// forward writes what came out of the splicer.
func (in *inlet) forward(now time.Time, tags []flv.Tag) error {
	in.out = tags
	defer clear(tags)
	in.nameClock()
	for _, t := range tags {
		if err := in.pub.Write(now, t); err != nil {
			return err
		}
	}
	return nil
}

// Close implements [rtmp.Feed].
func (f *inletFeed) Close(now time.Time, r session.Reason) {
	in := f.in
	in.mu.Lock()
	if in.holder != f {
		in.mu.Unlock()
		return
	}
	in.holder, in.lostAt = nil, now
	f.lose(r)
	stays := in.splicer != nil && r != session.Unpublished && r != session.Kicked
	in.mu.Unlock()
	if !stays {
		in.o.closeInlet(now, in)
	}
}

// Done implements [rtmp.Feed].
func (f *inletFeed) Done() <-chan struct{} { return f.done }

// Reason implements [rtmp.Feed].
func (f *inletFeed) Reason() session.Reason {
	f.in.mu.Lock()
	defer f.in.mu.Unlock()
	return f.reason
}

// closeInlet gives the stream up.
func (o *Origin) closeInlet(now time.Time, in *inlet) {
	o.inletsMu.Lock()
	if o.inlets[in.name] == in {
		delete(o.inlets, in.name)
	}
	o.inletsMu.Unlock()
	in.pub.Close(now)
}

// watchInlets ends inlets that were lost for too long, and releases what a splice
// holds.
func (o *Origin) watchInlets(now time.Time) {
	o.inletsMu.Lock()
	all := make([]*inlet, 0, len(o.inlets))
	for _, in := range o.inlets {
		all = append(all, in)
	}
	o.inletsMu.Unlock()
	for _, in := range all {
		in.mu.Lock()
		over := in.holder == nil && now.Sub(in.lostAt) >= inletGap
		if in.splicer != nil && in.holder != nil {
			_ = in.forward(now, in.splicer.Poll(now, in.out[:0]))
		}
		in.mu.Unlock()
		if over {
			o.closeInlet(now, in)
		}
	}
}
