package control

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"

	"github.com/valyala/fasthttp"
)

// MaxUnknown is how many bytes a body may have before it is known who sends it. Most
// heartbeats have fewer.
const MaxUnknown = 16 << 10

// BodyLimit returns how many bytes the body of a request may have, of which h is the head.
// HTTP servers in front of a Server ask it when the head has come: memory is given to a
// body before it is there, and must not be given to everybody who promises one. Who
// sends a long heartbeat says its digest in the head, under the signature.
func (s *Server) BodyLimit(h *fasthttp.RequestHeader) int {
	if path, _, _ := bytes.Cut(h.RequestURI(), []byte("?")); string(path) != heartbeatPath {
		return MaxUnknown
	}
	var q question
	signature := questionOf(h, &q)
	q.encoding, q.sum = string(h.ContentEncoding()), new([sha256.Size]byte)
	digest := h.Peek(digestField)
	if len(q.encoding) > maxEncoding || len(digest) != hex.EncodedLen(len(q.sum)) {
		return MaxUnknown
	}
	if _, err := hex.Decode(q.sum[:], digest); err != nil {
		return MaxUnknown
	}
	if r, _ := s.verify(q, signature); r != NotRefused {
		return MaxUnknown
	}
	return MaxSent
}

// questionOf reads what a head says of a question, but for its body, and returns the
// signature.
func questionOf(h *fasthttp.RequestHeader, q *question) (signature string) {
	*q = question{
		node: string(h.Peek(nodeField)), nonce: string(h.Peek(nonceField)), method: string(h.Method()), target: string(h.RequestURI()),
	}
	return string(h.Peek(signatureField))
}
