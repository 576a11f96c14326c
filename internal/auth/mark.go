package auth

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"millrace/internal/session"
	"millrace/internal/stream"
)

// Mark is what a node says about itself when it asks another one for a stream, or
// pushes one to it. It is what a signature of a [Cluster] covers.
type Mark struct {
	Stream  stream.Name
	Node    string   // the id of the node that asks
	Via     []string // the nodes that the request passed: the one nearest the reader first, Node last
	Purpose Purpose
	// Of a push.
	Owner string // digest of the publisher's identity
	Epoch int64  // of the publish
}

// Purpose says why a node asks.
type Purpose uint8

// The purposes. A node that is asked by a Peer goes to its pool itself: it does not
// hand the request on inside the datacenter.
const (
	Pull  Purpose = iota // from a node of the pool
	Peer                 // from a node of the same datacenter
	Trial                // beside a connection that is in use
	Push                 // of a publish, up to the center
	Probe                // for a look: whether the node answers, and what it has
	Trunk                // for a connection on which more is asked
	purposes
)

var purposeWords = [purposes]string{"pull", "peer", "trial", "push", "probe", "trunk"}

// String returns the word used on the wire, in logs, metrics and the API.
func (p Purpose) String() string {
	if p >= purposes {
		return fmt.Sprintf("purpose(%d)", uint8(p))
	}
	return purposeWords[p]
}

// MarshalText returns the word of p, for JSON.
func (p Purpose) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// ParsePurpose returns the purpose whose word is s.
func ParsePurpose(s string) (Purpose, bool) {
	i := slices.Index(purposeWords[:], s)
	return Purpose(max(i, 0)), i >= 0
}

// MaxHops is how many nodes a request may have passed. A tree has three tiers; with
// an owner inside each datacenter five nodes are the longest way that makes sense.
const MaxHops = 6

// CheckPath decides whether the node self may serve m, by the way that m came. The
// error is a [*Denied] with reason loop or too_many_hops.
func (m Mark) CheckPath(self string) error {
	if slices.Contains(m.Via, self) {
		return deny(session.Loop, fmt.Sprintf("the request has passed node %s before, by way of %s: take one of them out of the upstreams of another",
			self, strings.Join(m.Via, ", ")))
	}
	if len(m.Via) > MaxHops {
		return deny(session.TooManyHops, fmt.Sprintf("the request has passed %d nodes, at most %d are allowed: shorten the tree", len(m.Via), MaxHops))
	}
	return nil
}

// MaxEpoch bounds the epoch of a publish. It is far beyond any clock, exact in every
// reader of JSON, and leaves room for newer ones: the next publish of a name begins later
// than the last, whatever that has said.
const MaxEpoch = 1<<53 - 1

// markVersion begins every text that is signed. Whoever changes what follows
// changes it too.
const markVersion = "millrace-mark-1"

// appendText appends what a signature made at the Unix second at covers. Each field
// has its length before it, so that no two marks have the same text.
func (m Mark) appendText(dst []byte, at string) []byte {
	field := func(s string) {
		dst = strconv.AppendInt(dst, int64(len(s)), 10)
		dst = append(dst, ':')
		dst = append(dst, s...)
		dst = append(dst, '\n')
	}
	dst = append(dst, markVersion+"\n"...)
	field(at)
	field(m.Purpose.String())
	field(string(m.Stream))
	field(m.Node)
	field(strconv.Itoa(len(m.Via)))
	for _, v := range m.Via {
		field(v)
	}
	field(m.Owner)
	field(strconv.FormatInt(m.Epoch, 10))
	return dst
}

// MaxNodeID is how many bytes the id of a node may have.
const MaxNodeID = 64

// ValidNodeID reports whether s can be the id of a node: letters, digits, dots,
// underscores and hyphens. So it can stand in a header line, a URL, a metric and a
// file name as it is.
func ValidNodeID(s string) bool {
	if s == "" || len(s) > MaxNodeID {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}
