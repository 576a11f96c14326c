package store

import (
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
)

var silent = slog.New(slog.DiscardHandler)

// openMemory opens the store of a file, and closes it with the test.
func openMemory(t testing.TB, file string) *Memory {
	t.Helper()
	m, err := NewMemory(MemoryConfig{File: file}, silent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func TestMemory(t *testing.T) {
	contract(t, func(t *testing.T, test func(*testing.T, Store, Store)) {
		synctest.Test(t, func(t *testing.T) {
			m := openMemory(t, "")
			test(t, m, m)
		})
	})
}

func TestMemoryWithFile(t *testing.T) {
	contract(t, func(t *testing.T, test func(*testing.T, Store, Store)) {
		file := filepath.Join(t.TempDir(), "state")
		synctest.Test(t, func(t *testing.T) {
			m := openMemory(t, file)
			test(t, m, m)
		})
	})
}
