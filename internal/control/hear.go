package control

import (
	"bytes"
	"encoding/json"
	"time"
)

// ParseHeartbeat reads a heartbeat. Keys that are not known are passed over: routers
// and nodes are not upgraded in one instant. Nothing of it shares memory with b. What it
// says is checked by [Heartbeat.Validate].
func ParseHeartbeat(b []byte) (*Heartbeat, error) {
	if len(b) > MaxHeartbeat {
		return nil, deny(TooBig, "the heartbeat has %d bytes, at most %d are read", len(b), MaxHeartbeat)
	}
	// Streams and samples are most of it by far, and are read here; encoding/json reads
	// the rest, which is gathered without them.
	h := &Heartbeat{}
	s := &scanner{b: b}
	rest, copied := make([]byte, 0, min(len(b), 1<<10)), 0
	streams, samples := false, false
	for s.enter('{'); s.more('}'); {
		key := string(s.key())
		s.peek()
		from := s.at
		switch key {
		case "streams":
			if streams {
				s.fail("streams is there twice")
			}
			streams = true
			h.Streams.read(s)
			rest = append(append(rest, b[copied:from]...), "{}"...)
		case "samples":
			if samples {
				s.fail("samples is there twice")
			}
			samples = true
			h.Samples = readSamples(s)
			rest = append(append(rest, b[copied:from]...), "null"...)
		default:
			s.skip()
			continue
		}
		copied = s.at
	}
	s.end()
	if s.err != nil {
		return nil, refusedAs(BadRequest, "not a heartbeat", s.err)
	}
	rest = append(rest, b[copied:]...)
	if err := checkRest(rest); err != nil {
		return nil, err
	}
	read := h.Samples
	if err := json.Unmarshal(rest, h); err != nil {
		return nil, deny(BadRequest, "not a heartbeat: %v", err)
	}
	if samples {
		h.Samples = read
	}
	return h, nil
}

// Bounds of what a heartbeat has beside streams: what it may have of players, samples
// and events together stays far below.
const (
	maxRest   = 2 << 20
	maxValues = 128 << 10
)

// checkRest bounds what reading b may cost in memory: each value of an array takes some
// hundred bytes, and few of text.
func checkRest(b []byte) error {
	if len(b) > maxRest {
		return deny(TooBig, "the heartbeat has %d bytes beside its streams, at most %d are read", len(b), maxRest)
	}
	if n := bytes.Count(b, []byte(",")) + bytes.Count(b, []byte("[")) + bytes.Count(b, []byte("{")); n > maxValues {
		return deny(TooBig, "the heartbeat has %d values beside its streams, at most %d are read", n, maxValues)
	}
	return nil
}

// Validate returns why h cannot be true, as a sentence; [RefusalOf] gives the word. now
// is the time by the clock of the router.
func (h *Heartbeat) Validate(now time.Time) error {
	checks := []func() error{
		func() error { return h.checkSelf(now) }, h.checkCounts, h.checkFigures, h.checkIdentity, h.checkStreams,
		h.checkPlayers, h.checkRechecks, func() error { return h.checkEvents(now) },
	}
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}
