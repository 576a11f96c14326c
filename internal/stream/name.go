package stream

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Name is the name of a stream in its normal form, "app/name": at least two
// segments joined by single slashes, without a slash at either end, percent
// escapes decoded, case kept. The first segment is the app; a key with slashes
// makes a name of more than two segments.
type Name string

// App returns the first segment.
func (n Name) App() string {
	app, _, _ := strings.Cut(string(n), "/")
	return app
}

// MaxName is how many bytes a normal form may have: it appears in paths, logs and
// metrics.
const MaxName = 255

// PageApp is an app that no stream can have: the node's pages are at /watch/APP/NAME.
const PageApp = "watch"

// ErrName is wrapped by every error about a name; the text says what to change.
var ErrName = errors.New("unusable stream name")

// ParseName makes the normal form from what an encoder says: the app of its
// connect command and the name of its publish or play command. Encoders are
// filled in by hand, so all of these give "live/show":
//
//	app "live",             key "show"
//	app "/live/",           key "show?token=x"
//	app "live?token=x",     key "show"
//	app "live/show",        key ""                        whole URL in the server field
//	app "live",             key "rtmp://host/live/show"   whole URL in the key field
//	app "rtmp://host/live", key "show"
//
// The second result is the query found in either place, the app's first, joined
// by "&". An app alone, an empty part and names that cannot stand in a URL are
// refused with an error that wraps ErrName.
func ParseName(app, key string) (Name, string, error) {
	app, appQuery := cutQuery(app)
	key, keyQuery := cutQuery(key)
	app, _ = cutOrigin(app)
	key, whole := cutOrigin(key)
	query := appQuery
	if query != "" && keyQuery != "" {
		query += "&"
	}
	query += keyQuery
	if whole {
		app = ""
	}
	n, err := normal(app + "/" + key)
	if err != nil {
		return "", query, err
	}
	if n.App() == string(n) {
		return "", query, fmt.Errorf("%w: %q has no stream key: publish to rtmp://HOST/APP with a stream key, or to rtmp://HOST/APP/KEY", ErrName, n)
	}
	return n, query, nil
}

// ParsePath makes the normal form from the decoded path of a request, its suffix
// already cut off: "/live/show" gives "live/show". Errors wrap ErrName.
func ParsePath(path string) (Name, error) {
	n, err := normalDecoded(path)
	if err == nil && n.App() == string(n) {
		err = fmt.Errorf("%w: %q names no stream: ask for /APP/NAME", ErrName, path)
	}
	if err != nil {
		return "", err
	}
	return n, nil
}

func cutQuery(s string) (path, query string) {
	path, query, _ = strings.Cut(strings.TrimSpace(s), "?")
	return path, strings.Trim(query, "&")
}

// cutOrigin takes scheme and host off s when it has them.
func cutOrigin(s string) (string, bool) {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || strings.ContainsAny(scheme, "/?") {
		return s, false
	}
	_, path, _ := strings.Cut(rest, "/")
	return path, true
}

func normal(s string) (Name, error) {
	if d, err := url.PathUnescape(s); err == nil {
		s = d
	}
	return normalDecoded(s)
}

func normalDecoded(s string) (Name, error) {
	if len(s) > 2*MaxName {
		return "", fmt.Errorf("%w: longer than %d bytes", ErrName, MaxName)
	}
	if !utf8.ValidString(s) {
		return "", fmt.Errorf("%w: not UTF-8", ErrName)
	}
	var b strings.Builder
	for seg := range strings.SplitSeq(s, "/") {
		seg = strings.TrimSpace(seg)
		switch {
		case seg == "":
			continue
		case seg == "." || seg == "..":
			return "", fmt.Errorf("%w: %q as a part of it", ErrName, seg)
		}
		for _, r := range seg {
			if unicode.IsControl(r) || strings.ContainsRune(`?#\`, r) || r == utf8.RuneError {
				return "", fmt.Errorf("%w: the character %q cannot stand in it", ErrName, r)
			}
		}
		if b.Len() > 0 {
			b.WriteByte('/')
		}
		b.WriteString(seg)
	}
	switch {
	case b.Len() == 0:
		return "", fmt.Errorf("%w: it is empty: use APP/NAME", ErrName)
	case b.Len() > MaxName:
		return "", fmt.Errorf("%w: longer than %d bytes", ErrName, MaxName)
	}
	n := Name(b.String())
	if n.App() == PageApp {
		return "", fmt.Errorf("%w: the app %s is taken by the node's own pages: use another, such as live", ErrName, PageApp)
	}
	return n, nil
}
