package console

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"golang.org/x/crypto/bcrypt"
)

// Config says who may use the console, and for how long.
type Config struct {
	Users  []User
	Tokens []Token
	// Idle ends the session of a page that is closed, and Session that of any page. An open page
	// counts as use.
	Idle    time.Duration
	Session time.Duration
	// Listeners is how many pages may follow live. Each costs its connection, a goroutine
	// and what its peer is slow to take.
	Listeners int
	// Secure is for a router behind a proxy that ends TLS: cookies are marked for TLS
	// only. On connections that are TLS here they are so always.
	Secure bool
}

// User is a person who logs in with a password.
type User struct {
	Name         string
	PasswordHash string // made by Hash, or any other program that does bcrypt
	Role         Role
}

// Token is a program that sends Authorization: Bearer TOKEN.
type Token struct {
	Name string
	Hash string // made by NewToken
	Role Role
}

// Role is what somebody may do.
type Role uint8

// The roles.
const (
	Reader   Role = iota // looks
	Operator             // changes what operators change
)

var roleWords = [...]string{"read-only", "operator"}

// String returns the word of r.
func (r Role) String() string {
	if int(r) >= len(roleWords) {
		return fmt.Sprintf("role(%d)", uint8(r))
	}
	return roleWords[r]
}

// MarshalText returns the word of r.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the word of a role.
func (r *Role) UnmarshalText(b []byte) error {
	for i, w := range roleWords {
		if w == string(b) {
			*r = Role(i)
			return nil
		}
	}
	return fmt.Errorf("role is %.40q: use read-only or operator", b)
}

// Bounds of settings.
const (
	maxUsers     = 1000 // and as many tokens
	maxName      = 64
	maxHash      = 128
	minIdle      = time.Minute
	maxSession   = 30 * 24 * time.Hour
	maxListeners = 10_000
	// maxCost bounds what one log-in may take of the machine: each step more takes
	// twice as long, and 14 is about a second.
	maxCost = 14
)

// DefaultConfig has no users.
func DefaultConfig() Config {
	return Config{Idle: 30 * time.Minute, Session: 12 * time.Hour, Listeners: 64}
}

// Validate checks every value. Its errors name the key and what to do, and never a hash.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(c.Users) > maxUsers || len(c.Tokens) > maxUsers {
		bad("users or tokens has more than %d entries", maxUsers)
	}
	seen := map[string]bool{}
	name := func(key string, i int, name string) {
		if err := checkName(name); err != nil {
			bad("%s: name of number %d: %w", key, i+1, err)
		}
		if seen[name] {
			bad("%s: the name %.64q stands there twice: names are who made an edit, so each must be one user or token", key, name)
		}
		seen[name] = true
	}
	for i, u := range c.Users {
		name("users", i, u.Name)
		cost, err := bcrypt.Cost([]byte(u.PasswordHash))
		switch {
		case len(u.PasswordHash) > maxHash || err != nil:
			bad("users: password_hash of %.64q is no bcrypt hash: make one with router hash-password", u.Name)
		case cost > maxCost:
			bad("users: password_hash of %.64q has cost %d, at most %d is taken: make one with router hash-password", u.Name, cost, maxCost)
		}
	}
	for i, t := range c.Tokens {
		name("tokens", i, t.Name)
		if _, ok := parseTokenHash(t.Hash); !ok {
			bad("tokens: hash of %.64q is not sha256: and 64 hexadecimal digits: make a token with router new-token", t.Name)
		}
	}
	if c.Idle < minIdle || c.Idle > c.Session {
		bad("idle is %v: use %v up to session, which is %v", c.Idle, minIdle, c.Session)
	}
	if c.Session > maxSession {
		bad("session is %v: use at most %v", c.Session, maxSession)
	}
	if c.Listeners < 1 || c.Listeners > maxListeners {
		bad("listeners is %d: use 1 to %d", c.Listeners, maxListeners)
	}
	return errors.Join(errs...)
}

// checkName checks a name that stands in logs and histories.
func checkName(name string) error {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }
	if name == "" || len(name) > maxName || strings.TrimSpace(name) != name || strings.ContainsFunc(name, odd) {
		return fmt.Errorf("is %.64q: use 1 to %d bytes of text without blanks around it", name, maxName)
	}
	return nil
}
