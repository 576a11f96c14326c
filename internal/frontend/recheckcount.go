package frontend

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// RecheckOutcome says what an edge found when it looked again at a player. Its word is
// the same in metrics, the API and tests.
type RecheckOutcome uint8

// The outcomes. All but SentOn serve the player here.
const (
	Here         RecheckOutcome = iota // this is the edge that the policy wants
	Near                               // another is better, but by less than the domain's threshold
	SentOn                             // another is better, and the player was sent there
	Ticketed                           // the player was sent here
	BadTicket                          // a ticket that is forged or over: looked at like one without
	Off                                // the domain does not re-check
	NoKey                              // there is no key to sign tickets with
	NoView                             // this edge has no snapshot yet
	StaleView                          // what is known of the other edges is too old
	NotInPlan                          // this edge is not in its own snapshot
	OtherDomain                        // no domain has the name that the player asked for
	UnknownPlace                       // nobody knows where the player is
	NowhereElse                        // no other edge is known to be better and up
	recheckOutcomes
)

var recheckWords = [recheckOutcomes]string{
	Here: "here", Near: "near", SentOn: "sent_on", Ticketed: "ticketed", BadTicket: "bad_ticket", Off: "off",
	NoKey: "no_key", NoView: "no_view", StaleView: "stale_view", NotInPlan: "not_in_plan",
	OtherDomain: "other_domain", UnknownPlace: "unknown_place", NowhereElse: "nowhere_else",
}

// String returns the word of o.
func (o RecheckOutcome) String() string {
	if o >= recheckOutcomes {
		return fmt.Sprintf("recheck(%d)", uint8(o))
	}
	return recheckWords[o]
}

// MarshalText returns the word of o, for JSON.
func (o RecheckOutcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// RecheckWay says how a player found this edge.
type RecheckWay uint8

// The ways.
const (
	ByName    RecheckWay = iota // the name led here: DNS, or HTTP-DNS in its plain form
	ByAddress                   // the player asked for an address: a link made by hand
	ByTicket                    // a redirect led here
	recheckWays
)

var wayWords = [recheckWays]string{"name", "address", "ticket"}

// String returns the word of w.
func (w RecheckWay) String() string {
	if w >= recheckWays {
		return fmt.Sprintf("way(%d)", uint8(w))
	}
	return wayWords[w]
}

// MarshalText returns the word of w, for JSON.
func (w RecheckWay) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// RecheckCount is how many players of one place that came one way had one outcome.
type RecheckCount struct {
	Region  string         `json:"region,omitempty"`
	ISP     string         `json:"isp,omitempty"`
	Way     RecheckWay     `json:"way"`
	Outcome RecheckOutcome `json:"outcome"`
	Count   uint64         `json:"count"`
}

// maxRecheckRows is how many places with a way are told apart. Those beyond are counted
// together, as region "other".
const maxRecheckRows = 4096

// recheckTable counts. Counting takes no lock but for a row that is new.
type recheckTable struct {
	// Safe from any goroutine. The map behind it is never changed.
	rows atomic.Pointer[map[recheckKey]*recheckRow]

	mu sync.Mutex // held by those who exchange rows
}

type recheckKey struct {
	region, isp string
	way         RecheckWay
}

type recheckRow [recheckOutcomes]atomic.Uint64

func (t *recheckTable) add(k recheckKey, o RecheckOutcome) {
	if rows := t.rows.Load(); rows != nil {
		if row := (*rows)[k]; row != nil {
			row[o].Add(1)
			return
		}
	}
	t.row(k)[o].Add(1)
}

// row returns the row of k, which may be new, or the one for all that there is no room
// for.
func (t *recheckTable) row(k recheckKey) *recheckRow {
	t.mu.Lock()
	defer t.mu.Unlock()
	rows := map[recheckKey]*recheckRow{}
	if old := t.rows.Load(); old != nil {
		rows = *old
	}
	if len(rows) >= maxRecheckRows {
		k = recheckKey{region: "other", way: k.way}
	}
	if row := rows[k]; row != nil {
		return row
	}
	rows = maps.Clone(rows)
	row := new(recheckRow)
	// Not a part of a geo table, which would stay in memory with it.
	rows[recheckKey{strings.Clone(k.region), strings.Clone(k.isp), k.way}] = row
	t.rows.Store(&rows)
	return row
}

// Stats returns the counts that are not zero, by region, ISP, way and outcome.
func (r *Recheck) Stats() []RecheckCount {
	rows := r.counts.rows.Load()
	if rows == nil {
		return nil
	}
	var out []RecheckCount
	for k, row := range *rows {
		for o := range recheckOutcomes {
			if n := row[o].Load(); n > 0 {
				out = append(out, RecheckCount{k.region, k.isp, k.way, o, n})
			}
		}
	}
	slices.SortFunc(out, func(a, b RecheckCount) int {
		return cmp.Or(strings.Compare(a.Region, b.Region), strings.Compare(a.ISP, b.ISP),
			cmp.Compare(a.Way, b.Way), cmp.Compare(a.Outcome, b.Outcome))
	})
	return out
}
