package httpflv

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"millrace/internal/auth"
	"millrace/internal/session"
	"millrace/internal/stream"
)

// The header fields of requests between nodes, and of the answers to them.
const (
	viaField       = "Via"                // RFC 9110, 7.6.3: the nodes passed, each with the comment below
	viaComment     = "(millrace)"         // tells our nodes from the proxies between them
	purposeField   = "Millrace-Purpose"   // the word of an auth.Purpose
	signatureField = "Millrace-Signature" // what auth.Cluster.Sign returns
	resumeField    = "Millrace-Resume"    // milliseconds: Marks.Back
	pathField      = "Millrace-Path"      // ids of nodes, the nearest first
)

// Bounds of what another node may say.
const (
	// maxVia is beyond what auth.MaxHops allows, so that a path that is too long is
	// refused with that reason, and far below what fits into a header.
	maxVia = 32
	// maxBack is more than any log holds.
	maxBack = 10 * time.Minute
)

// Marks are what a node adds to its request for a stream. There is no push among
// them: that goes over RTMP.
type Marks struct {
	Mark      auth.Mark
	Signature string // none where the cluster has no key
	// Back asks to begin at a start point that is at least so far behind the newest
	// tag, if there is one: who was cut off wants what it has missed.
	Back time.Duration
}

// AppendMarks appends the header lines of m, each with its end. The ids in m must be
// valid.
func AppendMarks(dst []byte, m Marks) []byte {
	for i, node := range m.Mark.Via {
		if i == 0 {
			dst = append(dst, viaField+": "...)
		} else {
			dst = append(dst, ", "...)
		}
		dst = append(dst, "1.1 "...)
		dst = append(dst, node...)
		dst = append(dst, " "+viaComment...)
	}
	if len(m.Mark.Via) > 0 {
		dst = append(dst, crlf...)
	}
	dst = append(dst, purposeField+": "+m.Mark.Purpose.String()+crlf...)
	if m.Signature != "" {
		dst = append(dst, signatureField+": "+m.Signature+crlf...)
	}
	if ms := m.Back.Milliseconds(); ms > 0 {
		dst = append(dst, resumeField+": "...)
		dst = append(strconv.AppendInt(dst, ms, 10), crlf...)
	}
	return dst
}

// ParseMarks reads what AppendMarks wrote, from a request for n. values returns the
// values of all header lines with a given name, as fasthttp's PeekAll does; nothing
// of them is kept. ok is false for a request that is no node's: a player's, behind
// proxies or not. The error is an [*auth.Denied].
func ParseMarks(n stream.Name, values func(field string) [][]byte) (m Marks, ok bool, err error) {
	purpose, err := single(values, purposeField)
	if err != nil || purpose == "" {
		return Marks{}, false, err
	}
	p, known := auth.ParsePurpose(purpose)
	if !known || p == auth.Push {
		return Marks{}, false, badMarks("%s is not the purpose of a pull", purposeField)
	}
	m.Mark = auth.Mark{Stream: n, Purpose: p}
	if m.Mark.Via, err = parseVia(values(viaField)); err != nil {
		return Marks{}, false, err
	}
	if len(m.Mark.Via) == 0 {
		return Marks{}, false, badMarks("%s does not name the node that asks", viaField)
	}
	m.Mark.Node = m.Mark.Via[len(m.Mark.Via)-1]
	if m.Signature, err = single(values, signatureField); err != nil {
		return Marks{}, false, err
	}
	back, err := single(values, resumeField)
	if err != nil {
		return Marks{}, false, err
	}
	if back != "" {
		ms, err := strconv.ParseUint(back, 10, 32)
		m.Back = time.Duration(ms) * time.Millisecond
		if err != nil || m.Back > maxBack {
			return Marks{}, false, badMarks("%s is not a number of milliseconds up to %d", resumeField, maxBack.Milliseconds())
		}
	}
	return m, true, nil
}

// badMarks refuses a request. Nothing of what the peer sent stands in the text.
func badMarks(format string, args ...any) error {
	return &auth.Denied{Reason: session.BadRequest, Text: fmt.Sprintf(format, args...)}
}

// single returns the value of a field that may stand once or not at all.
func single(values func(string) [][]byte, field string) (string, error) {
	all := values(field)
	switch len(all) {
	case 0:
		return "", nil
	case 1:
		// No other blanks: a field that seems to be there must be read as that.
		return string(bytes.Trim(all[0], " \t")), nil
	}
	return "", badMarks("%s stands there more than once", field)
}

// parseVia returns the ids of our nodes in the order in which they were passed.
func parseVia(lines [][]byte) ([]string, error) {
	var via []string
	for _, line := range lines {
		rest := string(line)
		for rest != "" {
			n := endOfEntry(rest)
			if n < 0 {
				return nil, badMarks("%s has a comment without an end", viaField)
			}
			entry := strings.TrimSuffix(rest[:n], ",")
			rest = rest[n:]
			id, ours := strings.CutSuffix(strings.TrimRight(entry, " \t"), viaComment)
			if !ours {
				continue
			}
			fields := strings.Fields(id)
			if len(fields) != 2 || !auth.ValidNodeID(fields[1]) {
				return nil, badMarks("%s has a node without a usable id: letters, digits, dots, underscores and hyphens", viaField)
			}
			if len(via) == maxVia {
				return nil, &auth.Denied{Reason: session.TooManyHops, Text: fmt.Sprintf("the request has passed over %d nodes", maxVia)}
			}
			via = append(via, fields[1])
		}
	}
	return via, nil
}

// endOfEntry returns how long the first entry of a list is, with its comma: one
// within a comment does not count (RFC 9110, 5.6.5: comments nest, and a backslash
// takes the meaning of what follows). It is -1 if a comment does not end.
func endOfEntry(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && depth > 0:
			i++
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case c == ',' && depth == 0:
			return i + 1
		}
	}
	if depth > 0 {
		return -1
	}
	return len(s)
}

// AppendPath appends an interim response (RFC 9110, 15.2) that tells a node, which
// waits for a stream, through whom it is looked for: so it learns that the node is
// alive, and finds itself in the path if it goes in a circle. The first id is that
// of the node that answers.
func AppendPath(dst []byte, path []string) []byte {
	dst = append(dst, "HTTP/1.1 102 Processing\r\n"+pathField+": "...)
	for i, node := range path {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(dst, node...)
	}
	return append(dst, crlf+crlf...)
}

// parsePath reads the field that AppendPath wrote. What is not a path is nil.
func parsePath(value string) []string {
	if value == "" {
		return nil
	}
	path := strings.SplitN(value, ",", maxVia+1)
	if len(path) > maxVia {
		return nil
	}
	for i := range path {
		path[i] = strings.TrimSpace(path[i])
		if !auth.ValidNodeID(path[i]) {
			return nil
		}
	}
	return path
}
