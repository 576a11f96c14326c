package console

import (
	"context"

	"millrace/internal/fleet"
	"millrace/internal/plan"
	"millrace/internal/stream"
)

// Fleet is what a router knows of the network, and how it is steered: *fleet.Fleet.
// All its methods are called from any goroutine, and what they return is only read.
type Fleet interface {
	// Network returns the map; the same value until there is a new one.
	Network() *fleet.Network
	Node(id string) (*fleet.Node, bool)
	Link(from, to string) (*fleet.Link, bool)
	Plan() *fleet.Plan
	Edits() fleet.Edits
	ExplainPath(node string, s stream.Name) plan.PathExplanation
	Streams(query string, limit int) *fleet.Streams
	Stream(name stream.Name) *fleet.Stream
	Events(filter fleet.EventFilter, after uint64, limit int) *fleet.Events
	Quality() []fleet.QualityRow
	Rechecks() []fleet.RecheckRow
	// Changed returns a channel that is closed when any of these is new.
	Changed() <-chan struct{}

	DryRun(edits plan.Edits) (plan.Diff, error)
	Document(ctx context.Context, key string, version uint64) (fleet.Document, error)
	History(ctx context.Context, key string, limit int) ([]fleet.Document, error)
	Check(ctx context.Context, key string, body []byte) error
	Edit(ctx context.Context, key string, based uint64, body []byte, author, comment string) (fleet.Document, error)
	Rollback(ctx context.Context, key string, version, based uint64, author, comment string) (fleet.Document, error)
}

var _ Fleet = (*fleet.Fleet)(nil)
