package console

import (
	"crypto/rand"
	"crypto/sha256"
	"slices"

	"golang.org/x/crypto/bcrypt"
)

// settings is a Config made ready. It is not changed after newSettings.
type settings struct {
	cfg    Config
	users  map[string]*User
	tokens map[[sha256.Size]byte]*Token
	// decoy is the hash that takes longest: what is tried on nobody is compared with it.
	decoy string
}

func newSettings(cfg Config) (*settings, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Users, cfg.Tokens = slices.Clone(cfg.Users), slices.Clone(cfg.Tokens)
	s := &settings{cfg: cfg, users: map[string]*User{}, tokens: map[[sha256.Size]byte]*Token{}}
	most := 0
	for i := range cfg.Users {
		u := &cfg.Users[i]
		s.users[u.Name] = u
		if cost, _ := bcrypt.Cost([]byte(u.PasswordHash)); cost > most {
			most, s.decoy = cost, u.PasswordHash
		}
	}
	for i := range cfg.Tokens {
		sum, _ := parseTokenHash(cfg.Tokens[i].Hash) // it was validated
		s.tokens[sum] = &cfg.Tokens[i]
	}
	return s, nil
}

// passwordHash returns that of a user, nil if there is none.
func (s *settings) passwordHash(name string) []byte {
	if u := s.users[name]; u != nil {
		return []byte(u.PasswordHash)
	}
	return nil
}

func newSecret() []byte {
	b := make([]byte, sha256.Size)
	_, _ = rand.Read(b) // it never fails
	return b
}

// secrets returns what cookies are signed with, first, and accepted with.
func (c *Console) secrets() [][]byte {
	if c.program.Secrets != nil {
		if s := c.program.Secrets(); len(s) > 0 {
			return s
		}
	}
	return c.own
}
