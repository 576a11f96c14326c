package rtmp

import (
	"crypto/rand"
	"io"

	"millrace/internal/session"
)

// Sizes of the handshake (RTMP 1.0, section 5.2): version bytes C0 and S0, then
// C1, C2, S1 and S2 of this many bytes.
const (
	handshakeSize = 1536
	version       = 3
)

// serverHandshake stands between the peer and go-rtmp until C2 has come. go-rtmp
// writes its answer in twelve pieces; they go out as one. It is owned by the
// reading goroutine, in which go-rtmp writes as well during the handshake.
type serverHandshake struct {
	fromPeer []byte // C0 C1, then C2, what go-rtmp has not read yet
	c1       []byte
	fromUs   []byte // S0 S1 S2 as far as go-rtmp has written them
	gotC2    bool
}

// checkVersion wants an unencrypted RTMP. It ends what is not RTMP at its first byte.
func checkVersion(c0 byte) error {
	switch {
	case c0 == version:
		return nil
	case c0 == 6 || c0 == 8 || c0 == 9:
		return faultf(session.HandshakeFailed, "encrypted RTMP (version %d) is not supported: use rtmps", c0)
	case c0 == 22:
		return faultf(session.HandshakeFailed, "TLS on a port for plain RTMP: use rtmp instead of rtmps, or the port for rtmps")
	case c0 > 31: // section 5.2.2: "not allowed", so that RTMP can be told from text
		return faultf(session.HandshakeFailed, "not RTMP: begins with the byte %#02x", c0)
	}
	return nil // section 5.2.2: answer 3 and let the client decide
}

// next returns what go-rtmp is to read. It reads C0 and C1 before it gives out a
// byte, so that S0, S1 and S2 can be one write. The four bytes that stand for a
// version in C1 are not looked at: clients put anything there.
func (h *serverHandshake) next(in *chunkReader) error {
	if h.c1 == nil {
		b := make([]byte, 1+handshakeSize)
		if err := in.readFull(b[:1]); err != nil {
			return err
		}
		if err := checkVersion(b[0]); err != nil {
			return err
		}
		if err := in.readFull(b[1:]); err != nil {
			return unexpected(err)
		}
		h.fromPeer, h.c1 = b, b[1:]
		return nil
	}
	b := make([]byte, handshakeSize)
	if err := in.readFull(b); err != nil {
		return unexpected(err)
	}
	h.fromPeer, h.gotC2 = b, true
	return nil
}

// written takes what go-rtmp writes and returns the answer once it is whole. S2
// becomes an exact echo of C1: section 5.2.4 would have a second time in its
// bytes 4 to 7, but strict clients compare all of it.
func (h *serverHandshake) written(p []byte) (answer []byte) {
	h.fromUs = append(h.fromUs, p...)
	if len(h.fromUs) < 1+2*handshakeSize {
		return nil
	}
	copy(h.fromUs[1+handshakeSize:], h.c1)
	return h.fromUs
}

// clientHandshake does the handshake from the other side. S2 is not compared with
// C1: servers that speak the digest handshake send something else.
func clientHandshake(w io.Writer, in *chunkReader) error {
	c := make([]byte, 1+handshakeSize)
	c[0] = version
	if _, err := rand.Read(c[9:]); err != nil {
		return err
	}
	if _, err := w.Write(c); err != nil {
		return err
	}
	s := make([]byte, 1+2*handshakeSize)
	if err := in.readFull(s); err != nil {
		return unexpected(err)
	}
	if s[0] > 31 {
		return faultf(session.HandshakeFailed, "not an RTMP server: it answers with the byte %#02x", s[0])
	}
	_, err := w.Write(s[1 : 1+handshakeSize])
	return err
}
