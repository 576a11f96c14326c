// Package watch serves the page on which a person sees a stream: GET /watch/app/name,
// and at / a list of what is live. Everything that the page needs is in the binary,
// the player (mpegts.js) too; nothing is fetched from elsewhere, and a strict content
// security policy says so to the browser.
//
//	GET /                    what is live
//	GET /watch/app/name      the page; its query goes to the stream's URL as it is
//	GET /watch/app/name.flv  redirects to the page: somebody mixed up the two addresses
//	GET /watch/streams.json  what is live, for the list
//	GET /watch/player.js …   assets: one segment, so no stream can hide them
//
// The page plays /app/name.flv, or the same over a WebSocket, like any other player:
// it has no other way in, and access rules hold for it as for everyone. The package
// knows nothing of streams; who builds it says what is live.
package watch

import (
	"bytes"
	"encoding/json"
	"html/template"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// Live is one line of the list of live streams.
type Live struct {
	Name    string    `json:"name"` // app/name
	Since   time.Time `json:"since"`
	Video   string    `json:"video,omitempty"` // codec
	Audio   string    `json:"audio,omitempty"` // codec
	Width   int       `json:"width,omitempty"`
	Height  int       `json:"height,omitempty"`
	FPS     float64   `json:"fps,omitempty"`
	Bitrate int64     `json:"bitrate"` // bits a second
	Viewers int       `json:"viewers"`
}

// Options are what the page is told about the node.
type Options struct {
	// Streams returns what is live, sorted as it shall be shown. It is called at each
	// request of the list, from many goroutines. With nil the list stays private: the
	// front page then only says how to reach a stream whose name one knows.
	Streams func() []Live
	// RTMPPort is where encoders and RTMP players connect, for the URLs that the page
	// shows. With 0 it shows none.
	RTMPPort int
	// Elsewhere says that the node may send players to other nodes, so that the page
	// must be allowed to fetch frames from them.
	Elsewhere bool
}

// Watch answers the requests of the page.
type Watch struct {
	// Fixed at construction.
	opt    Options
	assets map[string]*asset // by the last segment of their path
	page   *asset
	index  *asset
}

// New returns a Watch. It fails only when what is embedded is broken, which a test
// would have found.
func New(opt Options) (*Watch, error) {
	version, assets, err := loadAssets()
	if err != nil {
		return nil, err
	}
	w := &Watch{opt: opt, assets: assets}
	data := map[string]any{"Version": version, "RTMPPort": opt.RTMPPort, "List": opt.Streams != nil}
	if w.page, err = render("page.html", data); err != nil {
		return nil, err
	}
	if w.index, err = render("index.html", data); err != nil {
		return nil, err
	}
	return w, nil
}

func render(name string, data any) (*asset, error) {
	t, err := template.ParseFS(files, "assets/"+name)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return nil, err
	}
	return newAsset("text/html; charset=utf-8", b.Bytes()), nil
}

// Handle answers one request. It is safe from many goroutines and does not block.
func (w *Watch) Handle(ctx *fasthttp.RequestCtx) {
	w.secure(ctx)
	if !ctx.IsGet() && !ctx.IsHead() {
		ctx.Response.Header.Set("Allow", "GET, HEAD")
		fail(ctx, fasthttp.StatusMethodNotAllowed, "Only GET and HEAD here.")
		return
	}
	path := string(ctx.Path())
	rest, ok := strings.CutPrefix(path, "/watch/")
	switch {
	case path == "/":
		w.index.serve(ctx, false)
	case path == "/favicon.ico":
		w.assets["icon.svg"].serve(ctx, false)
	case path == "/watch" || ok && rest == "":
		// A path of our own, so that what the client claims in Host goes nowhere.
		ctx.Response.Header.Set("Location", "/")
		ctx.SetStatusCode(fasthttp.StatusFound)
	case !ok:
		fail(ctx, fasthttp.StatusNotFound, "Nothing is here. Streams are at /app/name.flv, the page of one at /watch/app/name.")
	case rest == "streams.json":
		w.list(ctx)
	case w.assets[rest] != nil:
		w.assets[rest].serve(ctx, len(ctx.QueryArgs().Peek("v")) > 0)
	case !strings.Contains(strings.Trim(rest, "/"), "/"):
		fail(ctx, fasthttp.StatusNotFound, "A stream's name has two parts: /watch/app/name.")
	case strings.HasSuffix(rest, ".flv"):
		to := url.URL{Path: strings.TrimSuffix(path, ".flv"), RawQuery: string(ctx.URI().QueryString())}
		ctx.Response.Header.Set("Location", to.String())
		ctx.SetStatusCode(fasthttp.StatusFound)
	default:
		w.page.serve(ctx, false)
	}
}

func (w *Watch) list(ctx *fasthttp.RequestCtx) {
	if w.opt.Streams == nil {
		fail(ctx, fasthttp.StatusNotFound, "The list of streams is private on this node.")
		return
	}
	live := w.opt.Streams()
	if live == nil {
		live = []Live{}
	}
	b, err := json.Marshal(live)
	if err != nil {
		fail(ctx, fasthttp.StatusInternalServerError, "The list cannot be shown.")
		return
	}
	ctx.SetContentType("application/json")
	ctx.Response.Header.Set("Cache-Control", "no-store")
	ctx.SetBody(b)
}

// plainHost is a Host that may be repeated in a header: a name or an address, and a port.
var plainHost = regexp.MustCompile(`^[A-Za-z0-9._\-\[\]:]{1,255}$`)

// secure sets what holds for every answer. Scripts and styles come from here alone
// and are never inline; the picture comes from a blob, which is how Media Source
// Extensions work; frames are fetched from this host, by HTTP or WebSocket, and from
// where it sends players, which may be any node: a browser holds the policy against
// each step of a redirect.
func (w *Watch) secure(ctx *fasthttp.RequestCtx) {
	connect := "'self'"
	if w.opt.Elsewhere {
		connect += " http: https:"
	}
	if host := ctx.Host(); plainHost.Match(host) { // older browsers do not take 'self' for ws
		connect += " ws://" + string(host) + " wss://" + string(host)
	}
	h := &ctx.Response.Header
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
		"media-src 'self' blob:; connect-src "+connect+"; base-uri 'none'; form-action 'none'; frame-ancestors 'self'")
	h.Set("X-Content-Type-Options", "nosniff")
	// The address of a page may hold a token.
	h.Set("Referrer-Policy", "same-origin")
}

func fail(ctx *fasthttp.RequestCtx, status int, text string) {
	ctx.SetStatusCode(status)
	ctx.SetContentType("text/plain; charset=utf-8")
	ctx.Response.Header.Set("Cache-Control", "no-store")
	ctx.SetBodyString(text + "\n")
}
