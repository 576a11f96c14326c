package upstream

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"millrace/internal/auth"
	"millrace/internal/failover"
	"millrace/internal/flv"
	"millrace/internal/ring"
	"millrace/internal/rtmp"
	"millrace/internal/session"
	"millrace/internal/stream"
)

const (
	// admitTime is how long a publisher waits for a center to let it in.
	admitTime = 5 * time.Second
	// answerTime is how long one center has for the connection, with TLS and RTMP six
	// round trips: one that is frozen must leave time for the next.
	answerTime = 2 * time.Second
	// centerPause is how long a center that did not answer is asked last.
	centerPause = 5 * time.Second
)

// errNoCenter is told to a publisher when no center answers.
var errNoCenter = &auth.Denied{Reason: session.UpstreamLost, Text: "no center answers: publish again in a few seconds"}

// push brings a publish of this node to the stream's center.
type push struct {
	// Fixed at construction.
	o       *Origin
	mark    auth.Mark
	session *session.Session // of the publisher

	// Owned by run.
	center  string
	muteFor time.Duration // of the pulse; it doubles when another center was no better
}

// centers returns where a publish goes, in the order in which the stream prefers them:
// the centers of the orders, those of them that drain last, and then those of the
// settings.
func (o *Origin) centers(n stream.Name) []string {
	var ordered, draining, configured []ring.Member
	seen := make(map[string]bool)
	if r := o.orders.Load(); r != nil {
		for _, u := range r.Centers {
			switch {
			case seen[u.URL] || u.Node == o.opt.Self:
			case u.Weight > 0:
				ordered = append(ordered, ring.Member{ID: u.URL, Weight: u.Weight})
			default:
				draining = append(draining, ring.Member{ID: u.URL, Weight: 1})
			}
			seen[u.URL] = true
		}
	}
	for _, u := range o.cfg.Load().Centers {
		if !seen[u] {
			configured = append(configured, ring.Member{ID: u, Weight: 1})
		}
	}
	return slices.Concat(ring.Rank(n, ordered), ring.Rank(n, draining), ring.Rank(n, configured))
}

// centers returns the centers in the order in which this stream prefers them, those
// that did not answer lately behind the others.
func (p *push) centers(now time.Time) []string {
	ranked := p.o.centers(p.mark.Stream)
	p.o.mu.Lock()
	defer p.o.mu.Unlock()
	slices.SortStableFunc(ranked, func(a, b string) int {
		return cmp.Compare(max(0, p.o.mute[a].Sub(now)), max(0, p.o.mute[b].Sub(now)))
	})
	return ranked
}

// muted notes that a center did not answer.
func (p *push) muted(center string) {
	p.o.mu.Lock()
	defer p.o.mu.Unlock()
	p.o.mute[center] = time.Now().Add(centerPause)
}

// admit finds a center that takes the publish. One that refuses it has the last word.
func (p *push) admit(ctx context.Context) (*rtmp.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, admitTime)
	defer cancel()
	for _, center := range p.centers(time.Now()) {
		c, err := p.dial(ctx, center)
		var refused *rtmp.StatusError
		switch {
		case err == nil:
			p.center = center
			return c, nil
		case errors.As(err, &refused) && final(refused):
			p.o.note(Event{Stream: p.mark.Stream, Kind: Refused, To: center, Reason: refused.Code, Detail: refused.Description, search: true})
			return nil, err
		}
		p.muted(center)
		p.o.note(Event{Stream: p.mark.Stream, Kind: GaveUp, To: center, Reason: failureOf(err).String(), Detail: err.Error(), search: true})
	}
	return nil, errNoCenter
}

// final reports whether a center has turned the publisher down, rather than being at
// its end itself.
func final(e *rtmp.StatusError) bool {
	return e.Code == "NetStream.Publish.BadName" || e.Code == "NetStream.Publish.Denied"
}

func (p *push) dial(ctx context.Context, center string) (*rtmp.Client, error) {
	cfg := p.o.cfg.Load()
	c := rtmp.DefaultClientConfig()
	c.TLS, c.WriteTimeout = p.o.opt.TLS, pushWriteTime
	c.Dial = impatient(p.o.dialer(cfg.DialTime))
	// The center decodes what it is told once more, as encoders want it to be.
	name := strings.ReplaceAll(string(p.mark.Stream), "%", "%25")
	at := center + "/" + escape(name) + "?" + auth.PushQuery(p.mark, p.o.opt.Cluster.Sign(time.Now(), p.mark))
	answering, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	client, err := rtmp.Dial(answering, at, c)
	if err != nil {
		return nil, err
	}
	if err := client.Publish(ctx); err != nil {
		_ = client.Close()
		return nil, err
	}
	return client, nil
}

