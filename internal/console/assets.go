package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/valyala/fasthttp"
)

// dist is what is built from web; see web/build.mjs.
//
//go:embed dist
var dist embed.FS

// file is a part of the page.
type file struct {
	kind      string // its content type
	etag      string
	immutable bool // its name changes with its content
	plain     []byte
	packed    []byte // by gzip; nil where it is not smaller
}

// kinds are content types by the end of a name; a machine's own table may lack some.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/x-icon", ".json": "application/json",
	".txt": "text/plain; charset=utf-8", ".woff2": "font/woff2", ".webmanifest": "application/manifest+json",
}

// embedded are the files of dist by path. They are compressed once in a program, when
// the first console is made.
var embedded = sync.OnceValues(func() (map[string]*file, error) {
	root, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, err
	}
	files, err := loadFiles(root)
	if err == nil && files["/index.html"] == nil {
		err = errors.New("the console has no index.html: build it with make console")
	}
	return files, err
})

func loadFiles(root fs.FS) (map[string]*file, error) {
	files, w := map[string]*file{}, newPacker(gzip.BestCompression)
	return files, fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		f := &file{kind: kinds[path.Ext(name)], plain: b, immutable: strings.HasPrefix(name, "assets/")}
		if f.kind == "" {
			f.kind = "application/octet-stream"
		}
		sum := sha256.Sum256(b)
		f.etag = `"` + hex.EncodeToString(sum[:12]) + `"`
		if small := packed(w, b); len(small) < len(b) {
			f.packed = small
		}
		files["/"+name] = f
		return nil
	})
}

// file answers with a part of the page, and with the page itself for all paths that
// name none: it shows what they mean. Only what looks like a part is not there: it is of
// another version of the page, or browsers and others ask for it by themselves.
func (c *Console) file(ctx *fasthttp.RequestCtx, path string) {
	f := c.files[path]
	if f == nil {
		if strings.HasPrefix(path, "/assets/") || strings.LastIndexByte(path, '/') == 0 && strings.Contains(path, ".") {
			ctx.Error("no such part of the console: load the page again\n", fasthttp.StatusNotFound)
			guardHeaders(ctx, pagePolicy)
			return
		}
		f = c.files["/index.html"]
	}
	h := &ctx.Response.Header
	ctx.SetContentType(f.kind)
	h.Set("ETag", f.etag)
	h.Set("Vary", "Accept-Encoding")
	if h.Set("Cache-Control", "no-cache"); f.immutable {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if strings.Contains(string(ctx.Request.Header.Peek("If-None-Match")), f.etag) {
		ctx.SetStatusCode(fasthttp.StatusNotModified)
		return
	}
	if f.packed != nil && ctx.Request.Header.HasAcceptEncoding("gzip") {
		h.Set("Content-Encoding", "gzip")
		ctx.Response.SetBodyRaw(f.packed)
		return
	}
	ctx.Response.SetBodyRaw(f.plain)
}
