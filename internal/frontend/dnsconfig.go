package frontend

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"millrace/internal/address"
)

// DNSConfig says how questions are answered over DNS.
type DNSConfig struct {
	// Workers is how many sockets read UDP, each with a goroutine of its own. Zero is
	// one for each core.
	Workers int
	// MaxUDPSize is how long a reply over UDP may be; longer ones are asked for again
	// over TCP. 1232 passes through any network in one piece.
	MaxUDPSize int
	// CookieSecrets make and check cookies (RFC 9018): 32 hexadecimal digits each. The
	// first one makes them, all are good. Servers at one address need the same ones. To
	// rotate, add the new one behind the old one everywhere, then put it first
	// everywhere, then take the old one away after an hour. None: this process
	// draws its own, and a new one each day.
	CookieSecrets []string
	// RateLimit is how many answers a second one network (/24, IPv6: /56) gets over UDP,
	// twice as many at once. Who sent a valid cookie, and TCP, are not counted. Many
	// clients stand behind the network of a public resolver. Zero is no limit.
	RateLimit int
	// ErrorLimit is the same for all that is no answer of a served name.
	ErrorLimit int
	// RateSlip says that of the replies over the limit every so many are sent as
	// a hint to ask over TCP, so that honest clients get through: 1 is each, 0 is none.
	RateSlip int
	// RateTable is for how many networks rates are kept; each takes 8 bytes. When it is
	// full, those that use the least of their rate are forgotten.
	RateTable int
	// RateExempt are the addresses, single or CIDR, that have no limit.
	RateExempt []string
	// MaxConnections is how many connections over TCP may be open at once, and
	// MaxPerAddress how many of them one address (IPv6: one /64) may have.
	MaxConnections int
	MaxPerAddress  int
	// IdleTimeout is how long a connection may take for its next whole query.
	IdleTimeout time.Duration
	// MaxQueries is how many queries a connection may bring.
	MaxQueries int
}

// DefaultDNSConfig returns what suits a name server that the Internet asks.
func DefaultDNSConfig() DNSConfig {
	return DNSConfig{
		MaxUDPSize:     1232, // the DNS flag day of 2020
		RateLimit:      1000,
		ErrorLimit:     100,
		RateSlip:       2,
		RateTable:      1 << 17,
		MaxConnections: 1000,
		MaxPerAddress:  50,
		IdleTimeout:    10 * time.Second,
		MaxQueries:     10_000,
	}
}

// Validate checks every value. Its errors name the key and the accepted range.
func (c DNSConfig) Validate() error {
	_, err := newDNSSettings(c)
	return err
}

// dnsSettings is a valid DNSConfig in the form that is quick to ask. It is immutable.
type dnsSettings struct {
	DNSConfig
	secrets       secrets // none: those of the process
	exempt        []netip.Prefix
	answers, errs rate
}

func newDNSSettings(c DNSConfig) (*dnsSettings, error) {
	var errs []error
	count := func(key string, n, lo, hi int, zero string) {
		if n < lo || n > hi {
			errs = append(errs, fmt.Errorf("%s: is %d, must be %d to %d%s", key, n, lo, hi, zero))
		}
	}
	s := &dnsSettings{DNSConfig: c}
	count("workers", c.Workers, 0, 256, ", 0 for one per core")
	count("max_udp_size", c.MaxUDPSize, minUDP, maxUDP, "")
	var err error
	if s.secrets, err = parseSecrets(c.CookieSecrets); err != nil {
		errs = append(errs, fmt.Errorf("cookie_secrets: %w", err))
	}
	count("rate_limit", c.RateLimit, 0, 1_000_000, ", 0 for no limit")
	count("error_limit", c.ErrorLimit, 0, 1_000_000, ", 0 for no limit")
	count("rate_slip", c.RateSlip, 0, 100, ", 0 for no hints")
	count("rate_table", c.RateTable, 1024, 1<<24, "")
	if s.exempt, err = address.ParsePrefixes(c.RateExempt); err != nil {
		errs = append(errs, fmt.Errorf("rate_exempt: %w", err))
	}
	count("max_connections", c.MaxConnections, 1, 100_000, "")
	count("max_per_address", c.MaxPerAddress, 1, 100_000, "")
	if c.IdleTimeout < 100*time.Millisecond || c.IdleTimeout > 10*time.Minute {
		errs = append(errs, fmt.Errorf("idle_timeout: is %v, must be 100ms to 10m", c.IdleTimeout))
	}
	count("max_queries", c.MaxQueries, 1, 1_000_000_000, "")
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	s.answers, s.errs = perSecond(c.RateLimit), perSecond(c.ErrorLimit)
	return s, nil
}
