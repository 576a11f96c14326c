package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"sync"
	"time"

	"millrace/internal/session"
	"millrace/internal/stream"
)

// TicketParam is the query parameter that carries a ticket: mr=EXPIRES-HEX.
const TicketParam = "mr"

// A ticket is the signed short-lived mark of a redirect. Whoever sends a player to a
// node puts one into the URL; the node that finds it serves or refuses, and never
// redirects again, so that no player is passed around. It gives no right to play.
//
//	EXPIRES  the last valid second of Unix time, decimal
//	HEX      the first ticketSum bytes of an HMAC-SHA256 in lower case
const (
	ticketVersion = "millrace-ticket-1"
	ticketSum     = 16 // 128 bits: beyond guessing, and short in a URL
)

// MaxTicket is how many bytes a ticket has at most.
const MaxTicket = 12 + 1 + 2*ticketSum

// SignTicket returns a ticket for n that is valid for life from now. Without a key
// it is empty.
func (c *Cluster) SignTicket(now time.Time, n stream.Name, life time.Duration) string {
	return string(c.AppendTicket(nil, now, n, life))
}

// AppendTicket appends what SignTicket returns to dst. It allocates nothing.
func (c *Cluster) AppendTicket(dst []byte, now time.Time, n stream.Name, life time.Duration) []byte {
	cfg := c.cfg.Load()
	if len(cfg.Keys) == 0 {
		return dst
	}
	from := len(dst)
	dst = strconv.AppendInt(dst, now.Add(life).Unix(), 10)
	expires := dst[from:]
	m := c.tickets.get(cfg.Keys[0])
	dst = hex.AppendEncode(append(dst, '-'), ticketSumOf(m, n, expires))
	c.tickets.put(m)
	return dst
}

// CheckTicket decides whether ticket was signed for n by a node of the cluster and is
// still valid. The error is a [*Denied] with reason unsigned, bad_signature or
// expired. Without a key nothing can be told, and every ticket is good.
func (c *Cluster) CheckTicket(now time.Time, n stream.Name, ticket string) error {
	cfg := c.cfg.Load()
	if len(cfg.Keys) == 0 {
		return nil
	}
	if ticket == "" {
		return deny(session.Unsigned, "the URL carries no ticket of a redirect")
	}
	at, sum, ok := strings.Cut(ticket, "-")
	expires, isTime := parseExpires(at)
	if !ok || !isTime || len(sum) != 2*ticketSum {
		return deny(session.BadSignature, "the ticket of a redirect is not EXPIRES-HEX: ask the scheduler again")
	}
	var buf [2 * ticketSum]byte
	copy(buf[:], sum)
	good := 0
	for _, k := range cfg.Keys {
		m := c.tickets.get(k)
		m.want = hex.AppendEncode(m.want[:0], ticketSumOf(m, n, at))
		good |= subtle.ConstantTimeCompare(buf[:], m.want)
		c.tickets.put(m)
	}
	if good != 1 {
		return deny(session.BadSignature, "the ticket of a redirect is not for this stream, or the cluster keys of the nodes differ")
	}
	// After the signature, so that only its holder learns when it expired.
	if now.After(expires.Add(cfg.Skew)) {
		return deny(session.Expired,
			fmt.Sprintf("the ticket of a redirect expired at %s: ask the scheduler again", expires.UTC().Format(time.RFC3339)))
	}
	return nil
}

// ticketPool keeps keyed hashes, because preparing one costs more than using it. It
// is safe from any goroutine.
type ticketPool struct{ free sync.Pool }

// ticketMAC is a keyed hash with its buffers.
type ticketMAC struct {
	key  string
	mac  hash.Hash
	text []byte
	sum  []byte
	want []byte
}

// get returns a keyed hash for key. Those of other keys that it meets are dropped:
// there are several only while keys are rotated.
func (p *ticketPool) get(key string) *ticketMAC {
	if m, ok := p.free.Get().(*ticketMAC); ok && m.key == key {
		return m
	}
	return &ticketMAC{key: key, mac: hmac.New(sha256.New, []byte(key))}
}

func (p *ticketPool) put(m *ticketMAC) { p.free.Put(m) }

// ticketSumOf returns the sum of a ticket, valid until m is used again. Each field has
// its length before it, so that no two tickets have the same text.
func ticketSumOf[T string | []byte](m *ticketMAC, n stream.Name, expires T) []byte {
	t := append(m.text[:0], ticketVersion+"\nredirect\n"...)
	t = strconv.AppendInt(t, int64(len(n)), 10)
	t = append(t, ':')
	t = append(t, n...)
	t = append(t, '\n')
	t = strconv.AppendInt(t, int64(len(expires)), 10)
	t = append(t, ':')
	m.text = append(t, expires...)
	m.mac.Reset()
	m.mac.Write(m.text)
	m.sum = m.mac.Sum(m.sum[:0])
	return m.sum[:ticketSum]
}
