package rtmp

import (
	"encoding/binary"
	"time"
)

// Ping asks the server for a sign of life: a pong (RTMP 1.0, section 7.1.7), of which
// [Client.Heard] tells. The specification has servers ping; ours answers clients too,
// others may not. It is for who calls Write.
func (c *Client) Ping() error {
	ping := [6]byte{1: eventPing}
	binary.BigEndian.PutUint32(ping[2:], uint32(time.Now().UnixMilli()))
	return c.out.control(chunksControl, typeUserControl, 0, ping[:])
}

// Heard returns when anything came from the server last.
func (c *Client) Heard() time.Time { return time.Unix(0, c.heard.Load()) }
