package sched

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Families is a set of address families.
type Families uint8

// The address families.
const (
	V4 Families = 1 << iota
	V6

	bothFamilies = V4 | V6
)

var familyWords = []string{"none", "v4", "v6", "both"}

// FamilyOf returns the family of an address; an IPv4 address in IPv6 form is IPv4.
func FamilyOf(a netip.Addr) Families {
	switch {
	case !a.IsValid():
		return 0
	case a.Is4() || a.Is4In6():
		return V4
	}
	return V6
}

// String returns the word of f.
func (f Families) String() string {
	if int(f) >= len(familyWords) {
		return fmt.Sprintf("families(%d)", uint8(f))
	}
	return familyWords[f]
}

// MarshalText returns the word of f.
func (f Families) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads the word of a set of families.
func (f *Families) UnmarshalText(b []byte) error {
	i := slices.Index(familyWords, string(b))
	if i < 0 {
		return fmt.Errorf("%q is no set of address families: use %s", b, strings.Join(familyWords, ", "))
	}
	*f = Families(i)
	return nil
}
