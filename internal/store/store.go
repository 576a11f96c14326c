// Package store keeps what routers know beyond their own memory: the documents that
// operators edit, with their history; what routers tell one another of the nodes, for a
// while; and what the planning router has published.
//
// There are two back ends and one contract, which the tests run over both: Memory, with
// a file, for one router and nothing else to install; and Cached, for several, which is a
// Redis with a Memory beside it.
package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Author is who made an edit, and why.
type Author struct {
	Name    string `json:"name"`
	Comment string `json:"comment,omitempty"`
}

// Document is one version of what operators edit.
type Document struct {
	Key     string    `json:"key"`
	Version uint64    `json:"version"` // from 1; each edit is one more
	At      time.Time `json:"at"`
	Author
	Body []byte `json:"body"`
}

// Entry is soft state: it is gone after its time if nobody announces it again.
type Entry struct {
	Kind string // such as nodes
	Key  string // who announces it
	Body []byte
	TTL  time.Duration
}

// Fence numbers the holders of a lease. It rises with each.
type Fence uint64

// Published is what the planning router has told all. Its number is above that of what
// was published before under the same kind: one more, or far more where the store has
// lost its memory, so that no number is ever given twice.
type Published struct {
	Kind   string
	Number uint64
	Fence  Fence
	At     time.Time
	Body   []byte
}

// Change tells that something is new. It may come more than once, and for no reason.
type Change struct {
	Kind string // of documents, entries or publications: documents, or the kind
	Key  string // of the document
}

// Documents is the kind of a Change of documents.
const Documents = "documents"

// Bounds of what is kept.
const (
	MaxBody    = 64 << 20 // bytes of a document, an entry or a publication
	MaxHistory = 1000     // versions that are kept of a document
	// MaxHistoryBytes bounds the bodies of all versions of a document. The oldest go
	// first; the newest is always kept.
	MaxHistoryBytes = 128 << 20
)

// Errors of stores, beside those of their medium.
var (
	ErrNotFound = errors.New("there is no such document")
	// ErrUnavailable is returned for what cannot be done now: the caller may try later.
	ErrUnavailable = errors.New("the store cannot be reached")
	// ErrFenced is returned to a router that is no longer the one that plans.
	ErrFenced = errors.New("another router plans now")
	ErrTooBig = errors.New("more than a store takes")
)

// ConflictError is returned when somebody else was faster.
type ConflictError struct {
	Current Document // the newest version, without its body
	Based   uint64
}

// Error names who was faster.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s is at version %d by %s, and this edit was made from version %d: look at what changed and edit again",
		e.Current.Key, e.Current.Version, e.Current.Name, e.Based)
}

// Store is the state of routers. All methods may be called from any goroutine.
type Store interface {
	// Origin is a name that all routers of this store share, made when it was first used.
	// Ask each time it is needed: a router that finds an older one in Redis takes that.
	Origin(ctx context.Context) (string, error)

	// Edit makes a new version of a document from the version that it is based on, 0 when
	// there is none. It is durable when Edit returns. The error is a *ConflictError when
	// there is a newer one. It does not keep body. Bodies that a store returns are shared:
	// they must not be changed.
	Edit(ctx context.Context, key string, based uint64, body []byte, who Author) (Document, error)
	// Current returns the newest version of a document, or ErrNotFound.
	Current(ctx context.Context, key string) (Document, error)
	// Version returns one version, or ErrNotFound.
	Version(ctx context.Context, key string, version uint64) (Document, error)
	// History returns the newest versions, the newest first, without their bodies.
	History(ctx context.Context, key string, limit int) ([]Document, error)

	// Announce keeps entries for as long as each wants.
	Announce(ctx context.Context, entries ...Entry) error
	// Entries returns what is announced of a kind, in the order of keys.
	Entries(ctx context.Context, kind string) ([]Entry, error)

	// Lease makes who the one that plans, for ttl, if nobody else is, or prolongs it. The
	// fence rises with every new holder. held is false while somebody else has it.
	Lease(ctx context.Context, who string, ttl time.Duration) (fence Fence, held bool, err error)
	// Release gives the lease up, if who has it.
	Release(ctx context.Context, who string) error
	// Publish tells all routers. It returns ErrFenced for a fence that is not the newest.
	Publish(ctx context.Context, fence Fence, kind string, body []byte) (Published, error)
	// Published returns what was published last, or ErrNotFound.
	Published(ctx context.Context, kind string) (Published, error)

	// Watch tells of changes until ctx ends, and then closes the channel. Reading from it
	// late loses nothing but repetitions.
	Watch(ctx context.Context) (<-chan Change, error)
	Close() error
}
