// Package auth decides who may publish and who may play, and which nodes may ask
// one another, from configuration alone: offline, without a call to anybody.
//
// Inputs are the stream, the peer's address (behind trusted proxies already), the
// raw query and the referer. The answer is a [Grant], or a [Denied] with one
// reason, a text that tells the user what to do, and a delay that slows down a
// storm of refused attempts.
//
// # Publishing
//
// With no key and no secret configured anyone may publish; [Gate.Open] reports
// it. Otherwise a publisher shows one of two credentials in the query of its
// stream key (or of the application; the caller merges both):
//
//	key=KEY                    one of the static keys of the app, or of app "*"
//	expires=UNIX&sign=HEX      a signed key
//
// In OBS: server rtmp://host/live, stream key room?key=KEY. With ffmpeg:
// rtmp://host/live/room?key=KEY.
//
// # Signed URLs
//
// expires is the last valid second of Unix time, decimal, without sign or leading
// zeros. sign is HMAC-SHA256 in 64 lower-case hexadecimal digits, keyed with the
// secret, over "publish:" or "play:", the stream in its normal form app/name (not
// percent-encoded, no ".flv"), ":" and expires. One line of shell makes one:
//
//	E=$(($(date +%s)+3600)); echo "expires=$E&sign=$(printf %s "play:live/room:$E" | openssl dgst -sha256 -hmac "$SECRET" -r | cut -c1-64)"
//
// Several secrets are valid side by side, so that one can be rotated out. A signed
// URL carries nothing about the host and so survives a redirect to another node.
//
// # Nodes
//
// What a node asks of another carries a [Mark]: who asks, why, and by way of whom.
// A [Cluster] signs it with a key that all nodes share. [Mark.CheckPath] is what
// keeps requests from going round in circles. What is not about one stream is signed
// as a message, the answer together with its question.
//
// # Order of decisions
//
// Address lists (deny before allow), then the referer (play only), then the
// credential. A right credential is never delayed, whatever its neighbours behind
// the same address do.
//
// The package reads no clock and does no I/O. It never puts a secret, nor anything
// that a peer sent as one, into an error.
package auth

import (
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"millrace/internal/session"
	"millrace/internal/stream"
)

// Request is what is known of a peer that wants to publish or play.
type Request struct {
	Stream  stream.Name
	Peer    netip.Addr // the real client, not a trusted proxy
	Query   string     // raw, without "?"
	Referer string     // HTTP Referer or RTMP pageUrl; looked at for play only
}

// Grant says yes.
type Grant struct {
	// Owner is the identity behind the credential: equal owners may displace each
	// other's publish. It is derived from secrets and not meant for logs. Empty for play.
	Owner string
	// Expires is when the viewer must be cut off; zero means never. Set for play
	// with EndAtExpiry only.
	Expires time.Time
}

// Denied says no. It is the error of [Gate.Publish] and [Gate.Play].
type Denied struct {
	Reason session.Reason
	Text   string        // what to do about it; safe to show to the peer
	Delay  time.Duration // how long to wait before telling the peer
}

// Error returns the text for the peer.
func (d *Denied) Error() string { return d.Text }

// Gate applies one configuration, which can be exchanged while in use. All methods
// may be called from any goroutine.
type Gate struct {
	// Safe from any goroutine.
	policy atomic.Pointer[policy]

	// Guards itself.
	storm stormTable
}

// policy is a validated Config in the form that is quick to ask. It is immutable.
type policy struct {
	cfg         Config
	keys        map[string][]staticKey
	publish     addressRule
	play        addressRule
	referers    []string
	openPublish bool
}

// NewGate returns a Gate for cfg.
func NewGate(cfg Config) (*Gate, error) {
	g := &Gate{}
	g.storm.init()
	return g, g.Reload(cfg)
}

// Reload exchanges the configuration for requests that come from now on. If cfg is
// not valid, the old one stays. What is remembered of storms is kept.
func (g *Gate) Reload(cfg Config) error {
	p, err := compile(cfg)
	if err != nil {
		return err
	}
	g.policy.Store(p)
	return nil
}

// Open reports whether anyone may publish, because no key and no secret is configured.
func (g *Gate) Open() bool { return g.policy.Load().openPublish }

