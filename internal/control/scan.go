package control

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// scanner reads JSON from the front. It is for what comes a thousand times a second and
// has many rows of the same kind; where there is no hurry encoding/json does. It takes no
// null, and keys in their own case only.
//
// After the first error it stands still: who loops over it comes to an end.
type scanner struct {
	b     []byte
	at    int
	fresh bool // nothing of the innermost object or array has been read yet
	err   error
}

// fail notes an error at the place where s is.
func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("byte %d: %w", s.at, fmt.Errorf(format, args...))
	}
}

// peek returns the next byte that is no blank, 0 at the end and after an error.
func (s *scanner) peek() byte {
	if s.err != nil {
		return 0
	}
	for ; s.at < len(s.b); s.at++ {
		switch c := s.b[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// enter begins an object or an array. What is in it is read while [scanner.more].
//
//	for s.enter('['); s.more(']'); {
//		read one value
//	}
func (s *scanner) enter(c byte) { s.take(c); s.fresh = true }

func (s *scanner) take(c byte) {
	if s.peek() != c {
		s.fail("want %q", c)
		return
	}
	s.at++
}

// more reports whether another value follows in what ends with end, and passes over the
// comma before it, or over end.
func (s *scanner) more(end byte) bool {
	c := s.peek()
	switch {
	case s.err != nil:
		return false
	case c == end:
		s.at++
		s.fresh = false
		return false
	case !s.fresh:
		s.take(',')
	}
	s.fresh = false
	return s.err == nil
}

// key returns the key of the value that follows. It is valid until the next call.
func (s *scanner) key() []byte {
	k := s.quoted()
	s.take(':')
	return k
}

// text returns a string.
func (s *scanner) text() string { return string(s.quoted()) }

// few are strings that come again and again, such as the nodes that most streams of a
// node come from.
type few struct {
	list [8]string
	next int // which one the next new string replaces
}

// text returns a string, which is one of the few if that says the same.
func (f *few) text(s *scanner) string {
	b := s.quoted()
	for _, known := range f.list {
		if string(b) == known {
			return known
		}
	}
	text := string(b)
	f.list[f.next] = text
	f.next = (f.next + 1) % len(f.list)
	return text
}

// quoted returns what a string holds. It may share memory with what is read.
func (s *scanner) quoted() []byte {
	if s.peek() != '"' {
		s.fail("want a string")
		return nil
	}
	from := s.at + 1
	for i := from; i < len(s.b); i++ {
		switch c := s.b[i]; {
		case c == '"':
			s.at = i + 1
			return s.b[from:i]
		case c == '\\':
			return s.escaped()
		case c < ' ':
			s.fail("a control character in a string")
			return nil
		}
	}
	s.fail("a string without an end")
	return nil
}

// escaped returns what a string with escapes holds.
func (s *scanner) escaped() []byte {
	from := s.at
	s.passString()
	if s.err != nil {
		return nil
	}
	var text string
	if err := json.Unmarshal(s.b[from:s.at], &text); err != nil {
		s.fail("%w", err)
	}
	return []byte(text)
}

// passString goes behind a string.
func (s *scanner) passString() {
	for i := s.at + 1; i < len(s.b); i++ {
		switch s.b[i] {
		case '"':
			s.at = i + 1
			return
		case '\\':
			i++
		}
	}
	s.fail("a string without an end")
}

// whole returns a whole number of at most 18 digits.
func (s *scanner) whole() int64 {
	negative := s.peek() == '-'
	from := s.at
	if negative {
		from++
	}
	n, i := int64(0), from
	for ; i < len(s.b) && '0' <= s.b[i] && s.b[i] <= '9' && i-from < 18; i++ {
		n = n*10 + int64(s.b[i]-'0')
	}
	if s.err != nil {
		return 0
	}
	if i == from || i-from > 1 && s.b[from] == '0' || i < len(s.b) && bytes.IndexByte(inNumbers, s.b[i]) >= 0 {
		s.fail("want a whole number of at most 18 digits")
		return 0
	}
	s.at = i
	if negative {
		n = -n
	}
	return n
}

// inNumbers are the bytes that can stand in a number.
var inNumbers = []byte("0123456789+-.eE")

// float returns a number.
func (s *scanner) float() float64 {
	s.peek()
	to := s.at
	for to < len(s.b) && bytes.IndexByte(inNumbers, s.b[to]) >= 0 {
		to++
	}
	if s.err != nil {
		return 0
	}
	text := s.b[s.at:to]
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !isNumber(text) {
		s.fail("%.40q: want a number", text)
		return 0
	}
	s.at = to
	return f
}

// isNumber reports whether text, which strconv takes, has the form that JSON wants.
func isNumber(text []byte) bool {
	text = bytes.TrimPrefix(text, []byte("-"))
	whole, rest, point := bytes.Cut(text, []byte("."))
	if point && (len(rest) == 0 || rest[0] < '0' || rest[0] > '9') || !point && bytes.HasPrefix(whole, []byte("+")) {
		return false
	}
	if i := bytes.IndexAny(whole, "eE"); i >= 0 {
		whole = whole[:i]
	}
	return len(whole) == 1 && whole[0] != '+' || len(whole) > 1 && whole[0] != '0' && whole[0] != '+'
}

// truth returns a boolean.
func (s *scanner) truth() bool {
	s.peek()
	switch rest := s.b[s.at:]; {
	case s.err != nil:
	case bytes.HasPrefix(rest, []byte("true")):
		s.at += len("true")
		return true
	case bytes.HasPrefix(rest, []byte("false")):
		s.at += len("false")
	default:
		s.fail("want true or false")
	}
	return false
}

// skip goes behind a value and returns its text, which is JSON if what is read is.
func (s *scanner) skip() []byte {
	c := s.peek()
	from, depth := s.at, 0
	for s.err == nil {
		switch c {
		case '"':
			s.passString()
		case '{', '[':
			depth++
			s.at++
		case '}', ']', ',', ':':
			if depth == 0 {
				s.fail("want a value")
				return nil
			}
			if c == '}' || c == ']' {
				depth--
			}
			s.at++
		case 0:
			s.fail("the text breaks off")
			return nil
		default:
			s.passWord()
		}
		if depth == 0 {
			break
		}
		c = s.peek()
	}
	if s.err != nil {
		return nil
	}
	return s.b[from:s.at]
}

// passWord goes behind a number or a literal.
func (s *scanner) passWord() {
	for s.at++; s.at < len(s.b); s.at++ {
		if bytes.IndexByte([]byte(" \t\r\n,:{}[]\""), s.b[s.at]) >= 0 {
			return
		}
	}
}

// end wants nothing more than blanks.
func (s *scanner) end() {
	if s.peek(); s.err == nil && s.at < len(s.b) {
		s.fail("more follows the value: send one")
	}
}
