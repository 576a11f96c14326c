package httpflv

import (
	"sync/atomic"
	"time"
)

// Stats are the figures of a fan-out at one moment.
type Stats struct {
	Viewers int        // watching or waiting, of any kind
	Waiting int        // of those on shards, without anything to play yet
	Writes  uint64     // calls of writev
	Partial uint64     // of those, how many the socket did not take wholly
	Bytes   uint64     // given to sockets by writev, framing included
	Relayed uint64     // bytes given to viewers and nodes that are on no shard
	Load    float64    // bytes/s of both, averaged over some seconds
	Trunks  TrunkStats // of nodes to this one
	Shards  []ShardStats
}

// ShardStats are the figures of one shard.
type ShardStats struct {
	Viewers  int
	Waiting  int
	Feeds    int
	Interval time.Duration // between two writes to a viewer, at this moment
	Busy     float64       // share of the time that it works, smoothed
	Passes   uint64
	Writes   uint64
	Partial  uint64
	Bytes    uint64
}

// shardCounters are what a shard shows to others.
type shardCounters struct {
	viewers, waiting, feeds        atomic.Int64
	busy                           atomic.Int64 // in millionths
	passes, writes, partial, bytes atomic.Uint64
}

// publish copies the shard's own figures.
func (c *shardCounters) publish(s *shard) {
	c.viewers.Store(int64(s.count))
	c.waiting.Store(int64(s.waiting))
	c.feeds.Store(int64(len(s.feeds)))
	c.busy.Store(int64(s.load.busy * 1e6))
	c.passes.Store(s.passes)
	c.writes.Store(s.batch.counts.writes)
	c.partial.Store(s.batch.counts.partial)
	c.bytes.Store(s.batch.counts.bytes)
}

// Stats returns the figures of f.
func (f *Fanout) Stats() Stats {
	st := Stats{
		Viewers: int(f.admitted.Load()),
		Writes:  f.first[0].Load(), Partial: f.first[1].Load(), Bytes: f.first[2].Load(),
		Trunks:  TrunkStats{Trunks: int(f.trunks.Load()), Streams: int(f.riders.Load())},
		Relayed: f.relayed.Load(), Load: f.Load(),
	}
	for _, s := range f.shards {
		c := &s.stats
		x := ShardStats{
			Viewers: int(c.viewers.Load()), Waiting: int(c.waiting.Load()), Feeds: int(c.feeds.Load()),
			Interval: time.Duration(s.interval.Load()), Busy: float64(c.busy.Load()) / 1e6,
			Passes: c.passes.Load(), Writes: c.writes.Load(), Partial: c.partial.Load(), Bytes: c.bytes.Load(),
		}
		st.Waiting += x.Waiting
		st.Writes += x.Writes
		st.Partial += x.Partial
		st.Bytes += x.Bytes
		st.Shards = append(st.Shards, x)
	}
	return st
}

// countFirst adds what was written before a viewer came to its shard.
func (f *Fanout) countFirst(c counts) {
	f.first[0].Add(c.writes)
	f.first[1].Add(c.partial)
	f.first[2].Add(c.bytes)
}

// interval returns the widest interval of the shards, for viewers that are on none.
func (f *Fanout) interval() time.Duration {
	var d int64
	for _, s := range f.shards {
		d = max(d, s.interval.Load())
	}
	return time.Duration(d)
}
