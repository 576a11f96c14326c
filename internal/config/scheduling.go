package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"millrace/internal/control"
	"millrace/internal/document"
	"millrace/internal/frontend"
)

// Scheduling says how an edge knows which edge suits a player, and whether it sends
// players there.
type Scheduling struct {
	// From are the schedulers or routers whose snapshot and observations the edge
	// follows. None means that it serves whoever comes.
	From []string
	// StateFile is where the last good snapshot is kept for the next start.
	StateFile string
	// Wait is how long a question for a newer snapshot may wait for one.
	Wait time.Duration
	// ReportEvery is how often it is asked what schedulers see of the edges.
	ReportEvery time.Duration
	// Recheck sends a player without a ticket to the edge that suits it better, if the
	// domain has a threshold and the gain is above it.
	Recheck bool
	// DefaultDomain decides about players who asked for no domain of the snapshot.
	DefaultDomain string
	// TicketLife is how long the mark of a redirect is valid.
	TicketLife time.Duration
	// MaxAge is how old what is known of the other edges may be.
	MaxAge time.Duration
	// Capacity is what this node can send, in bytes/s, as it tells schedulers.
	Capacity int64
}

// maxCapacity is beyond what one machine can send.
const maxCapacity = 1e12

// DefaultScheduling follows nobody.
func DefaultScheduling() Scheduling {
	follow, recheck := control.DefaultFollowerConfig(), frontend.DefaultRecheckConfig()
	return Scheduling{
		Wait: follow.Wait, ReportEvery: 3 * time.Second,
		Recheck: true, TicketLife: recheck.TicketLife, MaxAge: recheck.MaxAge,
	}
}

// Follow returns how the snapshot is followed.
func (s Scheduling) Follow() control.FollowerConfig {
	c := control.DefaultFollowerConfig()
	c.Servers, c.File, c.Wait = s.From, s.StateFile, s.Wait
	return c
}

// Reports returns how the observations are followed.
func (s Scheduling) Reports() control.PeersConfig {
	return control.PeersConfig{Servers: s.From, Every: s.ReportEvery}
}

// Judge returns how the edge of that id looks at players.
func (s Scheduling) Judge(id string) frontend.RecheckConfig {
	return frontend.RecheckConfig{Self: id, DefaultDomain: s.DefaultDomain, TicketLife: s.TicketLife, MaxAge: s.MaxAge}
}

// Validate checks every value.
func (s Scheduling) Validate() error {
	var errs []error
	// Some of their keys have other names here, and both would tell of the same URL.
	reports := s.Reports()
	reports.Servers = nil
	for _, err := range split(errors.Join(s.Follow().Validate(), reports.Validate(), s.Judge("some-edge").Validate())) {
		text := err.Error()
		for _, key := range [][2]string{{"servers", "from"}, {"every", "report_every"}} {
			if rest, ok := strings.CutPrefix(text, key[0]); ok {
				text = key[1] + rest
			}
		}
		errs = append(errs, errors.New(text))
	}
	if s.Capacity < 0 || s.Capacity > maxCapacity {
		errs = append(errs, fmt.Errorf("capacity is %s: use the bytes that the node can send in a second, such as 1250MB, at most %s, or 0 when that is not known",
			document.FormatSize(s.Capacity), document.FormatSize(maxCapacity)))
	}
	return errors.Join(errs...)
}

// relations checks what the section needs of others. Its errors name whole keys.
func (s Scheduling) relations(n Node) (errs []error) {
	if len(s.From) == 0 {
		return nil
	}
	if n.Role != Edge {
		errs = append(errs, fmt.Errorf("scheduling.from is for edges, and this is a %v: leave it empty", n.Role))
	}
	if n.ID == "" {
		errs = append(errs, errors.New("scheduling.from needs an id: set id to the name that this node has in the schedulers' list of nodes"))
	}
	if s.Recheck && len(n.Cluster.Keys) == 0 {
		errs = append(errs, errors.New("scheduling.recheck signs where it sends players: set cluster.keys to the key that all nodes and schedulers share, or scheduling.recheck to false"))
	}
	return errs
}
