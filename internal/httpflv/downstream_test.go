package httpflv

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/internal/session"
	"millrace/internal/stream"
)

const clusterKey = "0123456789abcdef"

// signing makes the node one of a cluster.
func (n *node) signing() *auth.Cluster {
	n.t.Helper()
	if err := n.server.self.Cluster.Reload(auth.ClusterConfig{Keys: []string{clusterKey}}); err != nil {
		n.t.Fatal(err)
	}
	return n.server.self.Cluster
}

// below asks as another node does.
func (n *node) below(name stream.Name, change func(*PullRequest)) (*PullConn, error) {
	r := PullRequest{
		URL: "http://" + n.addr + "/" + string(name) + ".flv", Marked: true, Patient: true,
		Mark: auth.Mark{Stream: name, Node: "below", Via: []string{"below"}, Purpose: auth.Pull},
	}
	if change != nil {
		change(&r)
	}
	if c := n.server.self.Cluster; r.Signature == "" && c.Enabled() {
		r.Signature = c.Sign(time.Now(), r.Mark)
	}
	return Pull(n.t.Context(), r, PullConfig{Timeout: patience, Idle: patience, MessageBytes: 1 << 20, Trunks: n.trunks})
}

// item is what a node below reads, as text: a link's state and epoch, or a tag's kind.
func item(t *testing.T, c *PullConn) (string, Link, flv.Tag) {
	t.Helper()
	tag, err := c.Read()
	if err != nil {
		return err.Error(), Link{}, tag
	}
	l, ok, err := ParseLink(tag)
	switch {
	case err != nil:
		t.Fatal(err)
	case ok:
		return "link " + l.State, l, tag
	}
	return tag.Kind.String(), l, tag
}

// A node below gets the stream's own clock, and is told of the publish before the
// first tag of it, of its end behind the last, and of the end of the stream.
func TestNodeBelow(t *testing.T) {
	apartAndOnTrunks(t, nodeBelow)
}

