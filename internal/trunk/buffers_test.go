package trunk

import (
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// What a busy time needed for writes is given back when it is over.
func TestBuffersAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		opener, accepter := ends(t, a, b, echo)
		c := dial(t, opener)
		text := string(make([]byte, accepterWindow))
		kept := func(s *Session) int {
			s.mu.Lock()
			defer s.mu.Unlock()
			return cap(s.out)
		}
		for range 4 {
			go func() { _, _ = c.Write([]byte(text)) }()
			receive(t, c, text)
		}
		for _, s := range []*Session{opener, accepter} {
			if n := kept(s); n <= keepBuffer {
				t.Errorf("a buffer of %d bytes in a busy time", n)
			}
		}
		time.Sleep(keepTime + 2*lookEvery) // there are signs of life
		for range 2 {                      // each of the two buffers
			for _, s := range []*Session{opener, accepter} {
				if n := kept(s); n > keepBuffer {
					t.Errorf("a buffer of %d bytes afterwards", n)
				}
			}
			opener.Ping()
			time.Sleep(time.Second)
		}
	})
}
