package console

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	"millrace/internal/fleet"
	"millrace/internal/store"
)

// raw is JSON as it was sent.
type raw = json.RawMessage

// content is the body of a document: text as a JSON string, or a JSON value that is the
// document itself.
type content struct{ text []byte }

// UnmarshalJSON takes either.
func (c *content) UnmarshalJSON(b []byte) error {
	if len(b) == 0 || b[0] != '"' {
		c.text = slices.Clone(b)
		return nil
	}
	var s string
	err := json.Unmarshal(b, &s)
	c.text = []byte(s)
	return err
}

// key returns the document that a path names.
func (a *call) key() (string, error) {
	if keys := fleet.Keys(); !slices.Contains(keys, a.args[0]) {
		return "", refuse(NotFound, "no document is called %.40q: there are %s", a.args[0], strings.Join(keys, ", "))
	}
	return a.args[0], nil
}

// storeTimeout is how long an answer waits for the store.
const storeTimeout = 3 * time.Second

// timeout bounds how long the store is waited for.
func timeout() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), storeTimeout)
}

func (c *Console) getDocuments(*call) (any, error) {
	ctx, cancel := timeout()
	defer cancel()
	out := struct {
		Documents []fleet.Document `json:"documents"` // without bodies
	}{[]fleet.Document{}}
	for _, key := range fleet.Keys() {
		newest, err := c.fleet.History(ctx, key, 1)
		switch {
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return nil, err
		case len(newest) > 0:
			out.Documents = append(out.Documents, newest[0])
		default:
			out.Documents = append(out.Documents, fleet.Document{Key: key})
		}
	}
	return out, nil
}

func (c *Console) getDocument(a *call) (any, error) {
	key, err := a.key()
	if err != nil {
		return nil, err
	}
	version, err := a.number("version", 0, 1<<63)
	if err != nil {
		return nil, err
	}
	ctx, cancel := timeout()
	defer cancel()
	d, err := c.fleet.Document(ctx, key, version)
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (c *Console) getHistory(a *call) (any, error) {
	key, err := a.key()
	if err != nil {
		return nil, err
	}
	limit, err := a.number("limit", someVersions, maxVersions)
	if err != nil {
		return nil, err
	}
	ctx, cancel := timeout()
	defer cancel()
	versions, err := c.fleet.History(ctx, key, int(limit))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	out := struct {
		Key      string           `json:"key"`
		Versions []fleet.Document `json:"versions"` // the newest first, without bodies
	}{key, versions}
	if out.Versions == nil {
		out.Versions = []fleet.Document{}
	}
	return out, nil
}

func (c *Console) putDocument(a *call) (any, error) {
	key, err := a.key()
	if err != nil {
		return nil, err
	}
	var body struct {
		Based   uint64   `json:"based"`
		Body    *content `json:"body"`
		Comment string   `json:"comment"`
	}
	if err := a.read(&body, maxText); err != nil {
		return nil, err
	}
	if body.Body == nil {
		return nil, refuse(BadRequest, "body is missing: send the whole document")
	}
	if err := checkComment(body.Comment); err != nil {
		return nil, err
	}
	ctx, cancel := timeout()
	defer cancel()
	if err := c.turn(ctx); err != nil {
		return nil, err
	}
	defer func() { <-c.reading }()
	return c.edited(c.fleet.Edit(ctx, key, body.Based, body.Body.text, a.caller.name, body.Comment))
}

func (c *Console) postRollback(a *call) (any, error) {
	key, err := a.key()
	if err != nil {
		return nil, err
	}
	var body struct {
		Version uint64 `json:"version"`
		Based   uint64 `json:"based"`
		Comment string `json:"comment"`
	}
	if err := a.read(&body, maxSmall); err != nil {
		return nil, err
	}
	if body.Version == 0 {
		return nil, refuse(BadRequest, "version is missing: say which one to go back to, as the history has them")
	}
	if err := checkComment(body.Comment); err != nil {
		return nil, err
	}
	ctx, cancel := timeout()
	defer cancel()
	if err := c.turn(ctx); err != nil {
		return nil, err
	}
	defer func() { <-c.reading }()
	return c.edited(c.fleet.Rollback(ctx, key, body.Version, body.Based, a.caller.name, body.Comment))
}

// turn waits until there is a place for one more document to be read.
func (c *Console) turn(ctx context.Context) error {
	select {
	case c.reading <- struct{}{}:
		return nil
	case <-ctx.Done():
		return tooMany("others have documents checked all the time", time.Second)
	}
}

// edited counts what was changed, and answers with it without the body: who asks has it.
func (c *Console) edited(d fleet.Document, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	c.counts.edits.Add(1)
	d.Body = ""
	return d, nil
}

func (c *Console) postCheck(a *call) (any, error) {
	key, err := a.key()
	if err != nil {
		return nil, err
	}
	var body struct {
		Body *content `json:"body"`
	}
	if err := a.read(&body, maxText); err != nil {
		return nil, err
	}
	if body.Body == nil {
		return nil, refuse(BadRequest, "body is missing: send the whole document")
	}
	ctx, cancel := timeout()
	defer cancel()
	select {
	case c.reading <- struct{}{}: // whoever edits waits, but not this
		defer func() { <-c.reading }()
	default:
		return nil, tooMany("others have documents checked at this moment", time.Second)
	}
	out := struct {
		OK    bool   `json:"ok"`
		Error string `json:"error,omitempty"` // sentences, each with the place that it is about
	}{OK: true}
	if err := c.fleet.Check(ctx, key, body.Body.text); err != nil {
		out.OK, out.Error = false, refusalOf(err).text
	}
	return out, nil
}

func checkComment(s string) error {
	odd := func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' || r == unicode.ReplacementChar }
	if len(s) > maxComment || strings.ContainsFunc(s, odd) {
		return refuse(BadRequest, "comment: use at most %d bytes of text", maxComment)
	}
	return nil
}
