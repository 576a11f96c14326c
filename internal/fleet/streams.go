package fleet

import (
	"sync"
	"sync/atomic"
	"time"

	"millrace/internal/control"
	"millrace/internal/plan"
	"millrace/internal/stream"
)

// streams knows who carries what. What it holds is guarded by the lock of the registry;
// Find takes it for reading.
type streams struct {
	mu    *sync.RWMutex
	table map[stream.Name]*copies
	count int // streams times nodes
}

// copies are the nodes that carry one stream.
type copies struct {
	list   []*item
	frozen atomic.Pointer[frozen]
	stale  atomic.Bool // frozen is no longer true
}

// frozen is what planning is shown of a stream.
type frozen struct {
	stream plan.Stream
	at     time.Time
}

// item is a stream on a node.
type item struct {
	of *copies
	m  *member
	at int // in of.list; -1: the node is down
	carried
	seen uint64 // sequence of the last full list that it was in
}

// carried is what a node says of a stream.
type carried struct {
	source  bool
	epoch   int64
	from    string
	bitrate int64
	viewers int
	delay   float64
}

func carriedOf(c *control.Carried) carried {
	return carried{c.Source, c.Epoch, c.From, c.Bitrate, c.Viewers, c.Delay}
}

// place is what matters to whoever pulls a stream.
func (c *carried) place() (bool, int64, string, int64) {
	return c.source, c.epoch, c.from, c.bitrate
}

func newStreams(mu *sync.RWMutex) *streams {
	return &streams{mu: mu, table: map[stream.Name]*copies{}}
}

// set notes that m has c. It reports whether that is news.
func (s *streams) set(m *member, c *control.Carried, seen uint64, room int) bool {
	now := carriedOf(c)
	it := m.carried[c.Name]
	if it == nil {
		if s.count >= room {
			return false
		}
		of := s.table[c.Name]
		if of == nil {
			of = &copies{}
			s.table[c.Name] = of
		}
		it = &item{of: of, m: m, at: len(of.list), carried: now, seen: seen}
		of.list = append(of.list, it)
		of.stale.Store(true)
		m.carried[c.Name] = it
		s.count++
		return true
	}
	it.seen = seen
	if it.carried == now {
		return false
	}
	s1, e1, f1, b1 := it.place()
	if s2, e2, f2, b2 := now.place(); s1 != s2 || e1 != e2 || f1 != f2 || b1 != b2 {
		it.of.stale.Store(true)
	}
	it.carried = now
	return true
}

// drop notes that m has a stream no more.
func (s *streams) drop(m *member, name stream.Name) bool {
	it := m.carried[name]
	if it == nil {
		return false
	}
	delete(m.carried, name)
	s.count--
	s.unlink(name, it)
	return true
}

// unlink takes it from those who carry the stream.
func (s *streams) unlink(name stream.Name, it *item) {
	if it.at < 0 {
		return
	}
	of := it.of
	last := len(of.list) - 1
	of.list[it.at] = of.list[last]
	of.list[it.at].at = it.at
	of.list[last] = nil
	of.list = of.list[:last]
	it.at = -1
	of.stale.Store(true)
	if last == 0 {
		delete(s.table, name)
	}
}

// hide takes what m carries from the table, for as long as it is down.
func (s *streams) hide(m *member) {
	for name, it := range m.carried {
		s.unlink(name, it)
	}
}

// show puts it back.
func (s *streams) show(m *member) {
	for name, it := range m.carried {
		if it.at >= 0 {
			continue
		}
		of := s.table[name]
		if of == nil {
			of = &copies{}
			s.table[name] = of
		}
		it.of, it.at = of, len(of.list)
		of.list = append(of.list, it)
		of.stale.Store(true)
	}
}

const (
	// manyCopies is from how many nodes on a stream is not looked at anew for each change:
	// where it is has then been told many times over.
	manyCopies = 128
	// oldCopies is how old what is told of such a stream may be.
	oldCopies = time.Second
)

// Find implements [plan.Streams].
func (s *streams) Find(name stream.Name) (*plan.Stream, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := s.table[name]
	if c == nil {
		return nil, false
	}
	return c.find(), true
}

// find returns where a stream is. The lock is held for reading at least.
func (c *copies) find() *plan.Stream {
	old := c.frozen.Load()
	if old != nil && !c.stale.Load() {
		return &old.stream
	}
	now := time.Now()
	if old != nil && len(c.list) >= manyCopies && now.Sub(old.at) < oldCopies {
		return &old.stream
	}
	// Nobody writes while the lock is held for reading; others may do the same as this.
	c.stale.Store(false)
	f := &frozen{at: now, stream: plan.Stream{Carriers: make(map[string]string, len(c.list))}}
	source := c.source()
	for _, it := range c.list {
		f.stream.Carriers[it.m.id] = it.from
		f.stream.Bitrate = max(f.stream.Bitrate, it.bitrate)
	}
	if source != nil {
		f.stream.Source, f.stream.Epoch = source.m.id, uint64(max(source.epoch, 0))
		if source.bitrate > 0 {
			f.stream.Bitrate = source.bitrate
		}
	}
	c.frozen.Store(f)
	return &f.stream
}

// source returns where a stream is published: the newest epoch counts, and of equal ones
// the node that comes first.
func (c *copies) source() *item {
	var best *item
	for _, it := range c.list {
		if it.source && (best == nil || it.epoch > best.epoch || it.epoch == best.epoch && it.m.id < best.m.id) {
			best = it
		}
	}
	return best
}
