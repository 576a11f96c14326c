package geo

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxCoverageBytes bounds a coverage file: a million lines of the longest usual
	// kind (an IPv6 CIDR and two names of ten letters).
	MaxCoverageBytes = 64 << 20
	// MaxCoverageEntries bounds its lines that name a CIDR. The IPv4 routes of the
	// whole Internet are about as many.
	MaxCoverageEntries = 1 << 20
	// MaxName bounds the name of a region or an ISP, in bytes.
	MaxName = 64

	maxFaults = 10 // that one error tells about
)

// Entry says that the addresses of a CIDR are in a region and at an ISP. An empty
// Region or ISP is "*" in the file: the entry leaves it open.
type Entry struct {
	Prefix netip.Prefix
	Pair
}

// Coverage is what a coverage file says. The zero Coverage says nothing. It is
// immutable and can be sent as its text: what [Coverage.MarshalText] returns parses
// to an equal Coverage.
type Coverage struct {
	entries []Entry // by family, address and length; prefixes differ
}

// ParseCoverage reads the text of a coverage file; the package comment shows one. The
// error names the lines with a fault, up to ten of them, and what to write instead.
// It does not keep b.
func ParseCoverage(b []byte) (Coverage, error) {
	if len(b) > MaxCoverageBytes {
		return Coverage{}, fmt.Errorf("coverage has %d bytes, at most %d are read: join neighbouring CIDRs", len(b), MaxCoverageBytes)
	}
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	lines := min(bytes.Count(b, []byte("\n"))+1, MaxCoverageEntries)
	p := coverageParser{names: map[string]string{}, entries: make([]numbered, 0, lines)}
	for number := 1; len(b) > 0; number++ {
		var line []byte
		line, b, _ = bytes.Cut(b, []byte("\n"))
		if err := p.line(number, line); err != nil {
			p.faults = append(p.faults, fmt.Errorf("coverage line %d: %w", number, err))
			if len(p.faults) == maxFaults {
				break
			}
		}
	}
	if len(p.faults) > 0 {
		return Coverage{}, errors.Join(p.faults...)
	}
	return p.coverage()
}

// coverageParser collects the lines of a file.
type coverageParser struct {
	entries []numbered
	names   map[string]string // each name once, whatever the number of lines
	faults  []error
}

type numbered struct {
	Entry
	line int32
}

func (p *coverageParser) line(number int, line []byte) error {
	if i := bytes.IndexByte(line, '#'); i >= 0 {
		line = line[:i]
	}
	var fields [3][]byte
	n := split(line, &fields)
	switch {
	case n == 0:
		return nil
	case n != len(fields):
		return fmt.Errorf("has %d fields, wants three: CIDR REGION ISP, with * for a region or an ISP that it leaves open", n)
	case len(p.entries) == MaxCoverageEntries:
		return fmt.Errorf("is one more than the %d CIDRs that are read: join neighbouring CIDRs", MaxCoverageEntries)
	}
	prefix, err := parsePrefix(string(fields[0]))
	if err != nil {
		return err
	}
	region, err := p.name("region", fields[1])
	if err != nil {
		return err
	}
	isp, err := p.name("ISP", fields[2])
	if err != nil {
		return err
	}
	p.entries = append(p.entries, numbered{Entry{prefix, Pair{region, isp}}, int32(number)})
	return nil
}

// split cuts a line at commas where it has any, else at blanks. It returns how many
// fields there are; those beyond the third are only counted.
func split(line []byte, fields *[3][]byte) (n int) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return 0
	}
	add := func(f []byte) {
		if n < len(fields) {
			fields[n] = bytes.TrimSpace(f)
		}
		n++
	}
	if bytes.IndexByte(line, ',') >= 0 {
		for f := range bytes.SplitSeq(line, []byte(",")) {
			add(f)
		}
		return n
	}
	for f := range bytes.FieldsSeq(line) {
		add(f)
	}
	return n
}

