package store

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// TestMemoryAgainstModel edits, crashes, and writes the journal anew, in any order.
func TestMemoryAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "store")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		open := func(file string) *Memory {
			m, err := NewMemory(MemoryConfig{File: file}, silent)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		file := filepath.Join(dir, "0")
		m := open(file)
		model := map[string][]string{}
		for i := range rapid.IntRange(1, 25).Draw(t, "steps") {
			key := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key")
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0: // a crash
				next := filepath.Join(dir, strconv.Itoa(i+1))
				copyTo(t, file, next)
				if err := m.Close(); err != nil {
					t.Fatal(err)
				}
				file, m = next, open(next)
			case 1: // the next record writes the journal anew
				m.file.live = -slack
			case 2:
				above := rapid.IntRange(0, len(model[key])).Draw(t, "above")
				if err := m.cut(key, uint64(above)); err != nil {
					t.Fatal(err)
				}
				model[key] = model[key][:above]
			default:
				body := rapid.StringN(0, 50, -1).Draw(t, "body")
				if _, err := m.Edit(context.Background(), key, uint64(len(model[key])), []byte(body), anna); err != nil {
					t.Fatal(err)
				}
				model[key] = append(model[key], body)
			}
			for key, bodies := range model {
				got := m.versions(key)
				if len(got) != len(bodies) {
					t.Fatalf("%s has %d versions, want %d", key, len(got), len(bodies))
				}
				for i, v := range got {
					if string(v.Body) != bodies[i] || v.Version != uint64(i+1) {
						t.Fatalf("%s: version %d is %+v, want %q", key, i+1, v, bodies[i])
					}
				}
			}
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
