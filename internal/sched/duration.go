package sched

import (
	"fmt"
	"time"
)

// Duration is a time.Duration that is written as "1m30s" in JSON.
type Duration time.Duration

// String returns d as text.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText returns d as text.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a duration; write for example 500ms, 5s or 1m30s", b)
	}
	*d = Duration(v)
	return nil
}
