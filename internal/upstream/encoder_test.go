package upstream

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"millrace/internal/flv"
	"millrace/internal/stream"
)

// encoder publishes numbered pictures until it is stopped.
type encoder struct {
	pub  *stream.Publisher
	sent atomic.Uint32
	end  chan struct{}
	gone chan struct{}
}

// publish begins to publish, a keyframe every 10 pictures and a picture every 10 ms.
func (n *node) publish(name stream.Name) *encoder { return n.encode(name, false) }

// publishInTime is publish, but where the machine is busy, what is late comes at once: a
// source that is slow is left for nobody.
func (n *node) publishInTime(name stream.Name) *encoder { return n.encode(name, true) }

func (n *node) encode(name stream.Name, inTime bool) *encoder {
	n.t.Helper()
	pub, err := n.hub.Publish(time.Now(), name, "me", nil)
	if err != nil {
		n.t.Fatal(err)
	}
	e := &encoder{pub: pub, end: make(chan struct{}), gone: make(chan struct{})}
	_ = pub.Write(time.Now(), flv.New(flv.Video, 0, []byte{0x17, 0, 0, 0, 0, 1}))
	go func() {
		defer close(e.gone)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		began, now := time.Now(), make(chan time.Time)
		close(now)
		for i := uint32(0); ; i++ {
			p := []byte{0x27, 1, 0, 0, 0}
			if i%10 == 0 {
				p[0] = 0x17
			}
			p = binary.BigEndian.AppendUint32(p, i)
			if pub.Write(time.Now(), flv.New(flv.Video, int64(i)*10, p)) != nil {
				return
			}
			e.sent.Store(i + 1)
			wait := tick.C
			if inTime && time.Since(began) >= time.Duration(i+1)*10*time.Millisecond {
				wait = now
			}
			select {
			case <-wait:
			case <-e.end:
				return
			}
		}
	}()
	n.t.Cleanup(e.stop)
	return e
}

// pause sends no more pictures; the publisher stays.
func (e *encoder) pause() {
	select {
	case <-e.end:
	default:
		close(e.end)
	}
	<-e.gone
}

// stop ends the publish; the stream goes into its grace time.
func (e *encoder) stop() {
	e.pause()
	e.pub.Close(time.Now())
}
