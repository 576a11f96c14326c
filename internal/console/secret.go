package console

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"golang.org/x/crypto/bcrypt"
)

// Bounds of passwords. bcrypt looks at no more than 72 bytes.
const (
	minPassword = 10
	maxPassword = 72
	hashCost    = 12 // about 0.2 s
)

// Hash returns the hash of a password, for the configuration.
func Hash(password string) (string, error) { return hashAt(password, hashCost) }

func hashAt(password string, cost int) (string, error) {
	if len(password) < minPassword || len(password) > maxPassword {
		return "", fmt.Errorf("the password has %d bytes: use %d to %d", len(password), minPassword, maxPassword)
	}
	h, err := bcrypt.GenerateFromPassword([]byte(password), cost)
	return string(h), err
}

// NewPassword makes up a password, and returns its hash as well. It is random, so that a
// fast hash keeps it as safe as a slow one.
func NewPassword() (password, hash string, err error) {
	password = strings.ToLower(rand.Text()[:20]) // 100 bits
	hash, err = hashAt(password, bcrypt.MinCost)
	return password, hash, err
}

// Matches reports whether a password is the one of a hash. It takes as long for a wrong
// one as for a right one.
func Matches(hash, password string) bool {
	// A longer one would be cut and might match. It is compared all the same, so that it
	// takes as long.
	fits := len(password) <= maxPassword
	return bcrypt.CompareHashAndPassword([]byte(hash), []byte(password[:min(len(password), maxPassword)])) == nil && fits
}

// tokenPrefix lets people and scanners of leaked secrets see what a token is.
const tokenPrefix = "millrace_"

// tokenHashPrefix says how a token was hashed. Tokens are random, so that a fast hash
// keeps them as safe as a slow one.
const tokenHashPrefix = "sha256:"

const tokenBytes = 32

// NewToken returns a new API token and its hash, for the configuration.
func NewToken() (token, hash string) {
	var b [tokenBytes]byte
	_, _ = rand.Read(b[:]) // it never fails
	token = tokenPrefix + base64.RawURLEncoding.EncodeToString(b[:])
	sum := sha256.Sum256([]byte(token))
	return token, tokenHashPrefix + hex.EncodeToString(sum[:])
}

func parseTokenHash(s string) (sum [sha256.Size]byte, ok bool) {
	digits, ok := strings.CutPrefix(s, tokenHashPrefix)
	if !ok || len(digits) != 2*len(sum) {
		return sum, false
	}
	_, err := hex.Decode(sum[:], []byte(digits))
	return sum, err == nil
}
