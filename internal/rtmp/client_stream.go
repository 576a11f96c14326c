package rtmp

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"millrace/internal/flv"
	"millrace/internal/session"
)

// Transaction ids of a client's calls.
const (
	txRelease      = 2
	txFCPublish    = 3
	txCreateStream = 4
)

// bufferLength is what a playing client says its buffer is, in ms (RTMP 1.0,
// section 7.1.7). Servers send a live stream as it comes whatever this says.
const bufferLength = 1000

// createStream opens the one message stream of the client.
func (c *Client) createStream() error {
	if err := c.call(0, "createStream", txCreateStream, nil); err != nil {
		return err
	}
	cmd, err := c.result(txCreateStream)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stream = streamID(cmd.number())
	return err
}

// begin claims the client for a role.
func (c *Client) begin(a session.Action) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun {
		return ErrRole
	}
	c.begun, c.role = true, a
	return nil
}

// Publish publishes the stream of the URL. It returns when the server has said
// that the publish began; a refusal is a [*StatusError].
func (c *Client) Publish(ctx context.Context) error {
	if err := c.begin(session.Publish); err != nil {
		return err
	}
	if err := c.within(ctx, c.publish); err != nil {
		return fmt.Errorf("publish %s/%s: %w", c.target.app, c.bareName(), err)
	}
	listening := make(chan struct{})
	c.mu.Lock()
	c.listening = listening
	c.mu.Unlock()
	go c.listen(listening)
	return nil
}

// bareName is the stream's name without the query, where the secrets are.
func (c *Client) bareName() string {
	name := c.target.name
	for i := range len(name) {
		if name[i] == '?' {
			return name[:i]
		}
	}
	return name
}

func (c *Client) publish() error {
	if err := c.call(0, "releaseStream", txRelease, nil, c.target.name); err != nil {
		return err
	}
	if err := c.call(0, "FCPublish", txFCPublish, nil, c.target.name); err != nil {
		return err
	}
	if err := c.createStream(); err != nil {
		return err
	}
	if err := c.call(c.stream, "publish", 5, nil, c.target.name, "live"); err != nil {
		return err
	}
	return c.await(codePublishStart)
}

// await waits for an onStatus. Media that comes first is kept, for servers that
// do not announce it.
func (c *Client) await(code string) error {
	for {
		m, err := c.next()
		if err != nil {
			return unexpected(err)
		}
		if m.kind != typeCommand && m.kind != typeCommandAMF3 {
			if c.role == session.Play {
				c.keep(&m)
				return nil
			}
			continue
		}
		cmd, err := parseCommand(&m)
		if err != nil {
			return err
		}
		s := cmd.status()
		switch {
		case cmd.name == "_error", cmd.name == "onStatus" && s.level == levelError:
			return s.refusal()
		case cmd.name == "onStatus" && s.code == code:
			return nil
		}
	}
}

// listen reads what the server says to a publisher: acknowledgements, pings, and
// perhaps why it ends. Close waits for it.
func (c *Client) listen(done chan struct{}) {
	defer close(done)
	defer c.net.Close() // a blocked Write must learn of it
	for {
		m, err := c.next()
		if err != nil {
			c.lost = unexpected(err)
			return
		}
		if m.kind != typeCommand {
			continue
		}
		cmd, err := parseCommand(&m)
		if err != nil {
			c.lost = err
			return
		}
		if s := cmd.status(); cmd.name == "onStatus" && s.level == levelError {
			c.lost = s.refusal()
			return
		}
	}
}

// Write publishes one tag, with the low 32 bits of its time. It blocks at most for
// the write timeout. After the server has ended the publish, the error says why.
func (c *Client) Write(t flv.Tag) error {
	if c.role != session.Publish || c.listening == nil {
		return ErrRole
	}
	select {
	case <-c.listening:
		return c.lost
	default:
	}
	if t.Is(flv.Metadata) {
		t = flv.New(flv.Script, t.DTS, append(encode(setDataFrame), t.Payload()...))
	}
	c.batch.reset()
	c.batch.add(c.cfg.ChunkSize, c.stream, t)
	err := c.out.media(&c.batch)
	if err == nil {
		return nil
	}
	select {
	case <-c.listening: // it may have been told before the connection broke
		return c.lost
	case <-time.After(farewellTimeout):
		return fmt.Errorf("publish to %s: %w", c.target.addr, err)
	}
}

// Play plays the stream of the URL. It returns when the server has said that it
// begins; a refusal is a [*StatusError].
func (c *Client) Play(ctx context.Context) error {
	if err := c.begin(session.Play); err != nil {
		return err
	}
	err := c.within(ctx, func() error {
		if err := c.createStream(); err != nil {
			return err
		}
		if err := c.call(c.stream, "play", 5, nil, c.target.name, -2000); err != nil {
			return err
		}
		event := binary.BigEndian.AppendUint32([]byte{0, 3}, c.stream) // set buffer length
		event = binary.BigEndian.AppendUint32(event, bufferLength)
		if err := c.out.control(chunksControl, typeUserControl, 0, event); err != nil {
			return err
		}
		return c.await(codePlayStart)
	})
	if err != nil {
		return fmt.Errorf("play %s/%s: %w", c.target.app, c.bareName(), err)
	}
	return nil
}

// Read returns the next tag, whose bytes are the caller's. Times are unwrapped over
// 32 bits. The error is io.EOF when the server says that the stream is over, a
// [*StatusError] when it gives another reason, io.ErrUnexpectedEOF when it just went.
func (c *Client) Read() (flv.Tag, error) {
	if c.role != session.Play || !c.begun {
		return flv.Tag{}, ErrRole
	}
	for len(c.early) == 0 {
		c.net.SetReadDeadline(time.Now().Add(c.cfg.IdleTimeout))
		m, err := c.next()
		if err != nil {
			return flv.Tag{}, unexpected(err)
		}
		if m.kind != typeCommand && m.kind != typeCommandAMF3 {
			c.keep(&m)
			continue
		}
		cmd, err := parseCommand(&m)
		if err != nil {
			return flv.Tag{}, err
		}
		if cmd.name != "onStatus" {
			continue
		}
		switch s := cmd.status(); {
		case s.level == levelError:
			return flv.Tag{}, s.refusal()
		case s.code == codePlayStop, s.code == codePlayUnpublished, s.code == "NetStream.Play.Complete":
			return flv.Tag{}, io.EOF
		}
	}
	t := c.early[0]
	c.early = c.early[1:]
	return t, nil
}

// keep adds the tags of a media message to those that Read returns.
func (c *Client) keep(m *message) {
	if m.kind == typeAggregate {
		_ = splitAggregate(m, func(part *message) error { c.keep(part); return nil })
		return
	}
	t, r := mediaTag(m)
	if r != session.None {
		return
	}
	raw := uint32(t.DTS)
	if !c.timed {
		c.clock, c.timed = int64(raw), true
	} else {
		c.clock += int64(int32(raw - uint32(c.clock)))
	}
	t.DTS = c.clock
	flv.SetTime(t.Wire, t.DTS)
	if len(c.early) == 0 {
		c.early = c.room[:0]
	}
	c.early = append(c.early, t)
}
