package control

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"millrace/internal/auth"
)

// Header fields of questions and answers, besides those of HTTP.
const (
	nodeField      = "Millrace-Node"      // the id of who asks
	nonceField     = "Millrace-Nonce"     // of the question, so that no two are the same
	signatureField = "Millrace-Signature" // of the question in one, of the answer in the other
	digestField    = "Millrace-Digest"    // SHA-256 of the body of a question, so that its signature can be checked before it is read
	reasonField    = "Millrace-Reason"    // the word of a Refusal
)

// Purposes of signed messages.
const (
	askPurpose    = "control-ask"
	tellPurpose   = "control-tell" // a question with a body
	answerPurpose = "control-answer"
)

// question is what the signature of a question covers. Method and target are there so
// that it is good for nothing else.
type question struct {
	node, nonce    string
	method, target string // target is path and query as sent
	// Of one with a body.
	encoding string
	sum      *[sha256.Size]byte // SHA-256 of the body as sent; nil: it has none
}

// fields returns what is signed, and its purpose.
func (q question) fields() (purpose string, fields []string) {
	purpose, fields = askPurpose, []string{q.node, q.nonce, q.method, q.target}
	if q.sum != nil {
		purpose, fields = tellPurpose, append(fields, q.encoding, hex.EncodeToString(q.sum[:]))
	}
	return purpose, fields
}

func (q question) sign(c *auth.Cluster, now time.Time) string {
	purpose, fields := q.fields()
	return c.SignMessage(now, purpose, fields...)
}

func (q question) verify(c *auth.Cluster, now time.Time, signature string) error {
	purpose, fields := q.fields()
	return c.VerifyMessage(now, signature, purpose, fields...)
}

// answer is what the signature of an answer covers: with the signature of its question
// and the body as it is sent, so that it can be believed before it is unpacked.
type answer struct {
	question string // its signature
	status   int
	encoding string // of the body
	etag     string
	sum      [sha256.Size]byte // SHA-256 of the body
}

func (a answer) fields() []string {
	return []string{a.question, strconv.Itoa(a.status), a.encoding, a.etag, hex.EncodeToString(a.sum[:])}
}

func (a answer) sign(c *auth.Cluster, now time.Time) string {
	return c.SignMessage(now, answerPurpose, a.fields()...)
}

func (a answer) verify(c *auth.Cluster, now time.Time, signature string) error {
	return c.VerifyMessage(now, signature, answerPurpose, a.fields()...)
}
