package rtmp

import (
	"errors"
	"fmt"
	"time"

	"millrace/internal/setting"
)

// Config bounds what one connection may cost. All of it can be changed while the
// server runs; connections take up new timeouts at once and new sizes when they
// begin to publish. Until then, and as players, they have the limits of a guest.
type Config struct {
	// HandshakeTimeout is from accept to the last byte of the handshake, TLS included.
	HandshakeTimeout time.Duration
	// CommandTimeout is from the handshake, or from the end of a publish, to the next
	// publish or play command.
	CommandTimeout time.Duration
	// IdleTimeout is how long a publisher may send no picture and no sound.
	IdleTimeout time.Duration
	// StallTimeout is how long a player may take nothing while there is something to send.
	StallTimeout time.Duration
	// PlayWait is how long a player of a missing stream waits for it. 0 refuses at once.
	PlayWait time.Duration
	// MessageBytes is the limit of one message.
	MessageBytes int
	// PartialBytes is the limit of all unfinished messages of a connection together.
	PartialBytes int
	// TotalPartialBytes is the limit of all unfinished messages of all connections.
	TotalPartialBytes int64
	// ChunkStreams is how many chunk streams a peer may use.
	ChunkStreams int
	// ChunkSize is what we announce and send with.
	ChunkSize int
}

// DefaultConfig returns limits that no encoder or player known to us runs into.
func DefaultConfig() Config {
	return Config{
		HandshakeTimeout:  5 * time.Second,
		CommandTimeout:    10 * time.Second,
		IdleTimeout:       30 * time.Second,
		StallTimeout:      30 * time.Second,
		MessageBytes:      8 << 20,   // a 4K keyframe at 100 Mbit/s is about 2 MB
		PartialBytes:      16 << 20,  // two of the largest messages, interleaved
		TotalPartialBytes: 256 << 20, // a thousand pictures of 256 KB on their way
		ChunkStreams:      64,        // encoders use 3 to 8
		ChunkSize:         60_000,    // nearly every tag is one chunk
	}
}

// Validate checks every value. Its errors name the key and the accepted range.
func (c Config) Validate() error {
	errs := []error{
		setting.Within("handshake_timeout", c.HandshakeTimeout, 100*time.Millisecond, time.Minute),
		setting.Within("command_timeout", c.CommandTimeout, 100*time.Millisecond, 5*time.Minute),
		setting.Within("idle_timeout", c.IdleTimeout, time.Second, time.Hour),
		setting.Within("stall_timeout", c.StallTimeout, time.Second, time.Hour),
		setting.Within("play_wait", c.PlayWait, 0, 5*time.Minute),
		setting.Within("message_bytes", c.MessageBytes, 64<<10, maxChunkSize),
		setting.Within("partial_bytes", c.PartialBytes, 64<<10, 1<<30),
		setting.Within("total_partial_bytes", c.TotalPartialBytes, 1<<20, 1<<40),
		setting.Within("chunk_streams", c.ChunkStreams, 4, 65598),
		setting.Within("chunk_size", c.ChunkSize, defaultChunkSize, 1<<20),
	}
	if c.PartialBytes < c.MessageBytes {
		errs = append(errs, fmt.Errorf("partial_bytes: is %d, must be at least message_bytes (%d)", c.PartialBytes, c.MessageBytes))
	}
	return errors.Join(errs...)
}

// What a peer that publishes nothing may make a connection hold: two commands side
// by side. Its media is passed over.
const guestPartial, guestStreams = 2*maxCommand + 2, 16

// guest returns the limits of a peer that publishes nothing.
func (c Config) guest() limits {
	return limits{message: c.MessageBytes, partial: guestPartial, streams: min(guestStreams, c.ChunkStreams), skip: true}
}

// limits returns what a publisher may send.
func (c Config) limits() limits {
	return limits{message: c.MessageBytes, partial: c.PartialBytes, streams: c.ChunkStreams}
}
