package store

// What a Cached needs of the Memory that is its copy, beside the methods of a Store.

// knownOrigin returns the origin, or "" when it was never asked for.
func (m *Memory) knownOrigin() string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.origin
}

// keep takes a version in that was made elsewhere. It replaces what has its number.
func (m *Memory) keep(v version) error {
	m.writing.Lock()
	defer m.writing.Unlock()
	return m.keepLocked(v)
}

// cut forgets the versions of a document above a number.
func (m *Memory) cut(key string, above uint64) error {
	m.writing.Lock()
	defer m.writing.Unlock()
	if err := m.addLocked(record{Kind: recordCut, Key: key, Number: above}); err != nil {
		return err
	}
	m.mu.Lock()
	m.documents[key].cut(above)
	m.mu.Unlock()
	m.hub.tell(Change{Kind: Documents, Key: key})
	return nil
}

// forget forgets the versions of a document up to a number, as Redis has. They are still
// in the journal, and forgotten again after the next start.
func (m *Memory) forget(key string, upTo uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.documents[key].forget(upTo)
}

// forgotten returns up to which number versions were forgotten, as far as is known.
func (m *Memory) forgotten(key string) uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if h := m.documents[key]; h != nil {
		return h.forgotten
	}
	return 0
}

// versions returns all versions of a document, by rising number.
func (m *Memory) versions(key string) []version {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if h := m.documents[key]; h != nil {
		return append([]version(nil), h.versions...)
	}
	return nil
}

// newestOf returns the newest version of a document, if there is any.
func (m *Memory) newestOf(key string) (version, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.documents[key].newest()
}

// newest returns the newest version of each document.
func (m *Memory) newest() map[string]version {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := make(map[string]version, len(m.documents))
	for key, h := range m.documents {
		if v, ok := h.newest(); ok {
			out[key] = v
		}
	}
	return out
}
