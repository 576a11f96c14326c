package console

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"time"
)

// sessionID names a session. It is secret: the token against forged requests is made
// of it.
type sessionID [32]byte

// ticket is what the cookie of a session says.
//
//	version 1 | id 32 | begun 8 | seen 8 | name      seconds of Unix time, big-endian
//	HMAC-SHA256 over it and the user's password hash, under a secret of the cluster
//
// No router keeps sessions. Under the keys of the cluster each takes those of the others,
// and a restart ends none, but for those of a password that a router alone made up, which it
// hashes anew. A changed password ends all of its user.
type ticket struct {
	id    sessionID
	begun time.Time
	seen  time.Time // when it was used last, to renewEvery
	name  string
}

const (
	ticketVersion = 1
	ticketHead    = 1 + len(sessionID{}) + 8 + 8
	// maxTicket bounds the cookie before it is decoded.
	maxTicket = (ticketHead+maxName+sha256.Size)*4/3 + 4
)

func newTicket(now time.Time, name string) ticket {
	now = now.Truncate(time.Second) // as the cookie says it
	t := ticket{begun: now, seen: now, name: name}
	_, _ = rand.Read(t.id[:]) // it never fails
	return t
}

// csrf returns the token that requests of the session's own pages carry. Who knows it
// does not know the id.
func (t *ticket) csrf() string {
	sum := sha256.Sum256(append([]byte("millrace console csrf\n"), t.id[:]...))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// sameCSRF compares a token in a time that says nothing about where it differs.
func (t *ticket) sameCSRF(token string) bool {
	return subtle.ConstantTimeCompare([]byte(t.csrf()), []byte(token)) == 1
}

// seal returns the cookie of t.
func (t *ticket) seal(secret, passwordHash []byte) string {
	b := make([]byte, 0, ticketHead+len(t.name)+sha256.Size)
	b = append(b, ticketVersion)
	b = append(b, t.id[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(t.begun.Unix()))
	b = binary.BigEndian.AppendUint64(b, uint64(t.seen.Unix()))
	b = append(b, t.name...)
	return base64.RawURLEncoding.EncodeToString(append(b, ticketMAC(secret, b, passwordHash)...))
}

func ticketMAC(secret, payload, passwordHash []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write(payload)
	mac.Write([]byte{0}) // no name has it
	mac.Write(passwordHash)
	return mac.Sum(nil)
}

// openTicket reads a cookie. passwordHash returns that of a user, nil if there is none.
func openTicket(cookie string, secrets [][]byte, passwordHash func(name string) []byte) (t ticket, ok bool) {
	if len(cookie) > maxTicket {
		return t, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cookie)
	if err != nil || len(b) <= ticketHead+sha256.Size || b[0] != ticketVersion {
		return t, false
	}
	payload, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	t.name = string(payload[ticketHead:])
	hash := passwordHash(t.name)
	good := 0
	for _, s := range secrets {
		good |= subtle.ConstantTimeCompare(sum, ticketMAC(s, payload, hash))
	}
	if good != 1 || hash == nil {
		return ticket{}, false
	}
	rest := payload[1+copy(t.id[:], payload[1:]):]
	t.begun = time.Unix(int64(binary.BigEndian.Uint64(rest)), 0)
	t.seen = time.Unix(int64(binary.BigEndian.Uint64(rest[8:])), 0)
	return t, true
}

// over reports whether the session has ended by time.
func (t *ticket) over(now time.Time, c *Config) bool {
	return now.Sub(t.seen) > c.Idle || now.Sub(t.begun) > c.Session
}

// stale reports whether the cookie should be written anew: seldom, so that not every
// answer carries one.
func (t *ticket) stale(now time.Time, c *Config) bool {
	return now.Sub(t.seen) > min(c.Idle/10, time.Minute)
}
