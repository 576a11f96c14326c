package httpflv

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"millrace/internal/session"
)

const (
	// refusalTime is how long the text of a refusal may take: it comes with the header
	// or is not worth the wait.
	refusalTime = 200 * time.Millisecond
	// maxRefusal is how much of it is kept.
	maxRefusal = 256
	// maxRetryAfter bounds how long a server can send us away.
	maxRetryAfter = time.Hour
)

// PullError is an answer that is not a stream.
type PullError struct {
	Status int
	// Reason is the word that a node of ours gave, which may be newer than this one;
	// of other servers the one that the status stands for, "none" for most.
	Reason string
	// Text is the first line of the answer if it is plain text.
	Text string
	// RetryAfter is how long to stay away, zero if it was not said.
	RetryAfter time.Duration
	// To is the node that has the stream instead, of one with the reason over_bound, and
	// Over since when that is over its bound, in Unix milliseconds, 0 if it is not. They
	// are empty where it was not said.
	To   string
	Over int64
}

// Error says everything in one line.
func (e *PullError) Error() string {
	s := fmt.Sprintf("refused with %d %s (%s)", e.Status, http.StatusText(e.Status), e.Reason)
	if e.Text != "" {
		s += ": " + e.Text
	}
	return s
}

// pullError reads a refusal. The connection has a deadline.
func pullError(resp *http.Response, now time.Time) *PullError {
	e := &PullError{
		Status: resp.StatusCode, Reason: resp.Header.Get(reasonField),
		RetryAfter: retryAfter(resp.Header.Get("Retry-After"), now),
	}
	e.To, e.Over = parsePassed(resp.Header.Get(passedField))
	if !isWord(e.Reason) {
		e.Reason = statusReason(e.Status).String()
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // what there is of it
		line, _, _ := strings.Cut(string(text), "\n")
		e.Text = strings.TrimSpace(strings.Map(printable, line))
	}
	return e
}

// statusReason returns what a status means that carries no reason.
func statusReason(status int) session.Reason {
	switch status {
	case http.StatusBadRequest:
		return session.BadRequest
	case http.StatusUnauthorized:
		return session.Unauthorized
	case http.StatusForbidden:
		return session.Forbidden
	case http.StatusNotFound, http.StatusGone:
		return session.NotFound
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return session.OverLimit
	case http.StatusLoopDetected:
		return session.Loop
	}
	return session.None
}

// printable keeps the characters that can stand in a log.
func printable(r rune) rune {
	if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
		return -1
	}
	return r
}

// retryAfter reads seconds or a date (RFC 9110, 10.2.3).
func retryAfter(value string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(value, 10, 32); err == nil {
		return min(time.Duration(n)*time.Second, maxRetryAfter)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
