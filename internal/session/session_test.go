package session

import (
	"net/netip"
	"sync"
	"testing"
)

func TestEveryReasonHasItsOwnWord(t *testing.T) {
	seen := map[string]Reason{}
	for _, r := range Reasons() {
		w := r.String()
		if w == "" {
			t.Errorf("reason %d has no word", uint8(r))
		}
		if was, dup := seen[w]; dup {
			t.Errorf("reasons %d and %d are both %q", uint8(was), uint8(r), w)
		}
		seen[w] = r
	}
	if got := Reason(255).String(); got != "reason(255)" {
		t.Errorf("unknown reason is %q", got)
	}
}

func TestTableCountsWhatIsOpenAndWhatEnded(t *testing.T) {
	tbl := NewTable()
	info := Info{Protocol: HTTPFLV, Action: Play, Stream: "live/a", Peer: netip.MustParseAddrPort("192.0.2.1:5")}
	var kicked []Reason
	a := tbl.Open(info, func(r Reason) { kicked = append(kicked, r) })
	b := tbl.Open(info, func(Reason) {})
	a.Bytes.Add(100)
	b.Bytes.Add(10)
	b.Skip(3, SlowTime)

	if !tbl.Kick(a.ID, Kicked) || len(kicked) != 1 || kicked[0] != Kicked {
		t.Fatalf("kick of an open session: got %v", kicked)
	}
	if !a.Close(Kicked) {
		t.Error("the first close does not report itself as the first")
	}
	if a.Close(PeerClosed) {
		t.Error("the second close counts again")
	}
	if tbl.Kick(a.ID, Kicked) {
		t.Error("an ended session can be kicked")
	}

	var c Count
	for _, x := range tbl.Counts() {
		if x.Protocol == HTTPFLV && x.Action == Play {
			c = x
		} else if x.Opened != 0 {
			t.Errorf("%v %v opened = %d, want 0", x.Protocol, x.Action, x.Opened)
		}
	}
	if c.Open != 1 || c.Opened != 2 || c.Bytes != 110 || c.Ended[Kicked] != 1 || len(c.Ended) != 1 {
		t.Errorf("counts = %+v", c)
	}
	if got := tbl.Skips(); got[SlowTime] != 3 || len(got) != 1 {
		t.Errorf("skips = %v", got)
	}
	if l := tbl.List(); len(l) != 1 || l[0].ID != b.ID || l[0].Skipped != 3 {
		t.Errorf("list = %+v", l)
	}
}

// TestNodesPlaying counts neither viewers nor nodes that push.
func TestNodesPlaying(t *testing.T) {
	tbl := NewTable()
	open := func(stream, node string, a Action) *Session {
		return tbl.Open(Info{Protocol: HTTPFLV, Action: a, Stream: stream, Node: node}, func(Reason) {})
	}
	open("live/a", "edge-1", Play)
	open("live/a", "edge-2", Play)
	open("live/a", "", Play)
	open("live/b", "edge-1", Publish)
	open("live/c", "edge-1", Play).Close(PeerClosed)
	if got := tbl.NodesPlaying(); len(got) != 1 || got["live/a"] != 2 {
		t.Errorf("got %v, want two of live/a", got)
	}
}

func TestTableIsSafeFromManyGoroutines(t *testing.T) {
	tbl := NewTable()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				s := tbl.Open(Info{Protocol: RTMP, Action: Publish}, func(Reason) {})
				s.Bytes.Add(1)
				tbl.Counts()
				tbl.List()
				s.Close(PeerClosed)
			}
		})
	}
	wg.Wait()
	if n := tbl.Len(); n != 0 {
		t.Errorf("%d sessions left open", n)
	}
	if c := tbl.Counts()[0]; c.Ended[PeerClosed] != 1600 || c.Bytes != 1600 {
		t.Errorf("counts = %+v", c)
	}
}