func nodeBelow(t *testing.T, n *node) {
	s := n.publish("live/a")
	s.dts = 5000
	s.write(flv.Video, avcHeader)
	s.write(flv.Video, picture(true, 100, 0))
	c, err := n.below("live/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, first, _ := item(t, c)
	if first.Node != "here" || first.State != LinkLive || first.Epoch != s.p.Stream().Epoch() {
		t.Errorf("it begins with %+v", first)
	}
	if kind, _, tag := item(t, c); kind != "video" || !tag.Is(flv.Header) || tag.DTS != 5000 {
		t.Errorf("then comes %s at %d", kind, tag.DTS)
	}
	if _, _, tag := item(t, c); !tag.Is(flv.Keyframe) || tag.DTS != 5000 {
		t.Errorf("then comes a tag of %v at %d", tag.Flags, tag.DTS)
	}
	s.p.Close(time.Now())
	for got := ""; got != "link "+LinkGrace; {
		if got, _, _ = item(t, c); got != "link "+LinkGrace && got != "link "+LinkLive {
			t.Fatalf("when the publisher has gone comes %s", got)
		}
	}
	again := n.publish("live/a")
	again.write(flv.Video, picture(true, 100, 0))
	for {
		s, l, _ := item(t, c)
		if s == "video" {
			t.Error("a tag of another publish came before the word of it")
		}
		if l.Epoch == again.p.Stream().Epoch() {
			break
		}
	}
	if got, _, _ := item(t, c); got != "video" {
		t.Errorf("behind the word comes %s", got)
	}
	again.p.Close(time.Now())
	n.hub.Sweep(time.Now().Add(time.Hour))
	before, last := "", ""
	for last != io.EOF.Error() {
		before = last
		last, _, _ = item(t, c)
	}
	if before != "link "+LinkEnded {
		t.Errorf("before the end comes %q", before)
	}
}

// A stream that is silent is told of, so that it is not taken for a frozen node.
func TestNodeBelowHearsOfSilence(t *testing.T) {
	apartAndOnTrunks(t, nodeBelowHearsOfSilence)
}

func nodeBelowHearsOfSilence(t *testing.T, n *node) {
	s := n.publish("live/a")
	s.write(flv.Video, picture(true, 100, 0))
	c, err := n.below("live/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for idle := 0; idle < 4; {
		if _, l, _ := item(t, c); l.Idle {
			idle++
		}
	}
}

// A publisher's link tags go no further.
func TestForgedLinks(t *testing.T) {
	apartAndOnTrunks(t, forgedLinks)
}

func forgedLinks(t *testing.T, n *node) {
	s := n.publish("live/a")
	s.write(flv.Video, picture(true, 100, 0))
	forged := AppendLink(nil, Link{Node: "evil", State: LinkEnded, Epoch: 1})
	s.write(flv.Script, bytes.Clone(forged.Payload()))
	s.write(flv.Video, picture(false, 100, 0))
	c, err := n.below("live/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for frames := 0; frames < 2; {
		got, l, _ := item(t, c)
		switch {
		case l.Node == "evil":
			t.Fatal("a forged link came through")
		case got == "video":
			frames++
		}
	}
}

// Who may ask, and what they are told.
func TestNodeBelowRefused(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	n.publish("live/a").write(flv.Video, picture(true, 100, 0))
	cluster := n.signing()
	f := func(what string, want session.Reason, status int, change func(*PullRequest)) {
		t.Helper()
		c, err := n.below("live/a", change)
		if err == nil {
			c.Close()
			t.Errorf("%s: let in", what)
			return
		}
		var refused *PullError
		if !errors.As(err, &refused) || refused.Reason != want.String() || refused.Status != status {
			t.Errorf("%s: %v, want %v and status %d", what, err, want, status)
		}
	}
	f("another key", session.BadSignature, 403, func(r *PullRequest) {
		other, _ := auth.NewCluster(auth.ClusterConfig{Keys: []string{"another-key-of-16"}})
		r.Signature = other.Sign(time.Now(), r.Mark)
	})
	f("signed for another stream", session.BadSignature, 403, func(r *PullRequest) {
		m := r.Mark
		m.Stream = "live/b"
		r.Signature = cluster.Sign(time.Now(), m)
	})
	f("an old signature", session.ClockSkew, 403, func(r *PullRequest) {
		r.Signature = cluster.Sign(time.Now().Add(-time.Hour), r.Mark)
	})
	f("a circle", session.Loop, 508, func(r *PullRequest) { r.Mark.Via = []string{"here", "below"} })
	f("a long way", session.TooManyHops, 508, func(r *PullRequest) {
		r.Mark.Via = []string{"a", "b", "c", "d", "e", "f", "below"}
	})
	f("a stream that is not there", session.NotFound, 404, func(r *PullRequest) {
		r.URL = "http://" + n.addr + "/live/b.flv"
		r.Mark.Stream = "live/b"
	})
	if c, err := n.below("live/a", nil); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
}

// A signature stands for what viewers must show; a mere mark does not.
func TestSignedNodesNeedNoToken(t *testing.T) {
	access := auth.DefaultConfig()
	access.PlaySecrets = []string{"a-secret-of-viewers"}
	n := start(t, quickly(), access)
	n.publish("live/a").write(flv.Video, picture(true, 100, 0))
	var refused *PullError
	if _, err := n.below("live/a", nil); !errors.As(err, &refused) || refused.Status != 401 {
		t.Errorf("without a key a node gets %v, want 401", err)
	}
	n.signing()
	c, err := n.below("live/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// The internal address serves nodes alone.
func TestNodesOnly(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	n.server.self.NodesOnly = true
	n.signing()
	n.publish("live/a").write(flv.Video, picture(true, 100, 0))
	for _, path := range []string{"/live/a.flv", "/watch/live/a", probePath} {
		conn := n.send(path)
		head := make([]byte, 12)
		if _, err := io.ReadFull(conn, head); err != nil || string(head) != "HTTP/1.1 403" {
			t.Errorf("%s: %q, %v", path, head, err)
		}
		conn.Close()
	}
	c, err := n.below("live/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// A node that has lost a stream waits for it, and is told through whom it is looked
// for.
func TestNodeBelowWaits(t *testing.T) {
	apartAndOnTrunks(t, nodeBelowWaits)
}

func nodeBelowWaits(t *testing.T, n *node) {
	told := make(chan []string, 1)
	go func() {
		if path := <-told; !slices.Equal(path, []string{"here"}) {
			t.Errorf("the path is %v", path)
		}
		n.publish("live/a").write(flv.Video, picture(true, 100, 0))
	}()
	c, err := n.below("live/a", func(r *PullRequest) {
		r.Back = time.Second
		r.OnPath = func(path []string) { told <- path }
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for {
		if got, _, _ := item(t, c); got == "video" {
			return
		}
	}
}

// Nodes ask one another whether they live.
func TestProbe(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	cluster := n.signing()
	p := NewProber(nil, nil)
	defer p.Close()
	m := auth.Mark{Node: "below", Via: []string{"below"}, Purpose: auth.Probe}
	ask := func(signature string) (string, error) {
		said, err := p.Ask(context.Background(), "http://"+n.addr, m, signature)
		return said.Node, err
	}
	if id, err := ask(cluster.Sign(time.Now(), m)); id != "here" || err != nil {
		t.Errorf("it says %q, %v", id, err)
	}
	if _, err := ask(""); err == nil {
		t.Error("an unsigned question is answered")
	}
	n.server.Drain()
	if id, err := ask(cluster.Sign(time.Now(), m)); id != "here" || !errors.Is(err, ErrDraining) {
		t.Errorf("while it drains it says %q, %v", id, err)
	}
}
