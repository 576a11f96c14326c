package frontend

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"time"
)

// Cookies (RFC 7873) tell a client that gets our answers from one that only writes
// its address into queries. The server's half has the form of RFC 9018, so that
// servers of any make which share a secret agree:
//
//	version 1 | reserved 3 | time 4 | SipHash-2-4 of client cookie, version, reserved, time, address 8
const (
	clientCookieLen = 8
	serverCookieLen = 16 // of ours; those of others may have 8 to 32
	maxServerCookie = 32
	minServerCookie = 8
	cookieLen       = clientCookieLen + serverCookieLen

	cookieVersion = 1
	secretLen     = 16

	// RFC 9018, 4.3: a cookie is good for an hour, and renewed after half of it.
	// Clocks of servers may differ by five minutes.
	cookieLife  = time.Hour
	cookieFresh = time.Hour / 2
	cookieAhead = 5 * time.Minute

	// maxCookieSecrets is how many secrets there can be: the one that makes cookies, and
	// those that come or go.
	maxCookieSecrets = 8
	// secretLife is how long a secret that this process drew itself makes cookies.
	// It is known for as long again, far more than a cookie's life.
	secretLife = 24 * time.Hour
)

// secret is a key of SipHash.
type secret struct{ k0, k1 uint64 }

func newSecret(b [secretLen]byte) secret {
	return secret{binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:])}
}

// secrets make cookies, with the first one, and know them, with every one.
type secrets []secret

// parseSecrets reads secrets of 32 hexadecimal digits. Its errors show none.
func parseSecrets(list []string) (secrets, error) {
	if len(list) > maxCookieSecrets {
		return nil, fmt.Errorf("has %d secrets, must have 0 to %d", len(list), maxCookieSecrets)
	}
	var out secrets
	var errs []error
	for i, s := range list {
		var b [secretLen]byte
		if len(s) != 2*secretLen || !decodeHex(b[:], s) {
			errs = append(errs, fmt.Errorf("secret number %d must be %d hexadecimal digits, such as `openssl rand -hex %d` prints",
				i+1, 2*secretLen, secretLen))
			continue
		}
		out = append(out, newSecret(b))
	}
	return out, errors.Join(errs...)
}

func decodeHex(dst []byte, s string) bool {
	_, err := hex.Decode(dst, []byte(s))
	return err == nil
}

// cookieState is what the cookie of a query says of its client.
type cookieState uint8

const (
	cookieNone  cookieState = iota // no cookie
	cookieNew                      // only the client's half
	cookieBad                      // a server's half that is not ours, or old
	cookieValid                    // the client has had an answer from us at this address
	cookieStates
)

var cookieWords = [cookieStates]string{"none", "new", "bad", "valid"}

// String returns the word used in metrics.
func (s cookieState) String() string { return cookieWords[s] }

// wellFormedCookie reports whether an option of this length is a cookie (RFC 7873, 4).
func wellFormedCookie(length int) bool {
	return length == clientCookieLen ||
		length >= clientCookieLen+minServerCookie && length <= clientCookieLen+maxServerCookie
}

// check says what the cookie of a client is worth, and appends the server cookie
// that the client is to use from now on: the same one while it is fresh.
func (s secrets) check(now time.Time, cookie []byte, client netip.Addr, dst []byte) (cookieState, []byte) {
	mine, server := cookie[:clientCookieLen], cookie[clientCookieLen:]
	state := cookieNew
	if len(server) > 0 {
		state = cookieBad
	}
	if len(server) == serverCookieLen && server[0] == cookieVersion {
		// Times are compared in serial number arithmetic (RFC 9018, 4.3).
		age := time.Duration(int32(uint32(now.Unix())-binary.BigEndian.Uint32(server[4:8]))) * time.Second
		if age >= -cookieAhead && age <= cookieLife && s.made(mine, server, client) {
			if age >= 0 && age < cookieFresh {
				return cookieValid, append(dst, server...)
			}
			state = cookieValid
		}
	}
	var head [8]byte
	head[0] = cookieVersion
	binary.BigEndian.PutUint32(head[4:], uint32(now.Unix()))
	dst = append(dst, head[:]...)
	return state, binary.LittleEndian.AppendUint64(dst, s[0].sum(mine, head[:], client))
}

// made reports whether one of the secrets made the server cookie.
func (s secrets) made(mine, server []byte, client netip.Addr) bool {
	got := binary.LittleEndian.Uint64(server[8:])
	for _, k := range s {
		// One comparison of two registers: there is no time to learn from.
		if k.sum(mine, server[:8], client) == got {
			return true
		}
	}
	return false
}

// sum is the hash of RFC 9018, 4.4, over the client cookie, the head of the server
// cookie and the address.
func (k secret) sum(mine, head []byte, client netip.Addr) uint64 {
	h := sip{k.k0 ^ 0x736f6d6570736575, k.k1 ^ 0x646f72616e646f6d, k.k0 ^ 0x6c7967656e657261, k.k1 ^ 0x7465646279746573}
	h.word(binary.LittleEndian.Uint64(mine))
	h.word(binary.LittleEndian.Uint64(head))
	if client.Is4() {
		a := client.As4()
		return h.finish(uint64(binary.LittleEndian.Uint32(a[:])) | 20<<56) // the length is the last byte
	}
	a := client.As16()
	h.word(binary.LittleEndian.Uint64(a[:8]))
	h.word(binary.LittleEndian.Uint64(a[8:]))
	return h.finish(32 << 56)
}

// sip is the state of SipHash-2-4.
type sip struct{ v0, v1, v2, v3 uint64 }

func (s *sip) word(m uint64) {
	s.v3 ^= m
	s.round()
	s.round()
	s.v0 ^= m
}

func (s *sip) finish(last uint64) uint64 {
	s.word(last)
	s.v2 ^= 0xff
	for range 4 {
		s.round()
	}
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3
}

func (s *sip) round() {
	s.v0 += s.v1
	s.v1 = bits.RotateLeft64(s.v1, 13) ^ s.v0
	s.v0 = bits.RotateLeft64(s.v0, 32)
	s.v2 += s.v3
	s.v3 = bits.RotateLeft64(s.v3, 16) ^ s.v2
	s.v0 += s.v3
	s.v3 = bits.RotateLeft64(s.v3, 21) ^ s.v0
	s.v2 += s.v1
	s.v1 = bits.RotateLeft64(s.v1, 17) ^ s.v2
	s.v2 = bits.RotateLeft64(s.v2, 32)
}
