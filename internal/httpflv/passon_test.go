package httpflv

import (
	"errors"
	"slices"
	"testing"
	"time"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/internal/stream"
)

// passer is a Ring of fixed answers.
type passer struct {
	asked []stream.Name
	over  time.Time
}

func (p *passer) PassOn(n stream.Name) (string, time.Time, bool) {
	p.asked = append(p.asked, n)
	return "edge-2", p.over, true
}

func (p *passer) Over() time.Time { return p.over }

// What this node does not bring in for others of its datacenter, and for nobody else, they
// are told to ask another for.
func TestPassedOn(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	n.signing()
	p := &passer{over: time.UnixMilli(1_764_524_800_123)}
	n.server.self.Ring = p
	n.publish("live/a").write(flv.Video, picture(true, 100, 0))
	for purpose, refused := range map[auth.Purpose]bool{auth.Peer: true, auth.Pull: false, auth.Trial: false} {
		c, err := n.below("live/a", func(r *PullRequest) { r.Mark.Purpose = purpose })
		if c != nil {
			c.Close()
		}
		got, ok := errors.AsType[*PullError](err)
		if ok != refused || ok && (got.Reason != "over_bound" || got.To != "edge-2" || got.Over != 1_764_524_800_123 || got.Text == "") {
			t.Errorf("%v: %+v", purpose, err)
		}
	}
	if !slices.Equal(p.asked, []stream.Name{"live/a"}) {
		t.Errorf("the ring was asked for %v", p.asked)
	}
	if f := n.server.Figures(false); f.Over != 1_764_524_800_123 || f.Refused != 0 {
		t.Errorf("it is over since %d, refused %d", f.Over, f.Refused)
	}
	p.over = time.Time{}
	_, err := n.below("live/a", func(r *PullRequest) { r.Mark.Purpose = auth.Peer })
	if got, ok := errors.AsType[*PullError](err); !ok || got.Over != 0 || n.server.Figures(false).Over != 0 {
		t.Errorf("within its bound: %+v", err)
	}
}

// What does not say who has the stream says nothing.
func TestParsePassed(t *testing.T) {
	f := func(value, to string, over int64) {
		t.Helper()
		if gotTo, gotOver := parsePassed(value); gotTo != to || gotOver != over {
			t.Errorf("%q: %q %d, want %q %d", value, gotTo, gotOver, to, over)
		}
	}
	f("edge-2 1764524800123", "edge-2", 1764524800123)
	f("edge-2 0", "edge-2", 0)
	for _, value := range []string{"", "edge-2", "edge-2 ", "edge-2 -1", "edge-2 99999999999999999999", "edge-2 1 2", "edge/2 1", " 1"} {
		f(value, "", 0)
	}
}

func FuzzParsePassed(f *testing.F) {
	for _, value := range []string{"edge-2 1764524800123", "edge-2 0", "edge-2", " ", "edge-2 -1"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		to, over := parsePassed(value)
		if over < 0 || to == "" && over != 0 || to != "" && !auth.ValidNodeID(to) {
			t.Errorf("%q: %q %d", value, to, over)
		}
	})
}
