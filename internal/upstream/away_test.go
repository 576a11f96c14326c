package upstream

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"
)

// free reports whether an upstream may be asked for any stream.
func (n *node) free(url string) bool {
	n.origin.mu.Lock()
	defer n.origin.mu.Unlock()
	return n.origin.free(time.Now(), url)
}

// Who asks for what is nowhere keeps nobody from what is there: that an upstream does
// not have a stream, or would have it from here, says nothing about other streams.
func TestMissingNameIsNoFault(t *testing.T) {
	f := func(why string, edge, center *node) {
		t.Helper()
		center.publish("live/a")
		none := edge.attach("live/none")
		defer none.detach()
		want(t, none.read(1), why)
		if !edge.free(center.url) {
			t.Errorf("%s: the upstream is held to be bad", why)
		}
		r := edge.attach("live/a")
		defer r.detach()
		want(t, r.read(3), "")
	}
	center := start(t, "center")
	f("not_found", start(t, "edge", pool(center.url)), center)

	ln, url := listen(t)
	one := start(t, "one", pool(url))
	two := startOn(t, ln, "two", pool(one.url))
	f("loop", one, two)
}

// What an upstream says or does about one stream does not take it from the others: that
// its own upstream fails, and that it is late with a name while it sends another.
func TestOneStreamIsNoFaultOfTheUpstream(t *testing.T) {
	f := func(why string, odd http.HandlerFunc) {
		t.Helper()
		center := start(t, "center")
		center.publish("live/a")
		center.publish("live/b")
		to, err := url.Parse(center.url)
		if err != nil {
			t.Fatal(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(to)
		proxy.FlushInterval = -1
		proxy.ModifyResponse = func(r *http.Response) error { // all streams come through the handler below
			r.Header.Del("Millrace-Trunk")
			return nil
		}
		above := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/live/odd.flv" {
				odd(w, r)
				return
			}
			proxy.ServeHTTP(w, r)
		}))
		defer above.Close()
		edge := start(t, "edge", pool(above.URL), func(c *Config, _ *Options) { c.LocateTime = 3 * time.Second })
		defer edge.stop()
		a := edge.attach("live/a")
		defer a.detach()
		want(t, a.read(3), "")
		none := edge.attach("live/odd")
		defer none.detach()
		want(t, none.read(1), "upstream_lost")
		if !edge.free(above.URL) {
			t.Errorf("%s: the upstream is held to be bad", why)
		}
		b := edge.attach("live/b")
		defer b.detach()
		want(t, b.read(3), "")
	}
	f("no way to the center", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Millrace-Reason", "upstream_lost")
		w.WriteHeader(http.StatusBadGateway)
	})
	f("late", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
}
