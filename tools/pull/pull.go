// Package pull plays many HTTP-FLV streams at once and checks every frame of them.
// It is the engine of flvpull, and of the tests that need viewers who look closely.
//
// A worker is one goroutine with an epoll set of its own. A viewer has no
// goroutine and no buffer: what its socket has is read into the worker's buffer,
// passes the HTTP framing and the [Parser], which looks at headers and stamps and
// skips the rest, and each tag ends in the viewer's [Checker].
//
// With [Config.Trunk] viewers are on trunks as the streams of a node are, and each has a
// goroutine instead.
//
//	socket → response (header, chunks) → Parser (tags) → Checker (faults, skips)
//	                                                   ↘ Histogram (delay, first frame)
//
// Delay is from the stamp's time of sending until the tag's last byte was read,
// for frames sent after the viewer connected, within the measuring time.
package pull

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"millrace/internal/trunk"
)

// Config says who plays what, and how.
type Config struct {
	URLs     []string      // viewer i plays URLs[i mod n]
	Numbered bool          // URL i is stream number i; otherwise a viewer takes what it gets
	Viewers  int           // how many there are
	Rate     float64       // joins a second; 0 is all at once
	Warmup   time.Duration // from the last join to the beginning of the measuring time
	Duration time.Duration // of measuring
	Slice    time.Duration // length of the pieces in [Report.Slices]; 0 for none
	Slow     float64       // share of viewers that read slowly after their first frame
	SlowRate float64       // bytes a second that they read
	Frozen   float64       // share of viewers that read nothing after their first frame
	Thaw     time.Duration // how long those stay frozen; 0 is for ever
	HTTP10   bool          // ask with HTTP/1.0
	Node     string        // ask as the node with this id does; empty for a player
	Trunk    int           // with Node: how many streams share a connection; 0 for none
	Verify   int           // how many viewers check payloads too
	Workers  int           // goroutines; 1 serves thousands of viewers
	Sources  int           // source addresses 127.0.0.1 and up; 1 for one, 0 as the system chooses
	PIDs     []int         // servers whose CPU time and memory are measured
}

// DefaultConfig returns one viewer of ten seconds.
func DefaultConfig() Config {
	return Config{Viewers: 1, Warmup: time.Second, Duration: 10 * time.Second, Verify: 1, Workers: 1}
}

// Validate reports what cannot be.
func (c Config) Validate() error {
	switch {
	case len(c.URLs) == 0:
		return errors.New("no url")
	case c.Viewers < 1:
		return errors.New("viewers must be at least 1")
	case c.Workers < 1 || c.Workers > 64:
		return errors.New("workers must be 1 to 64")
	case c.Rate < 0 || c.Warmup < 0 || c.Duration <= 0 || c.Slice < 0 || c.Thaw < 0:
		return errors.New("rate, warmup, slice and thaw must not be negative, duration above 0")
	case c.Slow < 0 || c.Frozen < 0 || c.Slow+c.Frozen > 1:
		return errors.New("slow and frozen are shares of all viewers: 0 to 1 together")
	case c.Slow > 0 && c.SlowRate <= 0:
		return errors.New("slow viewers need a rate in bytes a second")
	case c.Trunk < 0 || c.Trunk > trunk.MaxConns || c.Trunk > 0 && (c.Node == "" || c.Workers > 1 || c.Slow+c.Frozen > 0 || c.Sources > 0):
		return fmt.Errorf("trunk must be 0 to %d, and is for a node with one worker and readers that are not slow", trunk.MaxConns)
	case c.Sources < 0 || c.Sources > 250:
		return errors.New("sources must be 0 to 250")
	}
	return nil
}

// target is a URL ready to be asked for.
type target struct {
	addr    *net.TCPAddr
	request []byte
	stream  int64
}

func (c Config) targets() ([]target, error) {
	out := make([]target, len(c.URLs))
	for i, raw := range c.URLs {
		u, err := url.Parse(raw)
		if err != nil {
			return nil, err
		}
		if u.Scheme != "http" || u.Hostname() == "" {
			return nil, fmt.Errorf("url %q must be http://HOST:PORT/APP/NAME.flv", raw)
		}
		port := u.Port()
		if port == "" {
			port = "80"
		}
		addr, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(u.Hostname(), port))
		if err != nil {
			return nil, err
		}
		version := "1.1"
		if c.HTTP10 {
			version = "1.0"
		}
		marks := ""
		if c.Node != "" {
			marks = fmt.Sprintf("Via: 1.1 %s (millrace)\r\nMillrace-Purpose: pull\r\n", c.Node)
		}
		out[i] = target{addr: addr, stream: AnyStream, request: fmt.Appendf(nil,
			"GET %s HTTP/%s\r\nHost: %s\r\nUser-Agent: flvpull\r\nAccept: */*\r\n%s\r\n", u.RequestURI(), version, u.Host, marks)}
		if c.Numbered {
			out[i].stream = int64(i)
		}
	}
	return out, nil
}

// Kind is how a viewer reads.
type Kind uint8

// The kinds of viewer.
const (
	Normal Kind = iota
	Slow
	Frozen
	kinds // how many there are
)

// kind spreads the kinds evenly over the viewers.
func (c Config) kind(i int) Kind {
	x := float64(i) * 0.6180339887498949 // the golden ratio: no run of viewers is all alike
	switch x -= float64(int64(x)); {
	case x < c.Slow:
		return Slow
	case x < c.Slow+c.Frozen:
		return Frozen
	}
	return Normal
}
