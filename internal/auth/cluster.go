package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"millrace/internal/session"
)

// ClusterConfig is what the nodes of a cluster share.
type ClusterConfig struct {
	// Keys sign what nodes ask of one another. The first one signs, all are
	// accepted. To rotate, add the new key behind the old one on every node, then
	// put it first on every node, then take the old one away. No keys means that
	// nothing is signed and everything is believed.
	Keys []string
	// Skew is how far the clock of another node may be from that of this one. A
	// request that was overheard can be repeated for so long.
	// Zero is the default.
	Skew time.Duration
}

// Bounds of the skew.
const (
	minSkew = time.Second
	maxSkew = 10 * time.Minute
)

// DefaultClusterConfig signs nothing.
func DefaultClusterConfig() ClusterConfig { return ClusterConfig{Skew: 30 * time.Second} }

// Validate checks every value. Its errors name the key and the accepted range, and
// never a cluster key.
func (c ClusterConfig) Validate() error {
	var errs []error
	if len(c.Keys) > maxSecrets {
		errs = append(errs, fmt.Errorf("keys: has %d keys, must have 0 to %d", len(c.Keys), maxSecrets))
	}
	for i, k := range c.Keys {
		if len(k) < minSecretLen || len(k) > maxSecretLen {
			errs = append(errs, fmt.Errorf("keys: key number %d must be %d to %d bytes", i+1, minSecretLen, maxSecretLen))
		}
	}
	if c.Skew != 0 && (c.Skew < minSkew || c.Skew > maxSkew) {
		errs = append(errs, fmt.Errorf("skew: is %v, must be %v to %v, or 0 for the default", c.Skew, minSkew, maxSkew))
	}
	return errors.Join(errs...)
}

// Cluster signs what this node asks of others and verifies what they ask. Its
// configuration can be exchanged while in use. All methods may be called from any
// goroutine.
type Cluster struct {
	// Safe from any goroutine. The configuration behind it is immutable.
	cfg     atomic.Pointer[ClusterConfig]
	tickets ticketPool
}

// NewCluster returns a Cluster for cfg.
func NewCluster(cfg ClusterConfig) (*Cluster, error) {
	c := &Cluster{}
	return c, c.Reload(cfg)
}

// Reload exchanges the configuration for requests that come from now on. If cfg is
// not valid, the old one stays.
func (c *Cluster) Reload(cfg ClusterConfig) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	if cfg.Skew == 0 {
		cfg.Skew = DefaultClusterConfig().Skew
	}
	cfg.Keys = slices.Clone(cfg.Keys)
	c.cfg.Store(&cfg)
	return nil
}

// Enabled reports whether there is a key, so that requests must be signed.
func (c *Cluster) Enabled() bool { return len(c.cfg.Load().Keys) > 0 }

// Sign returns the signature of m, made at now: Unix seconds, a colon and an
// HMAC-SHA256 in 64 lower-case hexadecimal digits. Without a key it is empty.
func (c *Cluster) Sign(now time.Time, m Mark) string {
	return c.cfg.Load().sign(now, func(at string) []byte { return m.appendText(nil, at) })
}

// Verify decides whether signature is one of m that was made lately by a node of
// the cluster. The error is a [*Denied] with reason unsigned, bad_signature or
// clock_skew. Without a key every signature is good, and none is needed.
func (c *Cluster) Verify(now time.Time, m Mark, signature string) error {
	return c.cfg.Load().verify(now, signature, func(at string) []byte { return m.appendText(nil, at) })
}

// sign signs what text returns for the Unix second of now.
func (c *ClusterConfig) sign(now time.Time, text func(at string) []byte) string {
	if len(c.Keys) == 0 {
		return ""
	}
	at := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(c.Keys[0]))
	mac.Write(text(at))
	out := append(make([]byte, 0, len(at)+1+2*sha256.Size), at...)
	return string(hex.AppendEncode(append(out, ':'), mac.Sum(nil)))
}

// verify decides whether signature is one of what text returns for the second that it
// names, and that second is near now.
func (c *ClusterConfig) verify(now time.Time, signature string, text func(at string) []byte) error {
	if len(c.Keys) == 0 {
		return nil
	}
	if signature == "" {
		return deny(session.Unsigned, "requests between nodes are signed here: set the same cluster.keys on the node that asks as on the one that refuses")
	}
	at, sum, ok := strings.Cut(signature, ":")
	made, isTime := parseExpires(at)
	if !ok || !isTime {
		return deny(session.BadSignature, "the signature is not UNIX:HEX")
	}
	signed := text(at)
	good := 0
	for _, k := range c.Keys {
		mac := hmac.New(sha256.New, []byte(k))
		mac.Write(signed)
		var buf [2 * sha256.Size]byte
		good |= subtle.ConstantTimeCompare([]byte(sum), hex.AppendEncode(buf[:0], mac.Sum(nil)))
	}
	if good != 1 {
		return deny(session.BadSignature, "the signature does not match: the cluster keys of the two nodes differ, or the request was changed on its way")
	}
	// After the signature, so that only a holder of the key learns this clock.
	if d := now.Sub(made); d.Abs() > c.Skew {
		return deny(session.ClockSkew, fmt.Sprintf(
			"the request was signed %v from the time here, at most %v are allowed: set the clocks of both nodes", d.Round(time.Second), c.Skew))
	}
	return nil
}

// deriveVersion begins what derived secrets are made of, so that no signed text is one.
const deriveVersion = "millrace-derive-1"

// Derive returns a secret of each key for one purpose, in their order: the first one is
// for making, all are for accepting. They say nothing about the keys, nor about the
// secrets of other purposes. Without a key there is none.
func (c *Cluster) Derive(purpose string) [][]byte {
	var out [][]byte
	for _, k := range c.cfg.Load().Keys {
		mac := hmac.New(sha256.New, []byte(k))
		mac.Write([]byte(deriveVersion + "\n" + purpose))
		out = append(out, mac.Sum(nil))
	}
	return out
}
