package stream

import (
	"errors"
	"strings"
	"testing"
)

func TestParseName(t *testing.T) {
	f := func(app, key string, want Name, query string) {
		t.Helper()
		n, q, err := ParseName(app, key)
		if err != nil || n != want || q != query {
			t.Errorf("ParseName(%q, %q) = %q, %q, %v; want %q, %q", app, key, n, q, err, want, query)
		}
	}
	f("live", "show", "live/show", "")
	f("/live/", "show?token=x", "live/show", "token=x")
	f("live?token=x", "show", "live/show", "token=x")
	f("live?a=1", "show?b=2", "live/show", "a=1&b=2")
	f("live?a=x/y", "show", "live/show", "a=x/y")
	f("live/show", "", "live/show", "")
	f("live/show?key=1", "", "live/show", "key=1")
	f("live", "rtmp://host:1935/live/show", "live/show", "")
	f("live", "rtmps://host/live/show?key=1", "live/show", "key=1")
	f("rtmp://host/live", "show", "live/show", "")
	f("rtmp://host/live/show", "", "live/show", "")
	f("live", "a/b/c", "live/a/b/c", "")
	f("live", "//a///b/", "live/a/b", "")
	f("live", " show\r\n", "live/show", "")
	f("live", "a%20b", "live/a b", "")
	f("live", "100%", "live/100%", "")
	f("", "live/show", "live/show", "")
	f("live", "watch", "live/watch", "")
	f("Live", "Bühne", "Live/Bühne", "")
}

func TestNamesThatAreRefused(t *testing.T) {
	f := func(app, key, says string) {
		t.Helper()
		n, _, err := ParseName(app, key)
		if !errors.Is(err, ErrName) || !strings.Contains(err.Error(), says) {
			t.Errorf("ParseName(%q, %q) = %q, %v; want an error that says %q", app, key, n, err, says)
		}
	}
	f("live", "", "stream key")
	f("live", "?token=x", "stream key")
	f("", "", "empty")
	f("", "show", "stream key")
	f("watch", "show", "the node's own pages")
	f("", "/watch/live/show", "use another")
	f("live", "..", "..")
	f("live", "a/./b", `"."`)
	f("live", "a%3Fb", "'?'")
	f("live", "a\x00b", "character")
	f("live", "a\xffb", "UTF-8")
	f("live", strings.Repeat("x", MaxName), "longer")
	f("live", strings.Repeat("x/", 3*MaxName), "longer")
}

func TestParsePath(t *testing.T) {
	if n, err := ParsePath("/live//show"); n != "live/show" || err != nil {
		t.Errorf("got %q, %v", n, err)
	}
	if n, err := ParsePath("/live/100%25"); n != "live/100%25" || err != nil {
		t.Errorf("a decoded path is decoded again: %q, %v", n, err)
	}
	for _, p := range []string{"", "/", "/live", "/live/", "/../x/y"} {
		if n, err := ParsePath(p); !errors.Is(err, ErrName) {
			t.Errorf("ParsePath(%q) = %q, %v", p, n, err)
		}
	}
	if got := Name("live/a/b").App(); got != "live" {
		t.Errorf("App = %q", got)
	}
}

func FuzzParseName(f *testing.F) {
	f.Add("live", "show?x=1")
	f.Add("rtmp://h/live?x", "a%2fb")
	f.Fuzz(func(t *testing.T, app, key string) {
		n, _, err := ParseName(app, key)
		if err != nil {
			return
		}
		again, err := ParsePath("/" + string(n))
		if err != nil || again != n {
			t.Fatalf("normal form %q of (%q, %q) becomes %q, %v", n, app, key, again, err)
		}
	})
}