func parsePrefix(s string) (netip.Prefix, error) {
	var p netip.Prefix
	if strings.Contains(s, "/") {
		p, _ = netip.ParsePrefix(s)
	} else if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		p = netip.PrefixFrom(a, a.BitLen())
	}
	switch {
	case !p.IsValid():
		return p, fmt.Errorf("%q is not a CIDR such as 1.2.3.0/24 or 2001:db8::/32", clip(s))
	case p.Addr().Is4In6():
		return p, fmt.Errorf("%s is an IPv4 address in IPv6 form: write the IPv4 CIDR", p)
	case p != p.Masked():
		return p, fmt.Errorf("%s has bits set behind its length: write %s, or %s/%d for the one address",
			p, p.Masked(), p.Addr(), p.Addr().BitLen())
	}
	return p, nil
}

// name checks a region or an ISP and returns it, the same string for equal names. It
// is empty for "*".
func (p *coverageParser) name(what string, b []byte) (string, error) {
	if len(b) == 1 && b[0] == '*' {
		return "", nil
	}
	if s, ok := p.names[string(b)]; ok {
		return s, nil
	}
	s := string(b)
	if err := checkName(what, s); err != nil {
		return "", err
	}
	p.names[s] = s
	return s, nil
}

func checkName(what, s string) error {
	switch {
	case s == "":
		return fmt.Errorf("the %s is missing: write * to leave it open", what)
	case len(s) > MaxName:
		return fmt.Errorf("%s %q is longer than %d bytes", what, clip(s), MaxName)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("%s %q has bytes that cannot be shown: write it in UTF-8 without blanks", what, clip(s))
	case strings.ContainsAny(s, " ,#*"):
		return fmt.Errorf("%s %q has a blank, comma, # or * in it: write for example %q",
			what, clip(s), strings.Trim(strings.NewReplacer(" ", "-", ",", "", "#", "", "*", "").Replace(clip(s)), "-"))
	}
	return nil
}

// clip shortens what an error quotes.
func clip(s string) string {
	if len(s) > MaxName {
		return s[:MaxName] + "..."
	}
	return s
}

// coverage sorts the entries and refuses those that contradict each other.
func (p *coverageParser) coverage() (Coverage, error) {
	slices.SortFunc(p.entries, func(a, b numbered) int {
		return cmp.Or(a.Prefix.Compare(b.Prefix), cmp.Compare(a.line, b.line))
	})
	out := make([]Entry, 0, len(p.entries))
	var before numbered
	for _, e := range p.entries {
		if e.Prefix != before.Prefix {
			out = append(out, e.Entry)
			before = e
			continue
		}
		if e.Pair != before.Pair {
			p.faults = append(p.faults, fmt.Errorf("coverage lines %d and %d give %s to %s and to %s: keep one of them",
				before.line, e.line, e.Prefix, before.text(), e.text()))
			if len(p.faults) == maxFaults {
				break
			}
		}
	}
	if len(p.faults) > 0 {
		return Coverage{}, errors.Join(p.faults...)
	}
	return Coverage{out}, nil
}

// text is how the coverage file writes p.
func (p Pair) text() string { return orStar(p.Region) + " " + orStar(p.ISP) }

func orStar(s string) string {
	if s == "" {
		return "*"
	}
	return s
}

// Len is how many CIDRs c names.
func (c Coverage) Len() int { return len(c.entries) }

// Entries returns what c says, by family, address and length of the prefix. The
// caller must not change it.
func (c Coverage) Entries() []Entry { return c.entries }

// AppendText appends the text of c: one line for each CIDR, in order.
func (c Coverage) AppendText(b []byte) ([]byte, error) {
	for _, e := range c.entries {
		b = e.Prefix.AppendTo(b)
		b = append(b, ' ')
		b = append(b, orStar(e.Region)...)
		b = append(b, ' ')
		b = append(b, orStar(e.ISP)...)
		b = append(b, '\n')
	}
	return b, nil
}

// MarshalText returns the text of c.
func (c Coverage) MarshalText() ([]byte, error) { return c.AppendText(nil) }

// UnmarshalText is [ParseCoverage]; c is only changed without an error.
func (c *Coverage) UnmarshalText(b []byte) error {
	parsed, err := ParseCoverage(b)
	if err == nil {
		*c = parsed
	}
	return err
}
