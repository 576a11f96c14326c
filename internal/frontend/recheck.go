package frontend

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"millrace/internal/auth"
	"millrace/internal/sched"
	"millrace/internal/stream"
)

// RecheckConfig says how an edge looks again at who comes to it.
type RecheckConfig struct {
	// Self is the id of this edge in the plan.
	Self string
	// DefaultDomain decides about players whose Host is not one of the domains, such as
	// the address of this edge. Empty serves them here.
	DefaultDomain string
	// TicketLife is how long the mark of a redirect is valid.
	TicketLife time.Duration
	// MaxAge is how old what is known of the other edges may be for a player to be
	// sent to one of them.
	MaxAge time.Duration
}

// DefaultRecheckConfig lacks Self.
func DefaultRecheckConfig() RecheckConfig {
	return RecheckConfig{TicketLife: 30 * time.Second, MaxAge: 30 * time.Second}
}

// Validate checks every value. Its errors name the key and the accepted range.
func (c RecheckConfig) Validate() error {
	var errs []error
	if !auth.ValidNodeID(c.Self) {
		errs = append(errs, fmt.Errorf("self: %q must be the id of this edge: 1 to %d letters, digits, dots, underscores and hyphens", c.Self, auth.MaxNodeID))
	}
	if len(c.DefaultDomain) > maxDomain || strings.ContainsAny(c.DefaultDomain, "/:*?# ") {
		errs = append(errs, fmt.Errorf("default_domain: %q is not a host name such as play.example.com", c.DefaultDomain))
	}
	if c.TicketLife < minTicketLife || c.TicketLife > maxTicketLife {
		errs = append(errs, fmt.Errorf("ticket_life: is %v, must be %v to %v", c.TicketLife, minTicketLife, maxTicketLife))
	}
	if c.MaxAge < time.Second || c.MaxAge > time.Hour {
		errs = append(errs, fmt.Errorf("max_age: is %v, must be 1s to 1h", c.MaxAge))
	}
	return errors.Join(errs...)
}

// Recheck is what an edge asks when a player comes to it: is this the edge that the
// policy wants for it? It has the same policy and the same view as a scheduler, so it
// asks nobody. A player that was sent here with a ticket is never sent on, and without
// a key for tickets nobody is sent anywhere: a player follows one redirect at most.
//
// How often the answer is yes is how good the schedulers' DNS is, for each region and
// ISP. It is safe from any goroutine.
type Recheck struct {
	cfg        RecheckConfig
	domain     string // DefaultDomain in its normal form
	decider    Decider
	cluster    *auth.Cluster
	redirector *Redirector
	counts     recheckTable

	// Safe from any goroutine.
	seen atomic.Pointer[sighting]
}

// sighting is when anybody has last looked at the edges of a view other than this one.
type sighting struct {
	view *sched.View
	at   time.Time
}

// othersSeen returns when that was. An edge knows itself at any time, so that its view is
// young even if no scheduler has told it anything for hours. Where it is the only one, it
// knows all there is. It looks through the nodes once a view.
func (r *Recheck) othersSeen(v *sched.View) time.Time {
	if s := r.seen.Load(); s != nil && s.view == v {
		return s.at
	}
	s := &sighting{view: v}
	alone := true
	for i := range v.State.Nodes {
		n := &v.State.Nodes[i]
		if n.ID == r.cfg.Self {
			continue
		}
		alone = false
		for _, at := range []time.Time{n.V4.At, n.V6.At} {
			if at.After(s.at) {
				s.at = at
			}
		}
	}
	if alone {
		s.at = v.State.At
	}
	r.seen.Store(s)
	return s.at
}

// NewRecheck returns a Recheck that decides by d and signs with the key of cluster.
func NewRecheck(cfg RecheckConfig, d Decider, cluster *auth.Cluster) (*Recheck, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Recheck{
		cfg: cfg, domain: string(appendHost(nil, []byte(cfg.DefaultDomain))),
		decider: d, cluster: cluster, redirector: NewRedirector(cluster),
	}, nil
}

// CheckTicket reports whether ticket was given lately to a player of name.
func (r *Recheck) CheckTicket(now time.Time, name stream.Name, ticket string) bool {
	ok := r.cluster.CheckTicket(now, name, ticket) == nil
	o := BadTicket
	if ok {
		o = Ticketed
	}
	r.counts.add(recheckKey{way: ByTicket}, o)
	return ok
}

// Elsewhere returns where a player is better served than here: an absolute URL with a
// ticket. ok is false for one that is served here. uri is the path and the query as
// the player sent them.
func (r *Recheck) Elsewhere(now time.Time, client netip.Addr, host string, https bool, name stream.Name, uri string) (location string, ok bool) {
	e := exchanges.Get().(*exchange)
	defer e.release()
	client = plain(client)
	e.host = appendHost(e.host[:0], []byte(host))
	e.answer.Place.Region, e.answer.Place.ISP = "", ""
	o := r.judge(now, client, https, name, e)
	key := recheckKey{region: e.answer.Place.Region, isp: e.answer.Place.ISP, way: wayOf(e.host)}
	r.counts.add(key, o)
	if o != SentOn {
		return "", false
	}
	best := &e.answer.Candidates[0]
	to := Destination{Node: best.Node, Addr: addressOf(best, e.query.Families), HTTPS: e.query.HTTPS}
	e.uri = append(e.uri[:0], uri...)
	e.buf = r.redirector.Location(e.buf[:0], now, to, name, e.uri, r.cfg.TicketLife)
	return string(e.buf), true
}

// judge decides about a player. What it found of the player's place is in e.answer.
func (r *Recheck) judge(now time.Time, client netip.Addr, https bool, name stream.Name, e *exchange) RecheckOutcome {
	v := r.decider.View()
	if len(v.Plan.Domains) == 0 {
		return NoView
	}
	d, host := domainOf(v, e.host, r.domain)
	if d == nil {
		return OtherDomain
	}
	e.query = sched.Query{
		Client: prefixOf(client), Domain: host, Stream: name, Families: familyOf(client),
		HTTPS: wantsHTTPS(d, https), Want: 1, Self: r.cfg.Self,
	}
	a := &e.answer
	v.Decide(now, &e.query, a)
	switch {
	case d.Recheck <= 0:
		return Off
	case !r.cluster.Enabled():
		return NoKey
	case v.Plan.Node(r.cfg.Self) == nil:
		return NotInPlan
	case a.Place.Region == "" && a.Place.ISP == "":
		return UnknownPlace
	case now.Sub(r.othersSeen(v)) > min(r.cfg.MaxAge, time.Duration(v.Plan.Health.Fresh)):
		return StaleView
	case a.N == 0:
		return NowhereElse
	}
	best := &a.Candidates[0]
	switch {
	case best.Node.ID == r.cfg.Self:
		return Here
	case best.Reason != sched.Placed && best.Reason != sched.Pinned && best.Reason != sched.Spilled:
		return NowhereElse // the best there is seems down
	case a.SelfOK && float64(a.SelfCost)-float64(best.Cost) <= d.Recheck:
		return Near
	}
	return SentOn
}

// wayOf tells by what a player came here. No name ends in a digit (RFC 3696, 2) or has
// a colon in it.
func wayOf(host []byte) RecheckWay {
	if n := len(host); n > 0 && '0' <= host[n-1] && host[n-1] <= '9' || bytes.IndexByte(host, ':') >= 0 {
		return ByAddress
	}
	return ByName
}

// wantsHTTPS reports whether a Location of d begins with https.
func wantsHTTPS(d *sched.Domain, https bool) bool {
	return d.Scheme == "https" || https && d.Scheme != "http"
}
