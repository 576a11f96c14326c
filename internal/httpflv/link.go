package httpflv

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/internal/stream"
)

// Link is what a node tells the node below it, between the tags of a stream and at
// least every 250 ms. A node that says nothing at all is frozen; one that says that
// there is nothing new has a silent source.
type Link struct {
	Node  string `json:"node"`  // who says it
	State string `json:"state"` // of the stream there: one of the words below
	// Epoch of the publish at the center: Unix milliseconds. The newest one wins.
	Epoch int64 `json:"epoch"`
	// Clock names the clock of the stream there. Where it is the same, a frame has the
	// same time.
	Clock string `json:"clock,omitempty"`
	// Head is the time of the newest tag there, in milliseconds on the stream's clock.
	Head int64 `json:"head"`
	// Idle: there is nothing newer than what was sent before.
	Idle bool  `json:"idle,omitempty"`
	Sent int64 `json:"sent"` // Unix milliseconds on the clock of Node
	// Path is how the stream comes to Node, the nearest hop first.
	Path []stream.Hop `json:"path,omitempty"`
	// What the TCP of Node knows of this connection. Who receives cannot know it.
	Trip  uint32 `json:"trip_us,omitempty"` // least round trip of the last minutes, in microseconds
	Out   uint64 `json:"out,omitempty"`     // bytes sent so far, with those sent again
	Again uint64 `json:"again,omitempty"`   // bytes sent again so far
}

// The states of a stream on a link.
const (
	LinkLocating = "locating" // it is looked for
	LinkLive     = "live"
	LinkGrace    = "grace" // its publisher is gone, and may come back
	LinkEnded    = "ended" // nothing follows
)

// A link tag is script data that players pass over: an AMF0 string with the name
// below, and an AMF0 long string with a Link as JSON.
const (
	linkName   = "@millrace"
	amfLong    = 0x0c                      // AMF0 specification, 2.14: a string with 32 bits of length
	linkPrefix = "\x02\x00\x09" + linkName // 2.4: a string with 16 bits of length
	linkHead   = len(linkPrefix) + 1 + 4
	maxLink    = 4 << 10 // of JSON; a path of maxPath hops with the longest ids is below 2 KiB
	maxPath    = 16
	maxWord    = 32
	maxClock   = auth.MaxNodeID + 24 // the id of a node and a time
)

// ErrLink is wrapped by the errors about a tag that is marked as a link and is none.
var ErrLink = errors.New("malformed link tag")

// AppendLink returns l as a tag whose bytes are appended to dst: they are the
// caller's, and dst's, if it has room for them. The tag's time is l.Head, as a time
// from elsewhere would upset the clock of the reader.
func AppendLink(dst []byte, l Link) flv.Tag {
	text, _ := json.Marshal(l) // strings and numbers cannot fail
	n := linkHead + len(text)
	at := len(dst)
	var head [flv.HeaderSize]byte
	flv.PutHeader(head[:], flv.Script, n, l.Head)
	dst = append(dst, head[:]...)
	dst = append(dst, linkPrefix...)
	dst = append(dst, amfLong)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(text)))
	dst = append(dst, text...)
	dst = binary.BigEndian.AppendUint32(dst, uint32(flv.HeaderSize+n))
	return flv.Make(dst[at:], l.Head)
}

// ParseLink reads a tag that AppendLink made. ok is false if t is something else,
// which costs next to nothing to see. An error wraps [ErrLink]. It keeps nothing of t.
func ParseLink(t flv.Tag) (l Link, ok bool, err error) {
	if t.Kind != flv.Script {
		return Link{}, false, nil
	}
	p := t.Payload()
	if !bytes.HasPrefix(p, []byte(linkPrefix)) {
		return Link{}, false, nil
	}
	parsed, err := parseLink(p)
	if err != nil {
		return Link{}, true, fmt.Errorf("%w: %w", ErrLink, err)
	}
	return *parsed, true, nil
}

// parseLink reads a payload that begins with the name of a link. It is apart so that
// a tag that is none costs no allocation.
func parseLink(p []byte) (*Link, error) {
	if len(p) < linkHead || p[len(linkPrefix)] != amfLong {
		return nil, errors.New("no long string")
	}
	text := p[linkHead:]
	if n := binary.BigEndian.Uint32(p[len(linkPrefix)+1:]); len(text) > maxLink || uint32(len(text)) != n {
		return nil, fmt.Errorf("%d bytes of %d, at most %d are allowed", len(text), n, maxLink)
	}
	var l Link
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, err
	}
	return &l, l.check()
}

// check finds what no node of ours says. A state that is not known yet is a newer
// node's.
func (l *Link) check() error {
	switch {
	case !auth.ValidNodeID(l.Node):
		return fmt.Errorf("node %.80q has no usable id", l.Node)
	case !isWord(l.State):
		return fmt.Errorf("state %.80q", l.State)
	case len(l.Clock) > maxClock || l.Clock != "" && !auth.ValidNodeID(l.Clock[:min(len(l.Clock), auth.MaxNodeID)]):
		return fmt.Errorf("%w: clock %.80q", ErrLink, l.Clock)
	case l.Epoch < 0 || l.Epoch > auth.MaxEpoch || l.Sent < 0:
		return fmt.Errorf("epoch %d, sent %d", l.Epoch, l.Sent)
	case len(l.Path) > maxPath:
		return fmt.Errorf("a path of %d hops, at most %d are allowed", len(l.Path), maxPath)
	}
	for _, h := range l.Path {
		if !auth.ValidNodeID(h.Node) {
			return fmt.Errorf("hop %.80q has no usable id", h.Node)
		}
	}
	return nil
}

// isWord reports whether s can be the word of an enumeration.
func isWord(s string) bool {
	if s == "" || len(s) > maxWord {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && c != '_' {
			return false
		}
	}
	return true
}
