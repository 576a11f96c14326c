package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// reserve is how many numbers of publications are set aside with one write to the
// journal. After a crash those that were not used are skipped: a number that somebody
// has seen must not be given to something else.
const reserve = 64

// maxReserves is how many such records the journal may have before it is written anew:
// weeks of them, a hundred kilobytes. A router that plans adds to them for years, though
// nobody edits.
const maxReserves = 1000

// flushEvery is how late publications may come to the disk. They are megabytes in a
// large network, and made anew within seconds.
const flushEvery = 5 * time.Second

// maxPublished is how many kinds of publications there may be. The router has two.
const maxPublished = 100

// Publish implements Store.
func (m *Memory) Publish(_ context.Context, fence Fence, kind string, body []byte) (Published, error) {
	if err := checkPublish(kind, body); err != nil {
		return Published{}, err
	}
	m.writing.Lock()
	defer m.writing.Unlock()
	m.mu.RLock()
	newest, closed := m.soft.fence, m.closed
	last, known := m.published[kind]
	kinds := len(m.published)
	m.mu.RUnlock()
	switch {
	case closed:
		return Published{}, errClosed
	case fence != newest || fence == 0: // 0 is the fence of nobody
		return Published{}, fenced(kind, fence)
	case !known && kinds >= maxPublished:
		return Published{}, fmt.Errorf("%d kinds of publications and one are %w", maxPublished, ErrTooBig)
	}
	number := max(m.used[kind], last.Number) + 1
	if number > m.reserved[kind] {
		if err := m.reserveLocked(kind, number+reserve-1); err != nil {
			return Published{}, err
		}
	}
	m.used[kind] = number
	p := Published{Kind: kind, Number: number, Fence: fence, At: time.Now().UTC(), Body: bytes.Clone(body)}
	m.takePublished(p)
	return p, nil
}

// fenced is the error for a fence that is not the newest.
func fenced(kind string, fence Fence) error {
	return fmt.Errorf("publish %s with fence %d: %w", kind, fence, ErrFenced)
}

// reserveLocked notes that numbers of a kind may have been seen; the caller holds writing.
func (m *Memory) reserveLocked(kind string, upTo uint64) error {
	m.mu.RLock()
	fence := m.soft.fence
	m.mu.RUnlock()
	if err := m.addLocked(record{Kind: recordReserve, Key: kind, Number: upTo, Fence: fence}); err != nil {
		return fmt.Errorf("publish %s: %w", kind, err)
	}
	m.reserved[kind] = upTo
	m.reserves++
	m.compactLocked()
	return nil
}

// takePublished makes p what is published, if it is newer, and tells of it.
func (m *Memory) takePublished(p Published) {
	m.mu.Lock()
	newer := p.Number > m.published[p.Kind].Number
	if newer {
		m.published[p.Kind] = p
		m.soft.raise(p.Fence)
		m.dirty = true
	}
	m.mu.Unlock()
	if !newer {
		return
	}
	m.hub.tell(Change{Kind: p.Kind})
}

// Published implements Store.
func (m *Memory) Published(_ context.Context, kind string) (Published, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	p, ok := m.published[kind]
	if !ok {
		return Published{}, fmt.Errorf("publication %s: %w", kind, ErrNotFound)
	}
	return p, nil
}

// allPublished returns what is published, of every kind.
func (m *Memory) allPublished() []Published {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := make([]Published, 0, len(m.published))
	for _, p := range m.published {
		out = append(out, p)
	}
	return out
}

// loadPublished reads what was published. What cannot be read is made anew by whoever plans.
func (m *Memory) loadPublished() {
	path := m.path + ".published"
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		var info os.FileInfo
		if info, err = f.Stat(); err == nil {
			_, err = readJournal(f, info.Size(), m.replayPublished)
		}
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		m.log.Warn("what was published last cannot be read; the next plan replaces it", "file", path, "error", err)
	}
}

// replayPublished takes one publication in.
func (m *Memory) replayPublished(r record) error {
	switch {
	case r.Kind == recordBegin:
	case r.Kind != recordPublished:
		return fmt.Errorf("a record of kind %s, which belongs into another file", r.Kind)
	case len(m.published) >= maxPublished:
		return ErrTooBig
	default:
		m.published[r.Key] = r.published()
		m.soft.raise(r.Fence)
	}
	return nil
}

// flush brings to the disk what was published since the last time.
func (m *Memory) flush() error {
	m.writing.Lock()
	defer m.writing.Unlock()
	m.mu.Lock()
	dirty := m.dirty && m.file != nil
	m.dirty = false
	m.mu.Unlock()
	if !dirty {
		return nil
	}
	records := []record{{Kind: recordBegin, Format: format}}
	for _, p := range m.allPublished() {
		records = append(records, publishedRecord(p))
	}
	f, _, err := writeRecords(m.path+".published", records)
	if f != nil {
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		m.mu.Lock()
		m.dirty = true
		m.mu.Unlock()
	}
	return err
}

// Run brings publications to the disk every few seconds until ctx ends, and then returns
// nil.
func (m *Memory) Run(ctx context.Context) error {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	failed := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := m.flush()
		if err != nil && !failed {
			m.log.Error("what is published cannot be kept: a router that starts again serves an older plan until it has made one", "error", err)
		}
		failed = err != nil
	}
}

// Close ends all watching, brings everything to the disk and gives the file up. It may
// be called again.
func (m *Memory) Close() error {
	m.hub.close()
	m.mu.Lock()
	closed := m.closed
	m.closed = true
	m.mu.Unlock()
	if closed {
		return nil
	}
	err := m.flush()
	m.writing.Lock()
	defer m.writing.Unlock()
	if m.file == nil {
		return err
	}
	if err == nil { // nothing was lost: the next number follows the last one
		for _, p := range m.allPublished() {
			err = errors.Join(err, m.reserveLocked(p.Kind, max(p.Number, m.used[p.Kind])))
		}
	}
	err = errors.Join(err, m.file.close())
	m.file = nil
	return err
}
