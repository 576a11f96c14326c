package main

import (
	"github.com/valyala/fasthttp"

	"millrace/internal/control"
)

// maxUnknown is how big a body may be of which the head does not prove who sends it.
const maxUnknown = control.MaxUnknown

// bodyLimit says how many bytes are read of a body. The HTTP server takes memory for all
// that is promised: a stranger with some hundred connections could have it all.
func (r *router) bodyLimit(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	limit := maxUnknown
	if n := h.ContentLength(); n < 0 || n > limit { // below 0: it is not known
		limit = min(max(r.server.BodyLimit(h), r.console.BodyLimit(h)), maxBody)
	}
	return fasthttp.RequestConfig{MaxRequestBodySize: limit}
}
