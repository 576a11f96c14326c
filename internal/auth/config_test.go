package auth

import (
	"strings"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Fatalf("the default configuration: %v", err)
	}
	// want is a part of the message; empty means valid.
	f := func(name string, change func(*Config), want string) {
		t.Helper()
		cfg := DefaultConfig()
		change(&cfg)
		err := cfg.Validate()
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v, want no error", name, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: error %v, want one with %q", name, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: error %q repeats a secret", name, err)
		}
	}
	keys := func(app string, list ...string) func(*Config) {
		return func(c *Config) { c.PublishKeys = map[string][]string{app: list} }
	}
	f("keys", keys("live", "hush-hush"), "")
	f("keys of all apps", keys("*", "hush-hush"), "")
	f("app without keys", keys("live"), "publish_keys.live: has 0 keys, must have 1 to 256")
	f("too many keys", keys("live", make([]string, 257)...), "publish_keys.live: has 257 keys, must have 1 to 256")
	f("short key", keys("live", "hush-hush", "hush"), "publish_keys.live: key number 2 must be 6 to 256 printable")
	f("long key", keys("live", strings.Repeat("hush", 65)), "publish_keys.live: key number 1 must be")
	for _, c := range []string{" ", "&", "#", "%", "?", "\n", "é", "\x7f"} {
		f("key with "+c, keys("live", "hush"+c+"hush"), "without space, & # % or ?")
	}
	f("app with a slash", keys("live/room", "hush-hush"), `app "live/room" must be the first part`)
	f("empty app", keys("", "hush-hush"), `app "" must be`)

	f("secrets", func(c *Config) { c.PublishSecrets = []string{secretA, secretB} }, "")
	f("short secret", func(c *Config) { c.PublishSecrets = []string{"hush"} }, "publish_secrets: secret number 1 must be 16 to 256 bytes")
	f("empty secret", func(c *Config) { c.PlaySecrets = []string{secretA, ""} }, "play_secrets: secret number 2 must be")
	f("many secrets", func(c *Config) { c.PlaySecrets = make([]string, 5) }, "play_secrets: has 5 secrets, must have 0 to 4")

	f("negative grace", func(c *Config) { c.EndGrace = -1 }, "end_grace: is -1ns, must be 0s to 24h0m0s")
	f("long skew", func(c *Config) { c.ClockSkew = 2 * time.Hour }, "clock_skew: is 2h0m0s, must be 0s to 1h0m0s")

	f("addresses", func(c *Config) {
		c.AllowPublish = []string{"10.0.0.0/8", "10.1.2.3", "::1", "2001:db8::/32", "::ffff:10.0.0.0/104", " 10.0.0.1 "}
	}, "")
	f("bad address", func(c *Config) { c.AllowPublish = []string{"10.0.0"} }, `allow_publish: "10.0.0" is not an address or a CIDR`)
	f("bad prefix", func(c *Config) { c.DenyPublish = []string{"10.0.0.0/33"} }, "deny_publish: ")
	f("host name", func(c *Config) { c.AllowPlay = []string{"localhost"} }, "allow_play: ")
	f("empty", func(c *Config) { c.DenyPlay = []string{""} }, "deny_play: ")
	f("many addresses", func(c *Config) { c.DenyPlay = make([]string, 4097) }, "deny_play: has 4097 entries, must have 0 to 4096")

	referers := func(list ...string) func(*Config) { return func(c *Config) { c.PlayReferers = list } }
	f("referers", referers("example.com", "*.example.com", "localhost", "192.0.2.1", "2001:db8::1"), "")
	for _, s := range []string{"", "*", "*.", "https://example.com", "example.com:80", "a.*.example.com", "example.com/x", ".example.com", "*..com"} {
		f("referer "+s, referers(s), "play_referers: ")
	}
	f("many referers", referers(make([]string, 1025)...), "play_referers: has 1025 entries, must have 0 to 1024")

	f("storm off", func(c *Config) { c.Storm.FirstDelay = 0 }, "")
	f("storm free", func(c *Config) { c.Storm.Free = -1 }, "storm.free: is -1, must be 0 to 1000")
	f("storm first", func(c *Config) { c.Storm.FirstDelay = time.Minute }, "storm.first_delay: is 1m0s, must be 0s to 10s")
	f("storm max", func(c *Config) { c.Storm.MaxDelay = time.Millisecond }, "storm.max_delay: is 1ms, must be 250ms to 30s")
	f("storm calm", func(c *Config) { c.Storm.Calm = 0 }, "storm.calm: is 0s, must be 1s to 1h0m0s")
	f("storm held", func(c *Config) { c.Storm.Held = 0 }, "storm.held: is 0, must be 1 to 64")
	f("storm addresses", func(c *Config) { c.Storm.Addresses = 0 }, "storm.addresses: is 0, must be 1 to 1000000")

	f("several faults", func(c *Config) { c.EndGrace, c.ClockSkew = -1, -1 }, "\nclock_skew: ")
}
