package auth

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"millrace/internal/address"
	"millrace/internal/setting"
)

// Bounds of the configuration. The counts bound the work of one decision.
const (
	maxKeys      = 256 // per app
	maxSecrets   = 4   // two are needed for a rotation
	maxReferers  = 1024
	maxSecretLen = 256
	minKeyLen    = 6
	minSecretLen = 16 // half of the hash; shorter ones can be searched offline from one URL
)

// Config says who may publish and play. The zero lists mean: anyone.
type Config struct {
	// PublishKeys are the static keys of each app; app "*" stands for every app.
	PublishKeys map[string][]string
	// PublishSecrets sign publish keys. All are accepted, for rotation.
	PublishSecrets []string
	// PlaySecrets sign play URLs. Without one, play needs no signature.
	PlaySecrets []string
	// EndAtExpiry cuts viewers off when their signed URL expires, EndGrace later.
	// Otherwise the expiry is looked at when play begins only.
	EndAtExpiry bool
	EndGrace    time.Duration
	// ClockSkew is how long after its expiry a signature is still accepted.
	ClockSkew time.Duration
	// PlayReferers are the hosts of pages that may embed a player: example.com, or
	// *.example.com for everything below it. Empty means any page.
	PlayReferers []string
	// AllowEmptyReferer lets players through that send no referer, with PlayReferers set.
	AllowEmptyReferer bool
	// Address lists, as CIDR or single addresses. Deny wins over allow; an empty
	// allow list allows everyone.
	AllowPublish []string
	DenyPublish  []string
	AllowPlay    []string
	DenyPlay     []string
	// Storm slows down addresses that are refused again and again.
	Storm StormConfig
}

// StormConfig bounds what refused attempts from one address (IPv6: one /64) cost.
type StormConfig struct {
	// Free refusals are told at once; the next waits FirstDelay, and each further
	// one twice as long as the last, up to MaxDelay. FirstDelay 0 delays nothing.
	Free       int
	FirstDelay time.Duration
	MaxDelay   time.Duration
	// Calm is how long an address must not be refused to be forgotten.
	Calm time.Duration
	// Held is how many refusals of one address may be waiting; more are turned away
	// at once with reason refusal_storm.
	Held int
	// Addresses is how many are remembered; the longest unseen is forgotten first.
	Addresses int
}

// DefaultConfig lets anyone publish and play.
func DefaultConfig() Config {
	return Config{
		EndGrace:          10 * time.Second,
		ClockSkew:         5 * time.Second,
		AllowEmptyReferer: true,
		Storm: StormConfig{
			Free:       3,
			FirstDelay: 250 * time.Millisecond,
			MaxDelay:   4 * time.Second,
			Calm:       time.Minute,
			Held:       8,
			Addresses:  10000,
		},
	}
}

// Validate checks every value. Its errors name the key and the accepted range,
// and never a secret.
func (c Config) Validate() error {
	_, err := compile(c)
	return err
}

// compile validates c and brings it into the form that decisions use.
func compile(c Config) (*policy, error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	p := &policy{cfg: c.clone(), keys: make(map[string][]staticKey, len(c.PublishKeys))}
	keys := 0
	for _, app := range slices.Sorted(maps.Keys(c.PublishKeys)) {
		list := c.PublishKeys[app]
		if app == "" || strings.ContainsAny(app, "/?# ") {
			bad("publish_keys: app %q must be the first part of the stream name, or *", app)
		}
		if len(list) < 1 || len(list) > maxKeys {
			bad("publish_keys.%s: has %d keys, must have 1 to %d", app, len(list), maxKeys)
		}
		for i, k := range list {
			if !usableSecret(k, minKeyLen) {
				bad("publish_keys.%s: key number %d must be %d to %d printable ASCII characters, without space, & # %% or ?", app, i+1, minKeyLen, maxSecretLen)
			}
			p.keys[app] = append(p.keys[app], newStaticKey(k))
		}
		keys += len(list)
	}
	p.openPublish = keys == 0 && len(c.PublishSecrets) == 0

	secrets := func(key string, list []string) {
		if len(list) > maxSecrets {
			bad("%s: has %d secrets, must have 0 to %d", key, len(list), maxSecrets)
		}
		for i, s := range list {
			if len(s) < minSecretLen || len(s) > maxSecretLen {
				bad("%s: secret number %d must be %d to %d bytes", key, i+1, minSecretLen, maxSecretLen)
			}
		}
	}
	secrets("publish_secrets", c.PublishSecrets)
	secrets("play_secrets", c.PlaySecrets)

	errs = append(errs,
		setting.Within("end_grace", c.EndGrace, 0, 24*time.Hour),
		setting.Within("clock_skew", c.ClockSkew, 0, time.Hour))

	addresses := func(key string, list []string) []netip.Prefix {
		out, err := address.ParsePrefixes(list)
		if err != nil {
			bad("%s: %w", key, err)
		}
		return out
	}
	p.publish = addressRule{allow: addresses("allow_publish", c.AllowPublish), deny: addresses("deny_publish", c.DenyPublish)}
	p.play = addressRule{allow: addresses("allow_play", c.AllowPlay), deny: addresses("deny_play", c.DenyPlay)}

	referers, err := parseReferers(c.PlayReferers)
	if err != nil {
		bad("play_referers: %w", err)
	}
	p.referers = referers

	errs = append(errs, c.Storm.validate())
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return p, nil
}

func (s StormConfig) validate() error {
	return errors.Join(
		setting.Within("storm.free", s.Free, 0, 1000),
		setting.Within("storm.first_delay", s.FirstDelay, 0, 10*time.Second),
		setting.Within("storm.max_delay", s.MaxDelay, s.FirstDelay, 30*time.Second),
		setting.Within("storm.calm", s.Calm, time.Second, time.Hour),
		setting.Within("storm.held", s.Held, 1, 64),
		setting.Within("storm.addresses", s.Addresses, 1, 1_000_000),
	)
}

// clone copies c so that the caller's lists can change afterwards.
func (c Config) clone() Config {
	c.PublishSecrets = slices.Clone(c.PublishSecrets)
	c.PlaySecrets = slices.Clone(c.PlaySecrets)
	c.PublishKeys = nil // compiled into hashes
	return c
}

// usableSecret reports whether s can be pasted into a query as it is.
func usableSecret(s string, least int) bool {
	if len(s) < least || len(s) > maxSecretLen {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c > '~' || strings.IndexByte("&#%?", c) >= 0 {
			return false
		}
	}
	return true
}