// Publish decides about a publisher. The error is a [*Denied].
func (g *Gate) Publish(now time.Time, r Request) (Grant, error) {
	p := g.policy.Load()
	grant, denied := p.decidePublish(now, r)
	if denied != nil {
		return Grant{}, g.storm.slow(now, r.Peer, p.cfg.Storm, denied)
	}
	return grant, nil
}

// Play decides about a viewer. The error is a [*Denied].
func (g *Gate) Play(now time.Time, r Request) (Grant, error) {
	p := g.policy.Load()
	grant, denied := p.decidePlay(now, r)
	if denied != nil {
		return Grant{}, g.storm.slow(now, r.Peer, p.cfg.Storm, denied)
	}
	return grant, nil
}

func (p *policy) decidePublish(now time.Time, r Request) (Grant, *Denied) {
	if !p.publish.allows(r.Peer) {
		return Grant{}, deny(session.Forbidden, "publishing from this address is not allowed here")
	}
	if p.openPublish {
		return Grant{Owner: "ip:" + r.Peer.Unmap().WithZone("").String()}, nil
	}
	c, ok := parseCredentials(r.Query)
	if !ok {
		return Grant{}, deny(session.Unauthorized, "the query of the stream key is too long or malformed: write NAME?key=KEY")
	}
	if owner, ok := p.matchKey(r.Stream.App(), c.keys()); ok {
		return Grant{Owner: owner}, nil
	}
	if c.signed() && len(p.cfg.PublishSecrets) > 0 {
		if _, d := p.checkSigned(now, "publish", p.cfg.PublishSecrets, r.Stream, c); d != nil {
			return Grant{}, d
		}
		// The signature names the stream, and the hub compares owners within one, so
		// that a key from a rotated secret still displaces its own ghost.
		return Grant{Owner: "signed"}, nil
	}
	if c.nkeys > 0 {
		return Grant{}, deny(session.Unauthorized, "the publish key is wrong for this app: check what follows ?key= in the stream key")
	}
	return Grant{}, deny(session.Unauthorized, "a publish key is needed: write NAME?key=KEY as the stream key")
}

func (p *policy) decidePlay(now time.Time, r Request) (Grant, *Denied) {
	if !p.play.allows(r.Peer) {
		return Grant{}, deny(session.Forbidden, "playing from this address is not allowed here")
	}
	if !p.allowsReferer(r.Referer) {
		return Grant{}, deny(session.Forbidden, "playing from this web page is not allowed here")
	}
	if len(p.cfg.PlaySecrets) == 0 {
		return Grant{}, nil
	}
	c, ok := parseCredentials(r.Query)
	if !ok {
		return Grant{}, deny(session.Unauthorized, "the query of the URL is too long or malformed: it needs expires=UNIX&sign=HEX")
	}
	if !c.signed() {
		return Grant{}, deny(session.Unauthorized, "a signed URL is needed: it ends in ?expires=UNIX&sign=HEX")
	}
	expires, d := p.checkSigned(now, "play", p.cfg.PlaySecrets, r.Stream, c)
	if d != nil {
		return Grant{}, d
	}
	if !p.cfg.EndAtExpiry {
		return Grant{}, nil
	}
	return Grant{Expires: expires.Add(p.cfg.ClockSkew + p.cfg.EndGrace)}, nil
}

// checkSigned returns the expiry of a good signature. The signature is looked at
// before the time, so that only its holder learns when it expired.
func (p *policy) checkSigned(now time.Time, action string, secrets []string, n stream.Name, c credentials) (time.Time, *Denied) {
	expires, ok := parseExpires(c.expires)
	if !ok {
		return time.Time{}, deny(session.Unauthorized, "expires is not a Unix time in seconds")
	}
	if !verify(secrets, action, n, c.expires, c.sign) {
		return time.Time{}, deny(session.Unauthorized,
			fmt.Sprintf("the signature does not match: it must sign %s:%s:EXPIRES for exactly this stream", action, n))
	}
	if now.After(expires.Add(p.cfg.ClockSkew)) {
		return time.Time{}, deny(session.Expired,
			fmt.Sprintf("the signed URL expired at %s: ask for a new one", expires.UTC().Format(time.RFC3339)))
	}
	return expires, nil
}

func deny(r session.Reason, text string) *Denied { return &Denied{Reason: r, Text: text} }
