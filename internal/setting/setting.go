// Package setting is how packages check the values of their settings. It does no I/O and
// reads no clock.
package setting

import (
	"cmp"
	"fmt"
)

// Within says what is wrong with the value v of a key unless it is lo to hi.
func Within[T cmp.Ordered](key string, v, lo, hi T) error {
	if v >= lo && v <= hi {
		return nil
	}
	return fmt.Errorf("%s: is %v, must be %v to %v", key, v, lo, hi)
}
