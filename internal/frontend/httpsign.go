package frontend

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/session"
)

// The parameters of a signed request.
const (
	paramApp     = "id"
	paramExpires = "expires"
	paramSign    = "sign"
)

// signSkew is how long after its expiry a signature is still accepted.
const signSkew = 5 * time.Second

// maxPairs is how many pairs the query of a signed request may have.
const maxPairs = 256

// SignQuery returns the signature of a request for addresses, for its parameter sign:
// HMAC-SHA256 in 64 lower-case hexadecimal digits, keyed with a secret of the app, over
//
//	GET\n/v1/resolve\nPAIRS                    POST\n/v1/resolve\nPAIRS\nHEX
//
// PAIRS is the query as it stands in the URL, percent-encoding and all, but for sign:
// its pairs NAME=VALUE in the order of their bytes, joined by "&". It must have id, the
// app, and expires, the last valid second of Unix time. HEX is the SHA-256 of the body.
// HEAD is signed as GET. In a shell:
//
//	Q="domain=play.example.com&expires=$(($(date +%s)+60))&id=app"
//	echo "$Q&sign=$(printf 'GET\n/v1/resolve\n%s' "$Q" | openssl dgst -sha256 -hmac "$SECRET" -r | cut -c1-64)"
func SignQuery(secret, method, path, query string, body []byte) string {
	text, _ := appendSigned(nil, []byte(method), []byte(path), []byte(query), body)
	return string(appendHMAC(nil, secret, text))
}

// appendSigned appends what a signature covers. ok is false for too many pairs.
func appendSigned(dst, method, path, query, body []byte) (out []byte, ok bool) {
	pairs := make([][]byte, 0, 16)
	for len(query) > 0 {
		pair := query
		if i := bytes.IndexByte(query, '&'); i >= 0 {
			pair, query = query[:i], query[i+1:]
		} else {
			query = nil
		}
		if name, _, _ := nextPair(pair); len(pair) == 0 || string(name) == paramSign {
			continue
		}
		if len(pairs) == maxPairs {
			return dst, false
		}
		pairs = append(pairs, pair)
	}
	slices.SortFunc(pairs, bytes.Compare)
	post := string(method) == "POST"
	if post {
		dst = append(dst, "POST\n"...)
	} else {
		dst = append(dst, "GET\n"...)
	}
	dst = append(append(dst, path...), '\n')
	for i, p := range pairs {
		if i > 0 {
			dst = append(dst, '&')
		}
		dst = append(dst, p...)
	}
	if post {
		sum := sha256.Sum256(body)
		dst = hex.AppendEncode(append(dst, '\n'), sum[:])
	}
	return dst, true
}

func appendHMAC(dst []byte, secret string, text []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(text)
	var sum [sha256.Size]byte
	return hex.AppendEncode(dst, mac.Sum(sum[:0]))
}

// nobody is the secret of an app that there is not, so that one takes as long to refuse
// as a wrong signature. Nothing is accepted for it.
var nobody = []string{"no app has this secret"}

// checkSigned decides whether a request is signed by an app and not over. It returns
// why not, nil if so. The first of several equal parameters counts.
func (s *httpSettings) checkSigned(now time.Time, method, path, query, body []byte) *refusal {
	var app, expires, sign []byte
	for rest := query; len(rest) > 0; {
		var name, value []byte
		name, value, rest = nextPair(rest)
		switch {
		case string(name) == paramApp && app == nil:
			app = value
		case string(name) == paramExpires && expires == nil:
			expires = value
		case string(name) == paramSign && sign == nil:
			sign = value
		}
	}
	if len(app) == 0 || len(expires) == 0 || len(sign) == 0 {
		return unsigned
	}
	at, ok := parseUnix(expires)
	if !ok {
		return badExpires
	}
	secrets, known := s.cfg.Resolve.Secrets[string(app)]
	if !known {
		secrets = nobody
	}
	text, ok := appendSigned(nil, method, path, query, body)
	if !ok {
		return tooManyPairs
	}
	good := 0
	for _, secret := range secrets {
		var buf [2 * sha256.Size]byte
		good |= subtle.ConstantTimeCompare(sign, appendHMAC(buf[:0], secret, text))
	}
	if good != 1 || !known {
		return badSign
	}
	// After the signature, so that only its holder learns when it expired.
	if now.After(at.Add(signSkew)) {
		return &refusal{
			status: fasthttp.StatusForbidden, reason: refusedFor(session.Expired),
			text: "the signed request expired at " + at.UTC().Format(time.RFC3339) + ": sign a new one",
		}
	}
	return nil
}

// parseUnix reads Unix seconds: 1 to 12 digits, the first not zero.
func parseUnix(s []byte) (time.Time, bool) {
	if len(s) < 1 || len(s) > 12 || s[0] == '0' {
		return time.Time{}, false
	}
	var v int64
	for _, c := range s {
		if c < '0' || c > '9' {
			return time.Time{}, false
		}
		v = v*10 + int64(c-'0')
	}
	return time.Unix(v, 0), true
}
