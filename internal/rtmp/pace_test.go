package rtmp

import (
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/session"
	"millrace/internal/stream"
)

// TestCommandRate is how many commands a peer may send: before the first role some,
// however long it takes, and after it as many a second.
func TestCommandRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &conn{pace: newPaces()}
		f := func(when string, later time.Duration, want int) {
			t.Helper()
			time.Sleep(later)
			n := 0
			for c.commanded() == nil {
				n++
			}
			if n != want {
				t.Errorf("%s: %d commands, want %d", when, n, want)
			}
		}
		f("at first", 0, commandBurst)
		f("long after", time.Hour, 0)
		c.takes(session.Play)
		f("with a role", 0, 0)
		f("a second later", time.Second, commandRate)
		f("long after that", time.Hour, commandBurst)
	})
}

// TestPartials has connections share a bound: who has less than an even share gets
// it, so that all together never hold more than twice the bound.
func TestPartials(t *testing.T) {
	var p partials
	p.most.Store(100)
	f := func(old, held int, want bool) {
		t.Helper()
		before := p.bytes.Load()
		if got := p.move(old, held); got != want {
			t.Errorf("from %d to %d: %v", old, held, got)
		}
		if !want && p.bytes.Load() != before {
			t.Errorf("a refusal counts: %d bytes", p.bytes.Load())
		}
	}
	f(0, 90, true)
	f(0, 10, true)
	f(90, 95, false) // the first has more than its share
	f(10, 40, true)  // the second has not
	f(0, 30, true)
	f(0, 30, false) // a quarter is less
	f(90, 0, true)
	f(40, 0, true)
	f(30, 0, true)
	if p.bytes.Load() != 0 || p.holders.Load() != 0 {
		t.Errorf("%d bytes of %d connections are left", p.bytes.Load(), p.holders.Load())
	}
}

// TestTotalPartial has one publisher hold all that may be held, and another one go on
// with pictures of a usual size.
func TestTotalPartial(t *testing.T) {
	n := newNode(t, option{cfg: func(c *Config) { c.TotalPartialBytes = 4 << 20 }})
	p := n.publisher(t, "live", "greedy")
	p.write(chunks{}.type0(2, 0, 4, typeSetChunkSize, 0).u32(1 << 20))
	for id := range uint32(6) {
		p.write(chunks{}.type0(4+id, 0, 2<<20, typeVideo, 1))
		p.write(make([]byte, 1<<20))
	}
	n.endsWith(t, session.PartialTooBig)
	w := n.watch(t, "live/good")
	good := n.publisher(t, "live", "good")
	picture := append(keyframe(1), make([]byte, 300<<10)...)
	for range 5 {
		good.message(6, typeVideo, 1, 0, picture)
	}
	w.next(5)
	good.net.Close()
	eventually(t, "nothing held", func() bool { return n.partials.bytes.Load() == 0 && n.partials.holders.Load() == 0 })
}

// TestGuestMemory has peers send the biggest messages before they may publish, and
// as players: nothing of it is kept.
func TestGuestMemory(t *testing.T) {
	const peers, limit = 20, 64 << 10
	for _, role := range []string{"nothing", "play"} {
		t.Run(role, func(t *testing.T) {
			n := newNode(t, option{cfg: func(c *Config) { c.PlayWait = time.Minute }})
			var all []*peer
			for range peers {
				p := n.connected(t, "live")
				if role == "play" {
					p.play("missing")
					p.expectStatus(codePlayStart)
				}
				p.write(chunks{}.type0(2, 0, 4, typeSetChunkSize, 0).u32(200 << 10))
				all = append(all, p)
			}
			body := make([]byte, 200<<10)
			cost := heapPeak(func() {
				for _, p := range all {
					for id := range uint32(2) {
						p.write(chunks{}.type0(4+id, 0, 8<<20, typeVideo, 0))
						p.write(body)
					}
					p.sync()
				}
			})
			if each := cost / peers; each > limit {
				t.Errorf("%d bytes for each peer, want at most %d", each, limit)
			}
		})
	}
}

// TestHeldNames shows what keeps the name of a stream: pictures and sounds, and
// nothing else.
func TestHeldNames(t *testing.T) {
	junk := func(kind uint8, payload ...byte) func(p *peer) {
		return func(p *peer) { p.message(4, kind, 1, 0, payload) }
	}
	for _, tt := range []struct {
		name  string
		send  func(p *peer)
		holds bool
	}{
		{"sound", junk(typeAudio, aac(1)...), true},
		{"keyframes", junk(typeVideo, keyframe(1)...), true},
		{"empty sound", junk(typeAudio), false},
		{"empty data", junk(typeData), false},
		{"garbage data", junk(typeData, 0xff, 0xff), false},
		{"metadata", junk(typeData, encode(setDataFrame, onMetaData, object{{"a", 1}})...), false},
		{"a sequence header", junk(typeVideo, avcHeader...), false},
		{"pictures without a keyframe", junk(typeVideo, inter(1)...), false},
		{"an empty aggregate", junk(typeAggregate), false},
		{"another message stream", func(p *peer) { p.message(4, typeAudio, 2, 0, aac(1)) }, false},
		{"the end of another publish", func(p *peer) { p.command(0, "FCUnpublish", 0, nil, "other") }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, option{
				stream: func(c *stream.Config) { c.Grace = 0 },
			})
			p := n.publisher(t, "live", "a")
			p.command(0, "createStream", 9, nil)
			p.expect("_result")
			idle := time.Second
			if tt.holds {
				idle *= 4 // a machine that stands still does not hold it
			}
			n.limit(func(c *Config) { c.IdleTimeout = idle })
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			ended := func() bool { return n.Stats().Ended[session.Idle] > 0 }
			for end := time.Now().Add(2 * idle); tt.holds && time.Now().Before(end) || !tt.holds && !ended(); <-tick.C {
				tt.send(p)
			}
			if ended() == tt.holds {
				t.Errorf("ended %v", n.Stats().Ended)
			}
		})
	}
}

// TestEmptyRoles has a peer publish and stop, over and over: that is no reason to
// keep it longer than the command timeout.
func TestEmptyRoles(t *testing.T) {
	n := newNode(t, option{})
	p := n.connected(t, "live")
	n.limit(func(c *Config) { c.CommandTimeout = time.Second })
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for range 25 {
		<-tick.C
		p.command(1, "publish", 0, nil, "a")
		p.command(1, "closeStream", 0, nil)
	}
	n.endsWith(t, session.CommandTimeout)
}
