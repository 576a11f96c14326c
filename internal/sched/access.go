package sched

import (
	"fmt"
	"slices"
	"strings"
)

// Access is how a client reaches its ISP.
type Access uint8

// The kinds of access.
const (
	AccessUnknown Access = iota
	AccessFixed
	AccessMobile
	accesses
)

var accessWords = []string{"unknown", "fixed", "mobile"}

// String returns the word of a.
func (a Access) String() string {
	if a >= accesses {
		return fmt.Sprintf("access(%d)", uint8(a))
	}
	return accessWords[a]
}

// MarshalText returns the word of a.
func (a Access) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads the word of an Access.
func (a *Access) UnmarshalText(b []byte) error {
	i := slices.Index(accessWords, string(b))
	if i < 0 {
		return fmt.Errorf("%q is not a kind of access: use %s", b, strings.Join(accessWords, ", "))
	}
	*a = Access(i)
	return nil
}
