package store

import (
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkEdit is what an operator waits for.
func BenchmarkEdit(b *testing.B) {
	body := make([]byte, 4096)
	edit := func(b *testing.B, s Store) {
		d, _ := s.Current(b.Context(), "edits")
		for b.Loop() {
			var err error
			if d, err = s.Edit(b.Context(), "edits", d.Version, body, anna); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("memory", func(b *testing.B) { edit(b, openMemory(b, filepath.Join(b.TempDir(), "state"))) })
	b.Run("redis", func(b *testing.B) { edit(b, openCached(b, redisConfig(startRedis(b).url()), "")) })
}

// BenchmarkAnnounce is what each router does each second: 1 MB of what it knows of nodes,
// announced, and read by another.
func BenchmarkAnnounce(b *testing.B) {
	announce := func(b *testing.B, s Store) {
		e := Entry{"nodes", "router-1", make([]byte, 1<<20), time.Minute}
		b.SetBytes(1 << 20)
		for b.Loop() {
			if err := s.Announce(b.Context(), e); err != nil {
				b.Fatal(err)
			}
			if got, err := s.Entries(b.Context(), "nodes"); err != nil || len(got) != 1 {
				b.Fatal(got, err)
			}
		}
	}
	b.Run("memory", func(b *testing.B) { announce(b, openMemory(b, "")) })
	b.Run("redis", func(b *testing.B) { announce(b, openCached(b, redisConfig(startRedis(b).url()), "")) })
}

// BenchmarkLease is what each router does twice a second.
func BenchmarkLease(b *testing.B) {
	r := openCached(b, redisConfig(startRedis(b).url()), "")
	for b.Loop() {
		if _, held, err := r.Lease(b.Context(), "a", time.Minute); err != nil || !held {
			b.Fatal(held, err)
		}
	}
}
