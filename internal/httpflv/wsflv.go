package httpflv

import (
	"bufio"
	"crypto/sha1" //nolint:gosec // RFC 6455 asks for it; it protects nothing
	"encoding/base64"
	"errors"
	"io"
	"time"

	"github.com/gobwas/ws"
	"github.com/valyala/fasthttp"

	"millrace/internal/session"
)

// upgradeRequired is for a handshake in another version than 13.
var upgradeRequired = refusal{
	status: fasthttp.StatusUpgradeRequired, reason: session.BadRequest, header: "Sec-WebSocket-Version: 13\r\n",
	text: "this WebSocket version is not supported: use version 13",
}

// parseUpgrade checks the opening handshake (RFC 6455, 4.2.1).
func (st *settings) parseUpgrade(ctx *fasthttp.RequestCtx, p *play) *refusal {
	h := &ctx.Request.Header
	p.wsKey = string(h.Peek("Sec-WebSocket-Key"))
	nonce, err := base64.StdEncoding.DecodeString(p.wsKey)
	switch {
	case !ctx.IsGet() || !h.IsHTTP11() || !headerHas(ctx, "Connection", "upgrade"):
		r := badRequest("a WebSocket is opened by GET over HTTP/1.1 with Connection: Upgrade")
		return &r
	case string(h.Peek("Sec-WebSocket-Version")) != "13":
		return &upgradeRequired
	case err != nil || len(nonce) != 16:
		r := badRequest("Sec-WebSocket-Key must be 16 bytes in base64")
		return &r
	case !st.allowsOrigin(string(h.Peek("Origin"))):
		return &badOrigin
	}
	return nil
}

// appendUpgrade appends the server's side of the opening handshake (RFC 6455, 4.2.2).
func appendUpgrade(dst []byte, key string) []byte {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // see above
	dst = append(dst, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "...)
	dst = base64.StdEncoding.AppendEncode(dst, sum[:])
	return append(dst, "\r\n\r\n"...)
}

// closeFrame says why the stream ends.
func closeFrame(r session.Reason) []byte {
	code := ws.StatusNormalClosure
	switch r {
	case session.Kicked, session.TokenExpired:
		code = ws.StatusPolicyViolation
	case session.ProtocolError:
		code = ws.StatusProtocolError
	}
	return ws.MustCompileFrame(ws.NewCloseFrame(ws.NewCloseFrameBody(code, r.String())))
}

// maxIgnored is how much data a viewer may send in one message. It has nothing to
// say, but some players send a word of their own.
const maxIgnored = 64 << 10

// How many frames a viewer may send: players ping once in a few seconds.
const frameBurst, frameRate = 100, 50

// readFrames reads what a viewer sends until it closes or is gone, or breaks the
// rules, which is the reason that it returns. Answers to its questions are put into
// control while that has room: a peer that asks without reading gets no more.
func readFrames(from io.Reader, control chan<- []byte) session.Reason {
	var payload [ws.MaxControlFramePayloadSize]byte
	in := bufio.NewReaderSize(from, 512)
	left, at := float64(frameBurst), time.Now()
	for {
		h, err := ws.ReadHeader(in)
		switch {
		case errors.Is(err, ws.ErrHeaderLengthMSB), errors.Is(err, ws.ErrHeaderLengthUnexpected):
			return session.ProtocolError
		case err != nil:
			return session.None
		case !h.Masked || h.Rsv != 0 || h.Length > maxIgnored:
			return session.ProtocolError
		}
		now := time.Now()
		left, at = min(frameBurst, left+now.Sub(at).Seconds()*frameRate)-1, now
		if left < 0 {
			return session.ProtocolError
		}
		if !h.OpCode.IsControl() {
			if _, err := io.CopyN(io.Discard, in, h.Length); err != nil {
				return session.None
			}
			continue
		}
		if h.Length > int64(len(payload)) || !h.Fin {
			return session.ProtocolError
		}
		p := payload[:h.Length]
		if _, err := io.ReadFull(in, p); err != nil {
			return session.None
		}
		switch h.OpCode {
		case ws.OpPing:
			ws.Cipher(p, h.Mask, 0)
			select {
			case control <- ws.MustCompileFrame(ws.NewPongFrame(p)):
			default:
			}
		case ws.OpClose:
			ws.Cipher(p, h.Mask, 0)
			select {
			case control <- ws.MustCompileFrame(ws.NewCloseFrame(p)):
			default:
			}
			return session.None
		}
	}
}
