package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"millrace/internal/stream"
)

// Bounds of a query. The longest credential that is accepted is far below them.
const (
	maxQuery  = 4096
	maxParams = 64
	keySlots  = 2 // the app's and the stream key's
)

// credentials are what a query says about its sender. The strings are parts of the
// query, or copies where something was percent-encoded.
type credentials struct {
	key     [keySlots]string
	nkeys   int
	expires string
	sign    string
}

func (c *credentials) keys() []string { return c.key[:c.nkeys] }

func (c *credentials) signed() bool { return c.expires != "" && c.sign != "" }

// parseCredentials reads a raw query. ok is false if it is over a bound or
// percent-encoded wrongly where it matters. A plus sign means itself: keys are
// pasted by hand, and no form is sent here. The first of several equal names counts,
// but of "key" the first two.
func parseCredentials(query string) (c credentials, ok bool) {
	if len(query) > maxQuery {
		return c, false
	}
	for n := 0; query != ""; n++ {
		if n == maxParams {
			return c, false
		}
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		name, value, _ := strings.Cut(pair, "=")
		if name != "key" && name != "expires" && name != "sign" || value == "" {
			continue
		}
		if value, ok = unescape(value); !ok {
			return c, false
		}
		switch {
		case name == "key" && c.nkeys < keySlots:
			c.key[c.nkeys] = value
			c.nkeys++
		case name == "expires" && c.expires == "":
			c.expires = value
		case name == "sign" && c.sign == "":
			c.sign = value
		}
	}
	return c, true
}

// unescape undoes percent-encoding (RFC 3986, 2.1).
func unescape(s string) (string, bool) {
	if strings.IndexByte(s, '%') < 0 {
		return s, true
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			out = append(out, s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", false
		}
		b, err := hex.DecodeString(s[i+1 : i+3])
		if err != nil {
			return "", false
		}
		out = append(out, b[0])
		i += 2
	}
	return string(out), true
}

// staticKey is a publish key as it is kept: by its hash, and with the owner that
// whoever shows it becomes.
type staticKey struct {
	sum   [sha256.Size]byte
	owner string
}

func newStaticKey(key string) staticKey {
	k := staticKey{sum: sha256.Sum256([]byte(key))}
	// From the key itself, not its place in the list: a reload that drops or reorders
	// keys must not hand one publisher's stream to another.
	owner := sha256.Sum256(append([]byte("owner:"), k.sum[:]...))
	k.owner = "key:" + hex.EncodeToString(owner[:8])
	return k
}

// matchKey returns the owner behind the first of given that is a key of app or of
// every app. It takes the same time whichever matches.
func (p *policy) matchKey(app string, given []string) (owner string, ok bool) {
	for _, g := range given {
		sum := sha256.Sum256([]byte(g))
		for _, list := range [2][]staticKey{p.keys[app], p.keys["*"]} {
			for i := range list {
				if subtle.ConstantTimeCompare(sum[:], list[i].sum[:]) == 1 && !ok {
					owner, ok = list[i].owner, true
				}
			}
		}
	}
	return owner, ok
}

// SignPublish returns the query of a signed publish key for n, valid until expires.
func SignPublish(secret string, n stream.Name, expires time.Time) string {
	return signQuery(secret, "publish", n, expires)
}

// SignPlay returns the query of a signed play URL for n, valid until expires.
func SignPlay(secret string, n stream.Name, expires time.Time) string {
	return signQuery(secret, "play", n, expires)
}

func signQuery(secret, action string, n stream.Name, expires time.Time) string {
	e := strconv.FormatInt(expires.Unix(), 10)
	sign := signature(nil, secret, action, n, e)
	return "expires=" + e + "&sign=" + string(sign)
}

// signature appends the hexadecimal HMAC-SHA256 of "action:app/name:expires" to dst.
// expires comes last and is all digits, so that no two requests share a message.
func signature(dst []byte, secret, action string, n stream.Name, expires string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	var buf [320]byte // a name of 255 bytes fits
	msg := append(buf[:0], action...)
	msg = append(msg, ':')
	msg = append(msg, n...)
	msg = append(msg, ':')
	msg = append(msg, expires...)
	mac.Write(msg)
	return hex.AppendEncode(dst, mac.Sum(nil))
}

// verify reports whether sign is the signature by one of secrets. It tries all.
func verify(secrets []string, action string, n stream.Name, expires, sign string) bool {
	good := 0
	for _, s := range secrets {
		var buf [2 * sha256.Size]byte
		good |= subtle.ConstantTimeCompare([]byte(sign), signature(buf[:0], s, action, n, expires))
	}
	return good == 1
}

// parseExpires reads Unix seconds: 1 to 12 digits, the first not zero. Twelve
// digits reach the year 33658, so that sums with durations stay in range.
func parseExpires(s string) (time.Time, bool) {
	if len(s) < 1 || len(s) > 12 || s[0] == '0' {
		return time.Time{}, false
	}
	var v int64
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return time.Time{}, false
		}
		v = v*10 + int64(s[i]-'0')
	}
	return time.Unix(v, 0), true
}
