package control

import (
	"errors"
	"fmt"
)

// denial is an error with the refusal that it means.
type denial struct {
	refusal Refusal
	err     error
}

func (d *denial) Error() string { return d.err.Error() }
func (d *denial) Unwrap() error { return d.err }

func deny(r Refusal, format string, args ...any) error {
	return &denial{r, fmt.Errorf(format, args...)}
}

// refusedAs puts what is wrong before err, and r to it unless it has a refusal.
func refusedAs(r Refusal, what string, err error) error {
	if d, ok := errors.AsType[*denial](err); ok {
		r = d.refusal
	}
	return deny(r, "%s: %w", what, err)
}

// RefusalOf returns the refusal that an error of this package means, BadRequest for one
// that means none, and NotRefused for nil.
func RefusalOf(err error) Refusal {
	if err == nil {
		return NotRefused
	}
	if d, ok := errors.AsType[*denial](err); ok {
		return d.refusal
	}
	return BadRequest
}
