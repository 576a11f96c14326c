package watch

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"
)

//go:embed assets/*.html assets/*.css assets/*.js assets/*.svg assets/mpegts.js.LICENSE
var files embed.FS

var contentTypes = map[string]string{
	".css":     "text/css; charset=utf-8",
	".js":      "text/javascript; charset=utf-8",
	".svg":     "image/svg+xml",
	".LICENSE": "text/plain; charset=utf-8",
}

// asset is one file that a browser asks for. Immutable.
type asset struct {
	contentType string
	etag        string
	plain       []byte
	packed      func() []byte // gzip, made at the first request that takes it
}

func newAsset(contentType string, b []byte) *asset {
	return &asset{
		contentType: contentType,
		etag:        `"` + sum(b)[:16] + `"`,
		plain:       b,
		packed: sync.OnceValue(func() []byte {
			var out bytes.Buffer
			z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // fails only for a bad level
			z.Write(b)                                              // never fails into a Buffer
			z.Close()
			return out.Bytes()
		}),
	}
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// loadAssets returns the files by name, and one version for all of them. Modules
// import one another by "./name.js": the version is added there, so that everything
// can be cached for ever and nothing stale is ever mixed with something new.
func loadAssets() (version string, assets map[string]*asset, err error) {
	entries, err := files.ReadDir("assets")
	if err != nil {
		return "", nil, err
	}
	all := sha256.New()
	bodies := map[string][]byte{}
	for _, e := range entries {
		b, err := files.ReadFile("assets/" + e.Name())
		if err != nil {
			return "", nil, err
		}
		all.Write(b)
		if path.Ext(e.Name()) != ".html" {
			bodies[e.Name()] = b
		}
	}
	version = hex.EncodeToString(all.Sum(nil)[:6])
	assets = map[string]*asset{}
	for name, b := range bodies {
		contentType := contentTypes[path.Ext(name)]
		if contentType == "" {
			return "", nil, fmt.Errorf("watch: no content type for %s", name)
		}
		if strings.HasSuffix(name, ".js") {
			for other := range bodies {
				b = bytes.ReplaceAll(b, []byte(`from "./`+other+`"`), []byte(`from "./`+other+`?v=`+version+`"`))
			}
		}
		assets[name] = newAsset(contentType, b)
	}
	return version, assets, nil
}

// serve answers with the file. An address with the version in it never changes its
// content; any other has to be asked for again, which costs a 304.
func (a *asset) serve(ctx *fasthttp.RequestCtx, versioned bool) {
	h := &ctx.Response.Header
	cache := "no-cache"
	if versioned {
		cache = "public, max-age=31536000, immutable"
	}
	h.Set("Cache-Control", cache)
	h.Set("ETag", a.etag)
	h.Set("Vary", "Accept-Encoding")
	if bytes.Contains(ctx.Request.Header.Peek("If-None-Match"), []byte(a.etag)) {
		ctx.SetStatusCode(fasthttp.StatusNotModified)
		return
	}
	ctx.SetContentType(a.contentType)
	if ctx.Request.Header.HasAcceptEncoding("gzip") {
		h.Set("Content-Encoding", "gzip")
		ctx.Response.SetBodyRaw(a.packed())
		return
	}
	ctx.Response.SetBodyRaw(a.plain)
}
