package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// MemoryConfig says where a Memory keeps what must outlive it.
type MemoryConfig struct {
	// File has the documents with their history. Empty keeps nothing: for tests.
	File string
}

// Memory is a Store of one router, with nothing else to install. Documents are on the
// disk when an edit returns. What was published follows within seconds and when the
// store is closed, so that a router that starts again serves its last plan at once.
// Entries and the lease end with the process.
type Memory struct {
	// Fixed at construction.
	log  *slog.Logger
	path string // of the journal; empty when nothing is kept

	// Safe from any goroutine.
	hub hub

	// Guarded by writing, which is taken before mu and held while the disk is written:
	// who reads does not wait for disks.
	writing  sync.Mutex
	file     *file             // nil when nothing is kept
	reserved map[string]uint64 // publications up to this number may have been seen, by kind
	used     map[string]uint64 // of them those that were
	reserves int               // records of those in the journal; all but the newest of a kind are of no use

	// Guarded by mu.
	mu        sync.RWMutex
	origin    string
	documents map[string]*history
	soft      soft
	published map[string]Published
	dirty     bool // published has what its file has not
	closed    bool
}

var _ Store = (*Memory)(nil)

// NewMemory opens the file of cfg and locks it, or begins one. It is to be closed.
func NewMemory(cfg MemoryConfig, log *slog.Logger) (*Memory, error) {
	m := &Memory{
		log: log, path: cfg.File, reserved: map[string]uint64{}, used: map[string]uint64{},
		documents: map[string]*history{}, published: map[string]Published{},
		soft: soft{entries: map[entryKey]entry{}},
	}
	if cfg.File == "" {
		return m, nil
	}
	f, err := openFile(cfg.File, log, m.replay)
	if err != nil {
		return nil, err
	}
	m.file = f
	m.loadPublished()
	return m, nil
}

// replay does again what the journal tells.
func (m *Memory) replay(r record) error {
	switch r.Kind {
	case recordOrigin:
		m.origin = r.Origin
	case recordDocument:
		m.put(r.version())
	case recordCut:
		m.documents[r.Key].cut(r.Number)
	case recordReserve:
		m.reserved[r.Key], m.used[r.Key] = r.Number, r.Number
		m.reserves++
		m.soft.raise(r.Fence)
	case recordPublished:
		return fmt.Errorf("a record of kind %s, which belongs into another file", r.Kind)
	}
	return nil
}

// put takes a version in. The caller holds mu, or is the only one.
func (m *Memory) put(v version) {
	h := m.documents[v.Key]
	if h == nil {
		h = &history{}
		m.documents[v.Key] = h
	}
	h.put(v)
}

// addLocked brings a record to the disk; the caller holds writing.
func (m *Memory) addLocked(r record) error {
	if m.file == nil {
		return nil
	}
	return m.file.add(r)
}

// compactLocked writes the journal anew when it has grown; the caller holds writing.
func (m *Memory) compactLocked() {
	if m.file == nil || !m.file.grown() && m.reserves < maxReserves {
		return
	}
	m.reserves = 0 // not again with every record, should it fail
	if err := m.file.rewrite(m.records()); err != nil {
		m.log.Error("the state file cannot be written anew and goes on growing", "file", m.path, "error", err)
	}
}

// records returns what lives, for a new journal; the caller holds writing.
func (m *Memory) records() []record {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var out []record
	if m.origin != "" {
		out = append(out, record{Kind: recordOrigin, Origin: m.origin})
	}
	for key, number := range m.reserved {
		out = append(out, record{Kind: recordReserve, Key: key, Number: number, Fence: m.soft.fence})
	}
	for _, h := range m.documents {
		for _, v := range h.versions {
			out = append(out, documentRecord(v))
		}
	}
	return out
}

// Origin implements Store.
func (m *Memory) Origin(context.Context) (string, error) { return m.adoptOrigin("") }

// newOrigin returns a name that sorts by its age.
func newOrigin() string {
	return time.Now().UTC().Format("20060102T150405.000Z") + "-" + rand.Text()[:10]
}

// adoptOrigin takes the older of its own name and other, or makes one when there is none.
func (m *Memory) adoptOrigin(other string) (string, error) {
	m.writing.Lock()
	defer m.writing.Unlock()
	m.mu.RLock()
	origin, closed := m.origin, m.closed
	m.mu.RUnlock()
	switch {
	case closed:
		return "", errClosed
	case origin == "" && other == "":
		other = newOrigin()
	case other == "" || origin != "" && origin <= other:
		return origin, nil
	}
	if err := m.addLocked(record{Kind: recordOrigin, Origin: other}); err != nil {
		return "", err
	}
	m.mu.Lock()
	m.origin = other
	m.mu.Unlock()
	return other, nil
}

// Edit implements Store.
func (m *Memory) Edit(_ context.Context, key string, based uint64, body []byte, who Author) (Document, error) {
	if err := checkEdit(key, body, who); err != nil {
		return Document{}, err
	}
	m.writing.Lock()
	defer m.writing.Unlock()
	m.mu.RLock()
	newest, _ := m.documents[key].newest()
	full := m.documents[key] == nil && len(m.documents) >= maxDocuments
	m.mu.RUnlock()
	switch {
	case newest.Version != based:
		current := newest.head()
		current.Key = key
		return Document{}, &ConflictError{Current: current, Based: based}
	case full:
		return Document{}, fmt.Errorf("%d documents and one are %w", maxDocuments, ErrTooBig)
	}
	v := newVersion(key, based+1, body, who)
	if err := m.keepLocked(v); err != nil {
		return Document{}, err
	}
	return v.Document, nil
}

func newVersion(key string, number uint64, body []byte, who Author) version {
	return version{
		Document: Document{Key: key, Version: number, At: time.Now().UTC(), Author: who, Body: bytes.Clone(body)},
		ID:       rand.Text(),
	}
}

// keepLocked brings v to the disk, takes it in and tells of it; the caller holds writing.
func (m *Memory) keepLocked(v version) error {
	m.mu.RLock()
	closed := m.closed
	m.mu.RUnlock()
	if closed {
		return errClosed
	}
	if err := m.addLocked(documentRecord(v)); err != nil {
		return fmt.Errorf("keep version %d of %s: %w", v.Version, v.Key, err)
	}
	m.mu.Lock()
	m.put(v)
	m.mu.Unlock()
	m.hub.tell(Change{Kind: Documents, Key: v.Key})
	m.compactLocked()
	return nil
}

// Current implements Store.
func (m *Memory) Current(_ context.Context, key string) (Document, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	v, ok := m.documents[key].newest()
	if !ok {
		return Document{}, notFound(key, 0)
	}
	return v.Document, nil
}

// notFound is the error for a document, or for one version of it.
func notFound(key string, number uint64) error {
	if number > 0 {
		return fmt.Errorf("%s, version %d: %w", key, number, ErrNotFound)
	}
	return fmt.Errorf("%s: %w", key, ErrNotFound)
}

// Version implements Store.
func (m *Memory) Version(_ context.Context, key string, number uint64) (Document, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	h := m.documents[key]
	at, ok := h.find(number)
	if !ok {
		return Document{}, notFound(key, number)
	}
	return h.versions[at].Document, nil
}

// History implements Store.
func (m *Memory) History(_ context.Context, key string, limit int) ([]Document, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.documents[key].heads(limit), nil
}

// Watch implements Store.
func (m *Memory) Watch(ctx context.Context) (<-chan Change, error) { return m.hub.watch(ctx) }
