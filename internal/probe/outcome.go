package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// Outcome is how a probe ended. Its word is the same in logs, metrics, observations and
// tests.
type Outcome uint8

// The outcomes. With the first four the edge is up.
const (
	Up          Outcome = iota
	Draining            // it shuts down: no new viewers
	Full                // it has as many viewers as it may: no new ones
	NoFigures           // it is healthy but does not say how it does: keys or clocks differ, or it is no node of ours
	Refused             // nobody listens there
	Timeout             // no connection or no answer in time
	Reset               // the connection was closed in the middle
	Unreachable         // no way there, no such name, or another fault of the network
	BadTLS              // the certificate or the handshake
	BadStatus           // another status than 200
	BadAnswer           // no HTTP, too much of it, or figures that make no sense
	WrongNode           // another node answers there
	outcomes
)

var outcomeWords = [outcomes]string{
	"up", "draining", "full", "no_figures", "refused", "timeout", "reset", "unreachable", "bad_tls", "bad_status", "bad_answer", "wrong_node",
}

// String returns the word of o.
func (o Outcome) String() string {
	if o >= outcomes {
		return fmt.Sprintf("outcome(%d)", uint8(o))
	}
	return outcomeWords[o]
}

// MarshalText returns the word of o.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Outcomes returns every outcome, for documentation and metrics.
func Outcomes() []Outcome {
	out := make([]Outcome, outcomes)
	for i := range out {
		out[i] = Outcome(i)
	}
	return out
}

// Up reports whether the edge works, for the viewers that it has at least.
func (o Outcome) Up() bool { return o <= NoFigures }

// failure is an error with its outcome.
type failure struct {
	outcome Outcome
	err     error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func fail(o Outcome, format string, args ...any) error {
	return &failure{o, fmt.Errorf(format, args...)}
}

// outcomeOf returns the outcome of an error; nil is Up.
func outcomeOf(err error) Outcome {
	if err == nil {
		return Up
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f.outcome
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return BadTLS
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return BadTLS
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return BadTLS
	}
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout():
		return Timeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe), errors.Is(err, net.ErrClosed):
		return Reset
	}
	return Unreachable
}
