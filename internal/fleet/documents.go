package fleet

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"millrace/internal/control"
	"millrace/internal/plan"
	"millrace/internal/sched"
	"millrace/internal/store"
)

// Keys of the documents that operators edit.
const (
	KeyEdits    = "edits"    // plan.Edits as JSON
	KeyNetwork  = "network"  // YAML: regions, costs, health, quality, geo
	KeyDomains  = "domains"  // YAML: zones, domains, overrides
	KeyCoverage = "coverage" // lines of CIDR REGION ISP
)

// Keys returns the keys of all documents.
func Keys() []string { return []string{KeyEdits, KeyNetwork, KeyDomains, KeyCoverage} }

// ErrUnknownKey is returned for a document that there cannot be.
var ErrUnknownKey = errors.New("there is no such document: use edits, network, domains or coverage")

// InvalidError is a document that is not stored, because it has faults.
type InvalidError struct {
	Key string
	Err error
}

// Error returns the faults, a line each.
func (e *InvalidError) Error() string { return e.Err.Error() }

// Unwrap returns the faults.
func (e *InvalidError) Unwrap() error { return e.Err }

// documents are the newest versions of all documents, read and checked. They are not
// changed.
type documents struct {
	edits    Edits
	versions map[string]uint64
	texts    control.Texts
	contents control.Contents // of the texts; its snapshot has no nodes
	coverage uint64           // version of the coverage among them
}

func noDocuments() *documents {
	contents, err := control.Texts{}.Parse()
	if err != nil {
		panic("fleet: " + err.Error()) // of nothing
	}
	return &documents{versions: map[string]uint64{}, contents: contents}
}

// regions returns the regions that operators have placed.
func (d *documents) regions() []sched.Region { return d.contents.Snapshot.Regions }

// readDocuments takes up what operators have edited. A document that cannot be used, which
// an older or newer program has written, leaves the one before in force.
func (f *Fleet) readDocuments(ctx context.Context, now time.Time) error {
	f.reading.Lock()
	defer f.reading.Unlock()
	old := f.docs.Load()
	in := *old
	in.versions = map[string]uint64{}
	var errs []error
	changed := false
	for _, key := range Keys() {
		in.versions[key] = old.versions[key]
		d, err := f.store.Current(ctx, key)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
			continue
		}
		if d.Version == old.versions[key] {
			continue
		}
		in.versions[key] = d.Version
		tried := in
		if err := tried.take(&d); err != nil {
			f.log.Error("a document cannot be used: the one before stays in force", "document", key, "version", d.Version, "err", err)
			f.events.add(now, Event{
				ID: key + "/unreadable/" + strconv.FormatUint(d.Version, 10), Kind: KindUnreadable, From: key, Detail: err.Error(),
			})
		} else {
			in = tried
		}
		changed = true
	}
	if changed {
		f.docs.Store(&in)
		f.wake()
	}
	return errors.Join(errs...)
}

// take reads a document into d.
func (d *documents) take(doc *store.Document) error {
	if doc.Key == KeyEdits {
		edits, err := plan.ParseEdits(doc.Body)
		if err != nil {
			return err
		}
		d.edits = Edits{Version: doc.Version, At: doc.At.UTC(), Author: doc.Name, Comment: doc.Comment, Edits: *edits}
		return nil
	}
	texts := d.texts
	switch doc.Key {
	case KeyNetwork:
		texts.Network = doc.Body
	case KeyDomains:
		texts.Domains = doc.Body
	case KeyCoverage:
		texts.Coverage = doc.Body
	}
	contents, err := texts.Parse()
	if err != nil {
		return err
	}
	d.texts, d.contents = texts, contents
	if doc.Key == KeyCoverage {
		d.coverage = doc.Version
	}
	return nil
}
