package control

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// scanner reads JSON from the front. It is for what comes a thousand times a second and
// has many rows of the same kind; where there is no hurry encoding/json does. It takes no
// null, and keys in their own case only.
//
// After the first error it stands at the end: who loops over it comes to an end.
type scanner struct {
	b     []byte
	at    int
	fresh bool // nothing of the innermost object or array has been read yet
	err   error
}

// fail notes an error at the place where s is.
func (s *scanner) fail(format string, args ...any) {
	s.stop(fmt.Errorf("byte %d: %w", s.at, fmt.Errorf(format, args...)))
}

// stop notes an error, unless there was one before.
func (s *scanner) stop(err error) {
	if s.err == nil {
		s.err, s.at = err, len(s.b)
	}
}

// peek returns the next byte that is no blank, 0 at the end and after an error.
func (s *scanner) peek() byte {
	if s.at < len(s.b) && s.b[s.at] > ' ' {
		return s.b[s.at]
	}
	return s.passBlanks()
}

// passBlanks is peek where there may be blanks.
func (s *scanner) passBlanks() byte {
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
	c, fresh := s.peek(), s.fresh
	s.fresh = false
	switch {
	case c == end:
		s.at++
		return false
	case fresh:
	case c == ',':
		s.at++
	default:
		s.fail("want %q or %q", ',', end)
	}
	return s.err == nil
}

// key returns the key of the value that follows. It is valid until the next call.
func (s *scanner) key() []byte {
	k := s.quoted()
	s.take(':')
	return k
}

// keys reads the keys of rows of one kind. Programs write all rows alike: it looks first
// for the key that came next in the rows before.
type keys struct {
	known [][]byte // with quotes and colon, in the order in which they come
	next  int      // which of them to look for
}

// maxKnown bounds the keys that are looked for: no row of ours has as many.
const maxKnown = 16

// read returns the key of the value that follows, as [scanner.key] does.
func (k *keys) read(s *scanner) []byte {
	s.peek()
	here := k.next
	for range k.known {
		if key := k.expected(s); key != nil {
			return key
		}
	}
	from := s.at
	key := s.key()
	if text := s.b[from:s.at]; s.err == nil && len(text) == len(key)+len(`"":`) && len(k.known) < maxKnown {
		k.known = slices.Insert(k.known, here, text)
		k.next = here + 1
	}
	return key
}

// expected returns the key that it looks for if that is the one that follows.
func (k *keys) expected(s *scanner) []byte {
	if k.next == len(k.known) {
		k.next = 0
	}
	text := k.known[k.next]
	k.next++
	if !bytes.HasPrefix(s.b[s.at:], text) {
		return nil
	}
	s.at += len(text)
	return text[1 : len(text)-len(`":`)]
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
	for i, c := range s.b[from:] {
		switch {
		case c == '"':
			s.at = from + i + 1
			return s.b[from : from+i]
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

// digits returns the number that the decimal digits from i on say, at most 18 of them,
// and where they end.
func (s *scanner) digits(i int) (n int64, end int) {
	for to := min(i+18, len(s.b)); i < to && '0' <= s.b[i] && s.b[i] <= '9'; i++ {
		n = n*10 + int64(s.b[i]-'0')
	}
	return n, i
}

// minus reports whether a number is below 0, and where its digits begin.
func (s *scanner) minus() (bool, int) {
	if s.peek() == '-' {
		return true, s.at + 1
	}
	return false, s.at
}

// proper reports whether the digits from from to end can be a number, or what it has
// before the point: there is one, and no 0 before others.
func (s *scanner) proper(from, end int) bool {
	return end == from+1 || end > from && s.b[from] != '0'
}

// over reports whether a number that goes as far as end goes no further.
func (s *scanner) over(end int) bool { return end >= len(s.b) || !inNumbers[s.b[end]] }

// inNumbers are the bytes that can stand in a number.
var inNumbers = [256]bool{
	'0': true, '1': true, '2': true, '3': true, '4': true, '5': true, '6': true, '7': true, '8': true, '9': true,
	'+': true, '-': true, '.': true, 'e': true, 'E': true,
}

// whole returns a whole number of at most 18 digits.
func (s *scanner) whole() int64 {
	negative, from := s.minus()
	n, end := s.digits(from)
	if !s.proper(from, end) || !s.over(end) {
		s.fail("want a whole number of at most 18 digits")
		return 0
	}
	s.at = end
	if negative {
		n = -n
	}
	return n
}

// float returns a number. Most have few digits, and are the quotient of two whole numbers
// that a float64 holds exactly: that is rounded once, as it must be.
func (s *scanner) float() float64 {
	negative, from := s.minus()
	n, end := s.digits(from)
	proper, divisor := s.proper(from, end), 1.0
	if end < len(s.b) && s.b[end] == '.' {
		point := end
		for end++; end < len(s.b) && '0' <= s.b[end] && s.b[end] <= '9'; end++ {
			n, divisor = n*10+int64(s.b[end]-'0'), divisor*10
		}
		proper = proper && end > point+1
	}
	if !proper || !s.over(end) || end-from > exactDigits {
		return s.anyFloat()
	}
	s.at = end
	f := float64(n) / divisor
	if negative {
		f = -f
	}
	return f
}

// exactDigits is how many decimal digits a float64 holds, whatever they are.
const exactDigits = 15

// anyFloat returns a number of any form.
func (s *scanner) anyFloat() float64 {
	to := s.at
	for !s.over(to) {
		to++
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
