package upstream

import (
	"strings"
	"testing"
)

func TestConfigIsChecked(t *testing.T) {
	f := func(change func(*Config), want string) {
		t.Helper()
		c := DefaultConfig()
		change(&c)
		err := c.Validate()
		switch {
		case want == "" && err != nil:
			t.Error(err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%v, want %s", err, want)
		}
	}
	f(func(*Config) {}, "")
	f(func(c *Config) { c.Pool = []string{"http://[::1]:8080", "https://a.example", "rtmp://b:1935/path"} }, "")
	f(func(c *Config) { c.Pool = []string{"http://a:70000"} }, `pool: "http://a:70000": must be http://HOST:PORT with a port of 1 to 65535`)
	f(func(c *Config) { c.Pool = []string{"http://a:0"} }, "with a port of 1 to 65535")
	f(func(c *Config) { c.Pool = []string{"http://:8080"} }, "must be http://HOST:PORT")
	f(func(c *Config) { c.Pool = []string{"a:8080"} }, "pool: ")
	f(func(c *Config) { c.Peers = map[string]string{"b": "http://b:65536"} }, "peers.b: ")
	f(func(c *Config) { c.Centers = []string{"http://c"} }, "centers: ")
	f(func(c *Config) { c.TrunkStreams = 0 }, "trunk_streams: is 0, must be 1 to 1024")
	f(func(c *Config) { c.TrunkStreams = 1025 }, "trunk_streams: is 1025, must be 1 to 1024")
}
