package upstream

import (
	"encoding/binary"
	"testing"
	"time"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/internal/httpflv"
)

// A node that asks for what it has missed gets it from one that does not have the
// stream yet.
func TestBackThroughAColdNode(t *testing.T) {
	center := start(t, "center")
	relay := start(t, "relay", pool(center.url))
	e := center.publish("live/a")
	eventually(t, "a second of the stream is there", func() bool { return e.sent.Load() >= 100 })
	e.pause() // what comes while it is looked for would be a second of it too
	sent := e.sent.Load()
	p, err := httpflv.Pull(t.Context(), httpflv.PullRequest{
		URL:    relay.url + "/live/a.flv",
		Mark:   auth.Mark{Stream: "live/a", Node: "edge", Via: []string{"edge"}, Purpose: auth.Trial},
		Marked: true, Back: 500 * time.Millisecond,
	}, httpflv.PullConfig{Timeout: patience, Idle: patience, MessageBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for {
		tag, err := p.Read()
		if err != nil {
			t.Fatal(err)
		}
		if tag.Is(flv.Frame) {
			if first := binary.BigEndian.Uint32(tag.Payload()[5:]); first > sent-50 {
				t.Errorf("it begins with picture %d of %d", first, sent)
			}
			return
		}
	}
}
