package control

import (
	"context"
	"fmt"
	"net/url"
	"time"
)

// fetch asks the server at base for a bundle other than have, which may be nil. What it
// returns is complete, compiled and kept on disk; both results are nil when there is
// nothing new. Every error has an outcome.
func (f *Follower) fetch(ctx context.Context, base string, have *Bundle) (*Bundle, error) {
	q, wait := url.Values{}, time.Duration(0)
	if have != nil {
		if f.answered == base {
			wait = f.cfg.Wait
		}
		q.Set("have", have.Version.Token)
		q.Set("wait", wait.String())
	}
	begun := time.Now()
	said, err := f.client.ask(ctx, base, snapshotPath+"?"+q.Encode(), wait, MaxSnapshot)
	if err != nil {
		return nil, err
	}
	if said.unchanged || have != nil && said.token == have.Version.Token {
		if wait > 0 && time.Since(begun) < early {
			return nil, fail(Early, "the server answers at once, without news")
		}
		return nil, nil
	}
	b, err := ParseBundle(said.body)
	if err != nil {
		return nil, fail(Faulty, "%w", err)
	}
	if have != nil && b.Version.Token == have.Version.Token {
		return nil, fail(Damaged, "the server calls the snapshot in use another one: %v", b.Version)
	}
	if have != nil && b.Version.Origin == have.Version.Origin && b.Version.Number < have.Version.Number && base != f.from {
		return nil, fail(Older, "the server has %v, older than %v, which is in use%s", b.Version, have.Version, f.wayOut())
	}
	if err := f.blobs(ctx, base, b, have); err != nil {
		return nil, err
	}
	if _, err := b.Compile(have); err != nil {
		return nil, fail(Faulty, "%w", err)
	}
	if f.shelf != nil {
		if err := f.shelf.save(b, base); err != nil {
			f.log.Error("the new snapshot is in use but not on disk", "version", b.Version, "err", err)
		}
	}
	return b, nil
}

// early is how soon no server answers that has no news and was asked to wait. One that
// does would be asked again without a pause.
const early = 500 * time.Millisecond

// wayOut says how to take an older snapshot all the same.
func (f *Follower) wayOut() string {
	if f.shelf == nil {
		return ": to take it all the same, start this program again"
	}
	return fmt.Sprintf(": to take it all the same, remove %s and start this program again", f.shelf.path)
}

// blobs gives b the content of its blobs: from the bundle in use, from disk, or else
// from the server at base.
func (f *Follower) blobs(ctx context.Context, base string, b, have *Bundle) error {
	here := map[string]*Blob{}
	if have != nil {
		for _, blob := range have.blobs() {
			here[blob.Sum] = blob
		}
	}
	for _, blob := range b.blobs() {
		if old := here[blob.Sum]; old != nil && old.Size == blob.Size {
			blob.read = old.read
			continue
		}
		if f.shelf != nil && f.shelf.has(blob) {
			continue
		}
		said, err := f.client.ask(ctx, base, blobPath+blob.Sum, 0, blob.Size)
		if err != nil {
			return err
		}
		if err := blob.verify(said.body); err != nil {
			return fail(Damaged, "%w", err)
		}
		if f.shelf == nil {
			blob.read = NewBlob(said.body).read
			continue
		}
		if err := f.shelf.put(blob, said.body); err != nil {
			f.log.Error("a coverage or mmdb file is in use but not on disk", "sum", blob.Sum, "err", err)
			blob.read = NewBlob(said.body).read
			continue
		}
		if !f.shelf.has(blob) {
			blob.read = NewBlob(said.body).read
		}
	}
	return nil
}
