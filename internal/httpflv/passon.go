package httpflv

import (
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/auth"
	"millrace/internal/session"
	"millrace/internal/stream"
)

// Ring knows which streams this node brings into its datacenter. It is asked from any
// goroutine and answers from memory.
type Ring interface {
	// PassOn returns which other node of the datacenter has n, or is to bring it in,
	// because this one is over its bound, and since when it is. ok is false if this node
	// sends n to whoever asks. It is for requests of nodes of the same datacenter.
	PassOn(n stream.Name) (to string, over time.Time, ok bool)
	// Over returns since when this node is over its bound; the zero time if it is not.
	Over() time.Time
}

// passedField names the node that is to be asked instead, and since when the one that
// says so is over its bound, in Unix milliseconds: 0 if it is not.
const passedField = "Millrace-Passed-On"

// passedOn returns the refusal of what a node of the datacenter shall ask another for,
// nil if it gets it here.
func (s *Server) passedOn(p *play) *refusal {
	if s.self.Ring == nil || p.node == nil || p.node.marks.Mark.Purpose != auth.Peer {
		return nil
	}
	to, over, ok := s.self.Ring.PassOn(p.name)
	if !ok {
		return nil
	}
	return &refusal{
		status: fasthttp.StatusServiceUnavailable, reason: session.OverBound,
		header: passedField + ": " + to + " " + strconv.FormatInt(unixMilli(over), 10) + crlf,
		text:   "this node sends as much as it should: " + to + " brings the stream into the datacenter",
	}
}

// parsePassed reads the field that passedOn wrote. What it does not say is empty.
func parsePassed(value string) (to string, over int64) {
	to, since, _ := strings.Cut(value, " ")
	ms, err := strconv.ParseInt(since, 10, 64)
	if err != nil || ms < 0 || !auth.ValidNodeID(to) {
		return "", 0
	}
	return to, ms
}

// over returns since when the node is over its bound, in Unix milliseconds.
func (s *Server) over() int64 {
	if s.self.Ring == nil {
		return 0
	}
	return unixMilli(s.self.Ring.Over())
}

// unixMilli returns t in Unix milliseconds, 0 for the zero time.
func unixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
