package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// head is what Redis says of the newest version of a document.
type head struct {
	number uint64
	id     string
}

func (h head) String() string {
	if h.number == 0 {
		return ""
	}
	return strconv.FormatUint(h.number, 10) + " " + h.id
}

func headOf(v version) head { return head{v.Version, v.ID} }

// maxVersion is where Lua no longer counts exactly.
const maxVersion = 1 << 53

// parseHead reads a head. Empty is that of no document.
func parseHead(s string) (head, error) {
	if s == "" {
		return head{}, nil
	}
	number, id, _ := strings.Cut(s, " ")
	n, err := parseNumber(number)
	if err != nil || n == 0 || !isID(id) {
		return head{}, errors.New("not the newest version of a document")
	}
	return head{n, id}, nil
}

// parseNumber reads a number as the scripts write them.
func parseNumber(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n >= maxVersion || strconv.FormatUint(n, 10) != s {
		return 0, errors.New("not a number of ours")
	}
	return n, nil
}

// about is the line of JSON that stands beside a body.
type about struct {
	At      time.Time `json:"at"`
	Name    string    `json:"name"`
	Comment string    `json:"comment,omitempty"`
}

// line returns what stands in Redis of v beside its body, without the mark.
func line(v version) (string, error) {
	b, err := json.Marshal(about{v.At, v.Name, v.Comment})
	return string(b), err
}

// parseVersion reads what stands in Redis of a version, with the mark before it. The
// version keeps body.
func parseVersion(key, number, s string, body []byte) (version, error) {
	n, err := parseNumber(number)
	if err != nil || n == 0 || len(s) < idLength || len(s) > maxLine || !isID(s[:idLength]) {
		return version{}, errors.New("not a version of a document")
	}
	var a about
	if err := json.Unmarshal([]byte(s[idLength:]), &a); err != nil {
		return version{}, fmt.Errorf("not a version of a document: %w", err)
	}
	v := version{Document{key, n, a.At, Author{a.Name, a.Comment}, body}, s[:idLength]}
	return v, checkEdit(key, body, v.Author)
}

// changedError is returned when the newest version is another than expected.
type changedError struct{ newest head }

func (e *changedError) Error() string { return "the document has changed" }

// put adds versions of one document if its newest is the expected one, all or none. The
// error is a *changedError if it is not.
func (r *Redis) put(ctx context.Context, expected head, versions ...version) error {
	return r.putBack(ctx, expected, 0, versions)
}

// putBack is put of versions that Redis has lost, of a history that was forgotten up to
// that number.
func (r *Redis) putBack(ctx context.Context, expected head, forgotten uint64, versions []version) error {
	key, size := versions[0].Key, 0
	what := fmt.Sprintf("keep version %d of %s", versions[0].Version, key)
	args := []any{key, expected.String(), MaxHistory, MaxHistoryBytes, maxDocuments, forgotten, rand.Text()}
	for _, v := range versions {
		about, err := line(v)
		if err != nil {
			return err
		}
		if v.Version >= maxVersion {
			return fmt.Errorf("%s: %w", what, ErrTooBig)
		}
		args = append(args, v.Version, v.ID, about, v.Body)
		size += len(v.Body)
	}
	keys := []string{r.key("state"), r.key("doc", key), r.key("body", key), r.key("changed")}
	out, err := r.ask(ctx, size, scriptPut, keys, args...).StringSlice()
	switch {
	case err != nil:
		return r.fault(what, err)
	case len(out) != 2:
		return r.strange(what)
	case out[0] == "1":
		return nil
	}
	newest, err := parseHead(out[1])
	if err != nil {
		return r.strange(what)
	}
	return &changedError{newest}
}

// three takes an answer of three texts or numbers apart.
func three(out []any) (a, b, c string, ok bool) {
	if len(out) != 3 {
		return "", "", "", false
	}
	text := func(v any) string {
		switch v := v.(type) {
		case string:
			return v
		case int64:
			return strconv.FormatInt(v, 10)
		}
		ok = false
		return ""
	}
	ok = true
	a, b, c = text(out[0]), text(out[1]), text(out[2])
	return a, b, c, ok
}

// version returns a version with its body, the newest one for 0.
func (r *Redis) version(ctx context.Context, key string, number uint64) (version, error) {
	out, err := r.ask(ctx, MaxBody, scriptRead, []string{r.key("state"), r.key("doc", key), r.key("body", key)},
		key, strconv.FormatUint(number, 10), MaxBody).Slice()
	if err != nil {
		return version{}, r.fault(key, err)
	}
	if len(out) == 0 {
		return version{}, notFound(key, number)
	}
	n, about, body, ok := three(out)
	if !ok {
		return version{}, r.strange(key)
	}
	v, err := parseVersion(key, n, about, []byte(body))
	if err != nil {
		return version{}, r.strange(key)
	}
	return v, nil
}

// history returns the newest versions without their bodies, the newest first, and up to
// which number versions were forgotten, beyond the bounds.
func (r *Redis) history(ctx context.Context, key string, limit int) (versions []version, forgotten uint64, err error) {
	out, err := r.ask(ctx, 0, scriptHistory, []string{r.key("state"), r.key("doc", key)}, key, min(max(limit, 0), MaxHistory)).StringSlice()
	if err != nil {
		return nil, 0, r.fault(key, err)
	}
	if len(out)%2 != 1 {
		return nil, 0, r.strange(key)
	}
	if forgotten, err = parseNumber(out[0]); err != nil {
		return nil, 0, r.strange(key)
	}
	for i := 1; i < len(out); i += 2 {
		v, err := parseVersion(key, out[i], out[i+1], nil)
		if err != nil {
			return nil, 0, r.strange(key)
		}
		versions = append(versions, v)
	}
	return versions, forgotten, nil
}
