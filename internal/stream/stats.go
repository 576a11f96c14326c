package stream

import (
	"maps"
	"sync/atomic"
	"time"

	"millrace/internal/flv"
	"millrace/internal/session"
)

// rateWindow is over how much time the bitrate is measured before it is smoothed.
const rateWindow = time.Second

// meter measures a stream while it is published. Guarded by Stream.mu.
type meter struct {
	began    time.Time // of the current publish
	newest   time.Time // of the newest tag
	tags     uint64    // of the current publish
	bytes    uint64    // of the current publish
	drops    map[session.Reason]uint64
	winBegan time.Time
	winBytes int64
	keyAt    int64 // time of the newest keyframe, -1 before the first
	pictures int64 // since then
	gop      int64 // ms from keyframe to keyframe
	fps      float64
}

func (m *meter) restart(now time.Time) {
	drops := m.drops
	if drops == nil {
		drops = make(map[session.Reason]uint64)
	}
	*m = meter{began: now, winBegan: now, newest: now, drops: drops, keyAt: -1}
}

// came counts a tag that came in and keeps rate up to date.
func (m *meter) came(now time.Time, t flv.Tag, rate *atomic.Int64) {
	n := int64(len(t.Wire))
	m.tags++
	m.bytes += uint64(n)
	m.newest = now
	m.winBytes += n
	took := now.Sub(m.winBegan)
	if took < rateWindow {
		return
	}
	r := m.winBytes * int64(time.Second) / int64(took)
	if old := rate.Load(); old > 0 {
		r = (3*old + r) / 4
	}
	rate.Store(r)
	m.winBegan, m.winBytes = now, 0
}

// picture counts a picture, however many tags it has.
func (m *meter) picture(dts int64, key bool) {
	if key {
		if m.keyAt >= 0 && dts > m.keyAt {
			m.gop = dts - m.keyAt
			m.fps = float64(m.pictures) * 1000 / float64(m.gop)
		}
		m.keyAt, m.pictures = dts, 0
	}
	m.pictures++
}

// Stats are the figures of a stream at one moment.
type Stats struct {
	Name       Name
	State      State
	Epoch      uint64        // how many publishes there were
	Publisher  uint64        // session of the publisher, 0 when there is none
	Since      time.Time     // begin of the newest publish
	Silent     time.Duration // since its newest tag
	Readers    int
	Audio      flv.Tag // its sequence header, or zero
	Video      flv.Tag // its sequence header, or zero
	Meta       flv.Tag // its metadata, or zero
	HasAudio   bool
	HasVideo   bool
	AudioCodec flv.Codec
	VideoCodec flv.Codec
	FPS        float64       // pictures per second of media time over the newest whole GOP
	GOP        time.Duration // length of the newest whole GOP
	Bitrate    int64         // bits per second
	BytesIn    uint64        // in the newest publish
	TagsIn     uint64        // in the newest publish
	DTS        time.Duration // newest time on the stream's clock
	LogBytes   int64         // held in the log, with what each tag costs besides its bytes
	LogTags    uint64        // held in the log
	Drops      map[session.Reason]uint64
}

// Stats returns the figures of s.
func (h *Hub) Stats(s *Stream, now time.Time) Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &s.stats
	st := Stats{
		Name: s.name, State: s.State(), Epoch: s.publishes, Since: m.began, Readers: h.Readers(s),
		Audio: s.headers.Audio, Video: s.headers.Video, Meta: s.headers.Meta,
		FPS: m.fps, GOP: time.Duration(m.gop) * time.Millisecond, Bitrate: 8 * s.rate.Load(),
		BytesIn: m.bytes, TagsIn: m.tags, DTS: time.Duration(s.clock.newest) * time.Millisecond,
		AudioCodec: s.codecs[0], VideoCodec: s.codecs[1],
		Drops: maps.Clone(m.drops),
	}
	st.HasAudio, st.HasVideo = s.Tracks()
	if s.pub != nil {
		st.Silent = now.Sub(m.newest)
		if s.pub.by != nil {
			st.Publisher = s.pub.by.ID
		}
	}
	if w := s.log.window.Load(); len(w.blocks) > 0 {
		st.LogBytes = s.log.cost()
		st.LogTags = s.log.next.Load() - w.first
	}
	return st
}
