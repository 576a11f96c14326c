package control

import (
	"time"

	"millrace/internal/geo"
)

// SourceStatus is what a Source says of itself, for the admin port.
type SourceStatus struct {
	Kind    string    `json:"kind"`            // files or follower
	From    string    `json:"from"`            // the file of nodes, or the URL of the server
	Version Version   `json:"version"`         // of the last bundle
	At      time.Time `json:"at,omitzero"`     // of the last word: files read, server answered
	Error   string    `json:"error,omitempty"` // why the newest one is not in use; "" when it is
}

// Status is how placing is kept up to date, for the admin port.
type Status struct {
	Source       SourceStatus  `json:"source"`
	Version      Version       `json:"version"` // in use
	Made         time.Time     `json:"made,omitzero"`
	Nodes        int           `json:"nodes"`
	Domains      int           `json:"domains"`
	Geo          geo.Stats     `json:"geo"`
	Viewed       time.Time     `json:"viewed,omitzero"` // when the last view was made
	Took         time.Duration `json:"took_ns"`         // to make it
	Observations uint64        `json:"observations"`    // taken
	Dropped      uint64        `json:"dropped"`         // of them, because too many waited
}

// Status returns the newest.
func (k *Keeper) Status() Status {
	s := *k.status.Load()
	s.Source = k.source.Status()
	s.Observations, s.Dropped = k.taken.Load(), k.dropped.Load()
	return s
}

func (k *Keeper) report(now time.Time, took time.Duration) {
	s := &Status{Viewed: now, Took: took}
	if b := k.bundle; b != nil {
		s.Version, s.Made, s.Nodes, s.Domains = b.Version, b.Made, len(b.Snapshot.Nodes), len(b.Snapshot.Domains)
		s.Geo = b.compiled.Table.Stats()
	}
	k.status.Store(s)
}
