package auth

import (
	"strconv"
	"time"
)

// messageVersion begins the text of every signed message. Whoever changes what follows
// changes it too.
const messageVersion = "millrace-message-1"

// SignMessage returns the signature of what one program of the cluster says to another
// that is not about one stream, made at now: UNIX:HEX as that of a [Mark]. purpose
// keeps messages of different kinds apart; fields are all that must not be changed on
// the way, in a fixed order. Without a key it is empty.
//
// An answer is signed with the signature of its question among the fields, so that it
// answers no other one.
func (c *Cluster) SignMessage(now time.Time, purpose string, fields ...string) string {
	return c.cfg.Load().sign(now, func(at string) []byte { return appendMessage(nil, at, purpose, fields) })
}

// VerifyMessage decides whether signature is one of the same purpose and fields that
// was made lately by a program of the cluster. The error is a [*Denied] with reason
// unsigned, bad_signature or clock_skew. Without a key every signature is good, and
// none is needed.
func (c *Cluster) VerifyMessage(now time.Time, signature, purpose string, fields ...string) error {
	return c.cfg.Load().verify(now, signature, func(at string) []byte { return appendMessage(nil, at, purpose, fields) })
}

// appendMessage appends what a signature made at the Unix second at covers. Each field
// has its length before it, so that no two messages have the same text.
func appendMessage(dst []byte, at, purpose string, fields []string) []byte {
	field := func(s string) {
		dst = strconv.AppendInt(dst, int64(len(s)), 10)
		dst = append(dst, ':')
		dst = append(dst, s...)
		dst = append(dst, '\n')
	}
	dst = append(dst, messageVersion+"\n"...)
	field(at)
	field(purpose)
	for _, s := range fields {
		field(s)
	}
	return dst
}
