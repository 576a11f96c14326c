package frontend

import (
	"strings"
	"testing"
	"time"
)

func TestDNSConfig(t *testing.T) {
	if err := DefaultDNSConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	f := func(want string, change func(*DNSConfig)) {
		t.Helper()
		c := DefaultDNSConfig()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if _, err := NewDNS(c, nil, nil); err == nil {
			t.Errorf("%s: a DNS with it can be made", want)
		}
	}
	f("workers: is -1, must be 0 to 256, 0 for one per core", func(c *DNSConfig) { c.Workers = -1 })
	f("max_udp_size: is 511, must be 512 to 4096", func(c *DNSConfig) { c.MaxUDPSize = 511 })
	f("max_udp_size: is 4097", func(c *DNSConfig) { c.MaxUDPSize = 4097 })
	f("cookie_secrets: secret number 1 must be 32 hexadecimal digits", func(c *DNSConfig) { c.CookieSecrets = []string{"x"} })
	f("rate_limit: is -1", func(c *DNSConfig) { c.RateLimit = -1 })
	f("error_limit: is 1000001", func(c *DNSConfig) { c.ErrorLimit = 1_000_001 })
	f("rate_slip: is 101", func(c *DNSConfig) { c.RateSlip = 101 })
	f("rate_table: is 0", func(c *DNSConfig) { c.RateTable = 0 })
	f(`rate_exempt: "10.0.0.0/33"`, func(c *DNSConfig) { c.RateExempt = []string{"10.0.0.0/33"} })
	f("max_connections: is 0", func(c *DNSConfig) { c.MaxConnections = 0 })
	f("max_per_address: is 0", func(c *DNSConfig) { c.MaxPerAddress = 0 })
	f("idle_timeout: is 1ms, must be 100ms to 10m", func(c *DNSConfig) { c.IdleTimeout = time.Millisecond })
	f("max_queries: is 0", func(c *DNSConfig) { c.MaxQueries = 0 })
	f("idle_timeout: is 0s", func(c *DNSConfig) { *c = DNSConfig{} }) // all at once
}

func TestSetDNSConfig(t *testing.T) {
	d := newTestDNS(t)
	c := d.settings.Load().DNSConfig
	c.MaxUDPSize = 600
	if err := d.SetConfig(c); err != nil || d.settings.Load().MaxUDPSize != 600 {
		t.Errorf("got %v", err)
	}
	c.MaxUDPSize = 1
	if err := d.SetConfig(c); err == nil || d.settings.Load().MaxUDPSize != 600 {
		t.Error("a configuration that is not valid was taken")
	}
}
