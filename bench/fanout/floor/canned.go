package main

import (
	"time"

	"millrace/internal/flv"
	"millrace/tools/frames"
)

// canned is a stream that was made beforehand and is played in a circle.
type canned struct {
	head   []byte // FLV header, metadata and sequence headers
	tags   []flv.Tag
	due    []time.Duration // within a round
	stamps []stamp         // where each tag's stamp is
	round  time.Duration   // length of a round

	// Where the player is.
	next  int
	laps  int64
	batch []flv.Tag // due since the last call, in order
	key   int       // index in batch of the first keyframe, or -1
}

// stamp is what does not change in a tag's stamp from round to round.
type stamp struct {
	seq, media int64
}

// newCanned makes a round of two GOPs, cut at a keyframe.
func newCanned(cfg frames.Config) (*canned, error) {
	g, err := frames.NewGenerator(cfg)
	if err != nil {
		return nil, err
	}
	c := &canned{head: flv.AppendFileHeader(nil, !cfg.NoAudio, !cfg.NoVideo), round: 2 * cfg.GOP}
	for _, h := range g.Headers() {
		c.head = append(c.head, h.Wire...)
	}
	for g.Due() < c.round {
		due := g.Due()
		t := g.Next(time.Time{})
		c.stamps = append(c.stamps, stamp{int64(len(c.tags)), t.DTS})
		c.tags, c.due = append(c.tags, t), append(c.due, due)
	}
	return c, nil
}

// advance fills batch with the tags that came due since it was called last, each
// stamped with the time at which it was due.
func (c *canned) advance(begin, now time.Time) {
	c.batch, c.key = c.batch[:0], -1
	for {
		due := begin.Add(time.Duration(c.laps)*c.round + c.due[c.next])
		if due.After(now) || len(c.batch) == len(c.tags) {
			return
		}
		t, s := &c.tags[c.next], c.stamps[c.next]
		frames.Restamp(t, s.seq+c.laps*int64(len(c.tags)), s.media+c.laps*c.round.Milliseconds(), due.UnixNano())
		if c.key < 0 && t.Is(flv.Keyframe) {
			c.key = len(c.batch)
		}
		c.batch = append(c.batch, *t)
		if c.next++; c.next == len(c.tags) {
			c.next, c.laps = 0, c.laps+1
		}
	}
}
