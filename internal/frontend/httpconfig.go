package frontend

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

// HTTPConfig says how the HTTP faces answer.
type HTTPConfig struct {
	// DefaultDomain decides about requests whose Host is not one of the domains, such
	// as an address. Empty refuses them.
	DefaultDomain string
	// Origins are the web origins that may read answers: "*" for all, "null" for
	// pages without one, else scheme://host[:port]. None means none.
	Origins []string
	// TrustedProxies are the addresses, single or CIDR, whose X-Forwarded-For and
	// X-Forwarded-Proto are believed.
	TrustedProxies []string
	// ReadTimeout is how long a request may take from its first byte to its last.
	ReadTimeout time.Duration
	// IdleTimeout is how long a connection may wait for its next request.
	IdleTimeout time.Duration
	// TicketLife is how long the mark of a redirect is valid. A player follows at once;
	// one that comes back later with the same URL is placed anew.
	TicketLife time.Duration

	Resolve ResolveConfig
	Explain ExplainConfig
}

// ResolveConfig says who may ask for addresses over HTTP, and how often.
type ResolveConfig struct {
	// Secrets are those of each app by its id. With one, requests must be signed.
	// Several secrets of an app are valid side by side, so that one can be rotated out.
	Secrets map[string][]string
	// PlainUnsigned leaves /d open although there are secrets, for clients that cannot
	// sign.
	PlainUnsigned bool
	// Rate is how many questions an address (IPv6: a /64) may ask in a second, over
	// time; Burst how many at once. A batch counts as what is in it. Rate 0 does not
	// count.
	Rate  int
	Burst int
	// Unlimited are the addresses, single or CIDR, that may ask as often as they like.
	Unlimited []string
}

// ExplainConfig says who may have an answer explained at the public addresses. The
// figures of all edges are nothing for strangers: with neither, nobody may.
type ExplainConfig struct {
	// Token is what requests carry as "Authorization: Bearer TOKEN".
	Token string
	// Loopback lets requests from this machine to a loopback name through. Leave it off
	// behind a proxy on the same machine that does not say for whom it asks.
	Loopback bool
}

// DefaultHTTPConfig answers everyone, and explains to nobody.
func DefaultHTTPConfig() HTTPConfig {
	return HTTPConfig{
		Origins:     []string{"*"},
		ReadTimeout: 10 * time.Second,
		IdleTimeout: 15 * time.Second,
		TicketLife:  30 * time.Second,
		Resolve:     ResolveConfig{Rate: 50, Burst: 200},
	}
}

// Bounds of the configuration.
const (
	maxApps       = 1024
	maxSecrets    = 4  // two are needed for a rotation
	minSecret     = 16 // shorter ones can be searched offline from one URL
	maxSecret     = 256
	maxRate       = 10_000
	maxBurst      = 1_000_000
	minTicketLife = time.Second
	maxTicketLife = 10 * time.Minute
)

// Validate checks every value. Its errors name the key and the accepted range, and
// never a secret.
func (c HTTPConfig) Validate() error {
	_, err := newHTTPSettings(c)
	return err
}

// httpSettings are an HTTPConfig in the form that is quick to ask. It is immutable.
type httpSettings struct {
	cfg       HTTPConfig
	domain    string // DefaultDomain in its normal form
	allOrigin bool
	proxies   []netip.Prefix
	unlimited []netip.Prefix
}

func newHTTPSettings(c HTTPConfig) (*httpSettings, error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	prefixes := func(key string, list []string) []netip.Prefix {
		out, err := address.ParsePrefixes(list)
		if err != nil {
			bad("%s: %w", key, err)
		}
		return out
	}
	c.Origins = slices.Clone(c.Origins)
	c.Resolve.Secrets = maps.Clone(c.Resolve.Secrets)
	s := &httpSettings{
		cfg:       c,
		domain:    string(appendHost(nil, []byte(c.DefaultDomain))),
		allOrigin: slices.Contains(c.Origins, "*"),
		proxies:   prefixes("trusted_proxies", c.TrustedProxies),
		unlimited: prefixes("resolve.unlimited", c.Resolve.Unlimited),
	}
	if len(c.DefaultDomain) > maxDomain || strings.ContainsAny(c.DefaultDomain, "/:*?# ") {
		bad("default_domain: %q is not a host name such as play.example.com", c.DefaultDomain)
	}
	for _, o := range c.Origins {
		if o != "*" && o != "null" && !plausibleOrigin(o) {
			bad("origins: %q must be *, null or scheme://host[:port] without a path", o)
		}
	}
	errs = append(errs,
		setting.Within("read_timeout", c.ReadTimeout, 100*time.Millisecond, time.Minute),
		setting.Within("idle_timeout", c.IdleTimeout, 100*time.Millisecond, 10*time.Minute),
		setting.Within("ticket_life", c.TicketLife, minTicketLife, maxTicketLife))
	c.Resolve.validate(bad)
	if n := len(c.Explain.Token); n != 0 && (n < minSecret || n > maxSecret || !printable(c.Explain.Token)) {
		bad("explain.token: must be %d to %d printable ASCII characters without spaces, or empty", minSecret, maxSecret)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s, nil
}

func (c ResolveConfig) validate(bad func(format string, args ...any)) {
	if len(c.Secrets) > maxApps {
		bad("resolve.secrets: has %d apps, must have 0 to %d", len(c.Secrets), maxApps)
	}
	for _, id := range slices.Sorted(maps.Keys(c.Secrets)) {
		list := c.Secrets[id]
		if !validApp(id) {
			bad("resolve.secrets: the app id %q must be 1 to %d letters, digits, dots, underscores and hyphens", id, maxApp)
		}
		if len(list) < 1 || len(list) > maxSecrets {
			bad("resolve.secrets.%s: has %d secrets, must have 1 to %d", id, len(list), maxSecrets)
		}
		for i, s := range list {
			if len(s) < minSecret || len(s) > maxSecret {
				bad("resolve.secrets.%s: secret number %d must be %d to %d bytes", id, i+1, minSecret, maxSecret)
			}
		}
	}
	if c.Rate < 0 || c.Rate > maxRate {
		bad("resolve.rate: is %d questions per second, must be 0 to %d", c.Rate, maxRate)
	}
	if lo := maxBatch; c.Rate > 0 && (c.Burst < lo || c.Burst > maxBurst) {
		bad("resolve.burst: is %d, must be %d, the largest batch, to %d", c.Burst, lo, maxBurst)
	}
}

// maxApp is how many bytes the id of an app may have.
const maxApp = 64

func validApp(id string) bool {
	if id == "" || len(id) > maxApp {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// plausibleOrigin reports whether o looks like what a browser sends as Origin.
func plausibleOrigin(o string) bool {
	scheme, host, ok := strings.Cut(o, "://")
	return ok && scheme != "" && host != "" && !strings.ContainsAny(host, "/?#, \t\r\n")
}
