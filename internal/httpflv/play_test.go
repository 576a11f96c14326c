package httpflv

import (
	"testing"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/internal/session"
)

func TestViewerStartsAtAKeyframeWithItsHeaders(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	s := n.publish("live/a")
	s.headers()
	s.frames(25, 1000)

	r := n.get(get11("/live/a.flv"))
	if got := r.resp.StatusCode; got != 200 {
		t.Fatalf("status %d: %s", got, body(t, r))
	}
	if got := r.resp.Header.Get("Content-Type"); got != "video/x-flv" {
		t.Errorf("content type %q", got)
	}
	var kinds []flv.Kind
	for range 2 {
		x := r.tag()
		if !x.Is(flv.Header) {
			t.Fatalf("%v tag before the headers", x.Kind)
		}
		kinds = append(kinds, x.Kind)
	}
	if kinds[0] != flv.Video || kinds[1] != flv.Audio {
		t.Errorf("headers %v", kinds)
	}
	first := r.tag()
	if !first.Is(flv.Keyframe) || number(first) != 20 || first.DTS != 0 {
		t.Errorf("first frame is %d at %d ms, keyframe %v", number(first), first.DTS, first.Is(flv.Keyframe))
	}
	r.wantFrames(21, 24)
	s.frames(20, 1000)
	r.wantFrames(25, 44)
	if a, v := r.flv.Tracks(); !a || !v {
		t.Errorf("FLV header says audio %v, video %v", a, v)
	}
	r.conn.Close()
	n.wantEnded(session.PeerClosed, 1)
}
