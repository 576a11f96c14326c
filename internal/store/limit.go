package store

import (
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of what names things, beside those of bodies.
const (
	maxName      = 256       // bytes of a key, a kind or an author's name
	maxComment   = 4096      // bytes
	maxDocuments = 1000      // operators have a handful
	maxEntries   = 100_000   // of all kinds
	maxTTL       = time.Hour // soft state is announced every few seconds
)

// checkName refuses what cannot be told apart on a screen or would break a line.
func checkName(what, name string) error {
	if len(name) > maxName {
		return fmt.Errorf("%s of %d bytes is %w: use at most %d", what, len(name), ErrTooBig, maxName)
	}
	if name == "" || !utf8.ValidString(name) {
		return fmt.Errorf("%s is %q: use one or more UTF-8 characters", what, name)
	}
	for _, r := range name {
		if !unicode.IsPrint(r) || r == ' ' {
			return fmt.Errorf("%s is %q: use no blanks or control characters", what, name)
		}
	}
	return nil
}

// isID reports whether s can be the mark of a version, as rand.Text makes them.
func isID(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'A' || c > 'Z') && (c < '2' || c > '7') {
			return false
		}
	}
	return len(s) == idLength
}

// idLength is how long the mark of a version is: 130 random bits.
const idLength = 26

func checkBody(what string, body []byte) error {
	if len(body) > MaxBody {
		return fmt.Errorf("%s of %d bytes is %w: use at most %d", what, len(body), ErrTooBig, MaxBody)
	}
	return nil
}

func checkEdit(key string, body []byte, who Author) error {
	if err := checkName("key of a document", key); err != nil {
		return err
	}
	if len(who.Name) > maxName {
		return fmt.Errorf("author's name of %d bytes is %w: use at most %d", len(who.Name), ErrTooBig, maxName)
	}
	if len(who.Comment) > maxComment {
		return fmt.Errorf("comment of %d bytes is %w: use at most %d", len(who.Comment), ErrTooBig, maxComment)
	}
	return checkBody("document "+key, body)
}

func checkEntry(e Entry) error {
	if err := checkName("kind of an entry", e.Kind); err != nil {
		return err
	}
	if err := checkName("key of an entry", e.Key); err != nil {
		return err
	}
	if e.TTL < time.Millisecond || e.TTL > maxTTL {
		return fmt.Errorf("entry %s/%s is to be kept for %v: use 1ms to %v", e.Kind, e.Key, e.TTL, maxTTL)
	}
	return checkBody("entry "+e.Kind+"/"+e.Key, e.Body)
}

func checkLease(who string, ttl time.Duration) error {
	if err := checkName("holder of the lease", who); err != nil {
		return err
	}
	if ttl < time.Millisecond || ttl > maxTTL {
		return fmt.Errorf("lease for %v: use 1ms to %v", ttl, maxTTL)
	}
	return nil
}

func checkPublish(kind string, body []byte) error {
	if err := checkName("kind of a publication", kind); err != nil {
		return err
	}
	return checkBody("publication "+kind, body)
}