// pushWriteTime is how long a center may take nothing before another is tried.
const pushWriteTime = 3 * time.Second

// startPush begins to push, unless the origin has ended.
func (o *Origin) startPush(p *push, f *inletFeed, client *rtmp.Client) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ctx == nil {
		return false
	}
	ctx := o.ctx
	o.running.Go(func() { p.run(ctx, f, client) })
	return true
}

// run pushes until the publish is over.
func (p *push) run(ctx context.Context, f *inletFeed, client *rtmp.Client) {
	p.o.note(Event{Stream: p.mark.Stream, Kind: Pushed, To: p.center})
	back := time.Duration(0)
	pause := 100 * time.Millisecond
	for {
		began := time.Now()
		err := p.send(ctx, f, client, back)
		_ = client.Close()
		if err == nil {
			p.o.note(Event{Stream: p.mark.Stream, Kind: Stopped, From: p.center, Reason: f.Reason().String()})
			return
		}
		if time.Since(began) > time.Minute {
			pause, p.muteFor = 100*time.Millisecond, 0
		}
		if errors.Is(err, errMute) { // it may be the way from here that is slow, to all of them
			p.muteFor = min(2*max(p.muteFor, muteTime), maxMuteTime)
		}
		if failureOf(err) == failover.Timeout { // it would not answer another connection either
			p.muted(p.center)
		}
		p.o.note(Event{Stream: p.mark.Stream, Kind: Lost, From: p.center, Reason: failureOf(err).String(), Detail: err.Error()})
		var refused *rtmp.StatusError
		if errors.As(err, &refused) && final(refused) {
			// The center has ended the publish: so must the publisher learn.
			p.kick(refused)
			return
		}
		for client = nil; client == nil; {
			if client, err = p.admit(ctx); err == nil {
				break
			}
			if errors.As(err, &refused) && final(refused) {
				p.kick(refused)
				return
			}
			t := time.NewTimer(pause)
			pause = min(2*pause, 5*time.Second)
			select {
			case <-t.C:
			case <-f.done:
				return
			case <-ctx.Done():
				return
			}
		}
		back = minBack
		p.o.note(Event{Stream: p.mark.Stream, Kind: Pushed, To: p.center})
	}
}

// kick ends the publisher because the center does not want it any more.
func (p *push) kick(refused *rtmp.StatusError) {
	r := session.Kicked
	if strings.HasSuffix(refused.Code, "BadName") {
		r = session.Displaced
	}
	if p.session != nil {
		p.session.Kick(r)
	}
}

// send writes the stream to a center until the publish is over, which is no error.
func (p *push) send(ctx context.Context, f *inletFeed, client *rtmp.Client, back time.Duration) error {
	s := f.in.pub.Stream()
	cur := s.NewCursor(stream.CursorOptions{KeepClock: true, Back: back, Of: f.in.pub})
	w := waker{make(chan struct{}, 1)}
	s.Watch(w)
	defer s.Unwatch(w)
	beat := time.NewTicker(pushBeat)
	defer beat.Stop()
	over := false
	life := pulse{limit: max(p.muteFor, muteTime)}
	var tags [32]flv.Tag
	for {
		n := cur.Peek(tags[:])
		for _, t := range tags[:n] {
			if err := client.Write(t); err != nil {
				return err
			}
		}
		cur.Advance(n)
		clear(tags[:n])
		switch {
		case n > 0:
			continue
		case over:
			return nil
		}
		select {
		case <-w.c:
		case <-beat.C:
			if err := client.Err(); err != nil {
				return err
			}
			ask, err := life.beat(time.Now(), client.Heard())
			if ask {
				err = client.Ping()
			}
			if err != nil {
				return err
			}
		case <-f.done:
			over = true // what is left still goes
		case <-ctx.Done():
			return nil
		}
	}
}

// pushBeat is how often it is looked whether a center is still there while there is
// nothing to write.
const pushBeat = 250 * time.Millisecond

// waker is a [stream.Waiter] with a channel of capacity 1, never closed.
type waker struct{ c chan struct{} }

// Wake implements [stream.Waiter].
func (w waker) Wake() {
	select {
	case w.c <- struct{}{}:
	default:
	}
}
