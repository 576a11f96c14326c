package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"millrace/internal/plan"
	"millrace/internal/sched"
	"millrace/internal/store"
)

// Bounds of what operators say of an edit.
const (
	maxAuthor  = 64
	maxComment = 1000
)

// errNotYet is returned while a router has just begun.
var errNotYet = errors.New("this router has just begun and knows too little yet: try again in a second")

// Edits returns the edits of operators.
func (f *Fleet) Edits() Edits { return f.docs.Load().edits }

// DryRun tells what the plan would be with other edits.
func (f *Fleet) DryRun(edits plan.Edits) (plan.Diff, error) {
	if err := edits.Validate(); err != nil {
		return plan.Diff{}, &InvalidError{KeyEdits, err}
	}
	fr := f.frame.Load()
	if fr == nil || !f.nodes.settled(time.Now()) {
		return plan.Diff{}, errNotYet
	}
	var old *plan.Plan
	if in := f.published.Load(); in != nil {
		old = in.plan
	}
	f.scores.mu.Lock()
	defer f.scores.mu.Unlock()
	return plan.DryRun(time.Now(), &fr.network, old, edits, &f.cfg.Plan), nil
}

// Document returns a version of a document, the newest for 0. One that nobody has written
// yet has version 0 and no body.
func (f *Fleet) Document(ctx context.Context, key string, version uint64) (Document, error) {
	if !slices.Contains(Keys(), key) {
		return Document{}, ErrUnknownKey
	}
	if version > 0 {
		d, err := f.store.Version(ctx, key, version)
		return documentOf(&d), err
	}
	d, err := f.store.Current(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return Document{Key: key}, nil
	}
	return documentOf(&d), err
}

func documentOf(d *store.Document) Document {
	return Document{
		Key: d.Key, Version: d.Version, At: d.At.UTC(), Author: d.Name, Comment: d.Comment, Body: string(d.Body), Size: len(d.Body),
	}
}

// History returns the newest versions of a document, the newest first, without bodies.
func (f *Fleet) History(ctx context.Context, key string, limit int) ([]Document, error) {
	if !slices.Contains(Keys(), key) {
		return nil, ErrUnknownKey
	}
	list, err := f.store.History(ctx, key, min(max(limit, 1), store.MaxHistory))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	out := make([]Document, len(list))
	for i := range list {
		out[i] = documentOf(&list[i])
	}
	return out, nil
}

// Check says in sentences what is wrong with a document, or nil. The error is an
// [InvalidError], or ErrUnknownKey.
func (f *Fleet) Check(_ context.Context, key string, body []byte) error {
	if !slices.Contains(Keys(), key) {
		return ErrUnknownKey
	}
	if len(body) > store.MaxBody {
		return &InvalidError{key, fmt.Errorf("%d bytes, at most %d can be kept", len(body), store.MaxBody)}
	}
	old := f.docs.Load()
	tried := *old
	if err := tried.take(&store.Document{Key: key, Body: body}); err != nil {
		return &InvalidError{key, err}
	}
	if key == KeyDomains {
		if err := f.unknownTargets(old, &tried); err != nil {
			return &InvalidError{key, err}
		}
	}
	return nil
}

// unknownTargets finds nodes and datacenters that overrides newly name and that do not
// exist: a typing error should not be found out by the players. Those that were named
// before may have gone meanwhile.
func (f *Fleet) unknownTargets(old, tried *documents) error {
	before := targets(old.contents.Snapshot)
	exists := map[string]bool{}
	if fr := f.frame.Load(); fr != nil {
		for i := range fr.nodes {
			exists[fr.nodes[i].identity.ID] = true
			exists["dc:"+fr.nodes[i].identity.Datacenter] = true
		}
	}
	var errs []error
	for _, t := range targets(tried.contents.Snapshot) {
		switch dc, ok := strings.CutPrefix(t, "dc:"); {
		case exists[t] || slices.Contains(before, t):
		case ok:
			errs = append(errs, fmt.Errorf("overrides: no node is in a datacenter %q", dc))
		default:
			errs = append(errs, fmt.Errorf("overrides: there is no node %q; a datacenter is written dc:NAME", t))
		}
	}
	return errors.Join(errs...)
}

// targets returns what the overrides of a snapshot name, once each.
func targets(s *sched.Snapshot) []string {
	var out []string
	for i := range s.Overrides {
		out = append(append(out, s.Overrides[i].Pin...), s.Overrides[i].Ban...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Edit makes a new version of a document from the one it is based on, 0 for none, and
// returns it. The error is that of Check, or one of the store: a *store.ConflictError when
// somebody was faster, store.ErrUnavailable when the store is away.
func (f *Fleet) Edit(ctx context.Context, key string, based uint64, body []byte, author, comment string) (Document, error) {
	if err := f.Check(ctx, key, body); err != nil {
		return Document{}, err
	}
	switch {
	case author == "" || len(author) > maxAuthor || !utf8.ValidString(author):
		return Document{}, &InvalidError{key, fmt.Errorf("author: give a name of at most %d bytes", maxAuthor)}
	case len(comment) > maxComment || !utf8.ValidString(comment):
		return Document{}, &InvalidError{key, fmt.Errorf("comment: must be UTF-8 of at most %d bytes", maxComment)}
	}
	d, err := f.store.Edit(ctx, key, based, body, store.Author{Name: author, Comment: comment})
	if err != nil {
		return Document{}, err
	}
	now := time.Now()
	f.log.Info("an operator has edited", "document", key, "version", d.Version, "author", author, "comment", comment)
	f.events.add(now, Event{
		ID: "edit/" + key + "/" + strconv.FormatUint(d.Version, 10), Kind: KindEdit, From: author, To: key, Detail: editText(author, &d),
		Figures: map[string]any{"version": d.Version},
	})
	if err := f.readDocuments(ctx, now); err != nil {
		f.log.Warn("what was edited will be read again", "err", err)
		f.reload()
	}
	out := documentOf(&d)
	out.Body, out.Size = string(body), len(body)
	return out, nil
}

// editText tells of an edit.
func editText(author string, d *store.Document) string {
	text := fmt.Sprintf("%s made version %d of %s", author, d.Version, d.Key)
	if d.Comment != "" {
		text += ": " + d.Comment
	}
	return text
}

// Rollback makes a new version of a document with the body of an old one, as Edit does.
func (f *Fleet) Rollback(ctx context.Context, key string, version, based uint64, author, comment string) (Document, error) {
	if !slices.Contains(Keys(), key) {
		return Document{}, ErrUnknownKey
	}
	old, err := f.store.Version(ctx, key, version)
	if err != nil {
		return Document{}, fmt.Errorf("version %d of %s: %w", version, key, err)
	}
	if comment == "" {
		comment = "back to version " + strconv.FormatUint(version, 10)
	}
	return f.Edit(ctx, key, based, old.Body, author, comment)
}
