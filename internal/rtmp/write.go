package rtmp

import (
	"errors"
	"net"
	"os"
	"time"

	"millrace/internal/session"
)

// pieceBytes is what is written at once where writev is not to be had: a TLS record.
const pieceBytes = 16 << 10

// write is the sink of the connection's chunkWriter. It blocks for as long as the
// peer takes something in each stall time.
func (c *conn) write(bufs *net.Buffers) error {
	if c.plain == nil {
		return c.writePieces(bufs)
	}
	for {
		c.armWrite()
		n, err := bufs.WriteTo(c.plain)
		switch {
		case err == nil:
			return nil
		case n > 0 && len(*bufs) > 0 && errors.Is(err, os.ErrDeadlineExceeded) && c.reason() == session.None:
			continue // slow is not stalled: WriteTo has moved bufs along
		}
		return err
	}
}

// writePieces copies bufs together and writes them piece by piece. After a write
// that timed out a TLS connection is of no use, so each piece has the stall time.
func (c *conn) writePieces(bufs *net.Buffers) error {
	if c.scratch == nil {
		c.scratch = make([]byte, 0, pieceBytes)
	}
	piece := c.scratch[:0]
	for _, b := range *bufs {
		for len(b) > 0 {
			n := min(len(b), pieceBytes-len(piece))
			piece = append(piece, b[:n]...)
			b = b[n:]
			if len(piece) == pieceBytes {
				if err := c.writePiece(piece); err != nil {
					return err
				}
				piece = piece[:0]
			}
		}
	}
	if len(piece) == 0 {
		return nil
	}
	return c.writePiece(piece)
}

func (c *conn) writePiece(p []byte) error {
	c.armWrite()
	_, err := c.net.Write(p)
	return err
}

func (c *conn) armWrite() {
	c.net.SetWriteDeadline(time.Now().Add(c.srv.config().StallTimeout))
	if c.reason() != session.None { // end came, perhaps in between
		c.net.SetWriteDeadline(time.Now().Add(farewellTimeout))
	}
}
