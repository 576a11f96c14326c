package console

import "fmt"

// Reason says why a request was refused. Its word is the same in answers, logs,
// metrics and tests.
type Reason uint8

// The reasons.
const (
	NotRefused    Reason = iota
	BadRequest           // it makes no sense
	NoSession            // nobody is logged in
	WrongPassword        // or no such user: the answer does not say which
	WrongToken           // no such API token
	Expired              // the session was not used for too long, or is too old
	LoggedOut            // the session was ended
	TooMany              // log-ins or listeners
	Forged               // it may come from a page of another site
	ReadOnly             // the role may look and not change
	NoUsers              // nobody can log in: the configuration names no user
	NotFound             // no such path, node, link, stream, document or version
	WrongMethod          // the path takes another one
	TooBig               // the body
	Invalid              // what the body says has faults, which the sentence names
	Conflict             // somebody else edited the document meanwhile
	Unavailable          // the store cannot be reached, or nothing is known yet
	Closing              // the router shuts down
	Failed               // a fault of the router: its log has it
	reasons
)

var reasonWords = [reasons]string{
	"not_refused", "bad_request", "no_session", "wrong_password", "wrong_token", "expired", "logged_out", "too_many", "forged",
	"read_only", "no_users", "not_found", "wrong_method", "too_big", "invalid", "conflict", "unavailable", "closing", "failed",
}

// statuses are those of answers.
var statuses = [reasons]int{
	BadRequest: 400, NoSession: 401, WrongPassword: 401, WrongToken: 401, Expired: 401, LoggedOut: 401, TooMany: 429,
	Forged: 403, ReadOnly: 403, NoUsers: 403, NotFound: 404, WrongMethod: 405, TooBig: 413, Invalid: 422, Conflict: 409,
	Unavailable: 503, Closing: 503, Failed: 500,
}

// String returns the word of r.
func (r Reason) String() string {
	if r >= reasons {
		return fmt.Sprintf("reason(%d)", uint8(r))
	}
	return reasonWords[r]
}

// MarshalText returns the word of r.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Reasons returns every reason, for documentation and metrics.
func Reasons() []Reason {
	out := make([]Reason, 0, reasons-1)
	for r := NotRefused + 1; r < reasons; r++ {
		out = append(out, r)
	}
	return out
}

// refusal is a request that is not granted. It is an error so that it can be returned
// like one.
type refusal struct {
	reason Reason
	text   string // a sentence that says what to do
	more   any    // of the answer's body, beside error and reason; may be nil
}

// Error returns the sentence.
func (r *refusal) Error() string { return r.text }

func refuse(r Reason, format string, args ...any) *refusal {
	return &refusal{reason: r, text: fmt.Sprintf(format, args...)}
}
