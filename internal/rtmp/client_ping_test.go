package rtmp

import (
	"testing"
	"time"
)

// A publisher's ping is answered, which Heard tells.
func TestClientPing(t *testing.T) {
	n := newNode(t, option{})
	c := dialClient(t, n.url("/live/a"))
	defer c.Close()
	if err := c.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		before := time.Now()
		if err := c.Ping(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a pong", func() bool { return c.Heard().After(before) })
	}
}
