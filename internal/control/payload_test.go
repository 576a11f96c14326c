package control

import (
	"bytes"
	"compress/gzip"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func TestBest(t *testing.T) {
	f := func(accept string, want encoding) {
		t.Helper()
		if got := best(accept); got != want {
			t.Errorf("%q: %v, want %v", accept, got, want)
		}
	}
	f("", identity)
	f("identity", identity)
	f("gzip", gzipped)
	f("zstd, gzip", zstandard)
	f("gzip, deflate, br, zstd", zstandard)
	f("gzip;q=1.0, zstd; q=0", gzipped)
	f("zstdx, xgzip", identity)
	f("*", identity)
}

func TestPayload(t *testing.T) {
	made := 0
	plain := bytes.Repeat([]byte("edge-1 edge-2 "), 1000)
	p := newPayload("t", func() []byte { made++; return plain })
	var wg sync.WaitGroup
	for range 8 {
		for e := range encodings {
			wg.Go(func() {
				b := p.in(e)
				got, err := unpack(b.encoding.String(), b.bytes, int64(len(plain)))
				if err != nil || !bytes.Equal(got, plain) || b.encoding != e {
					t.Errorf("%v: %d bytes, %v", e, len(got), err)
				}
			})
		}
	}
	wg.Wait()
	if made != 1 {
		t.Errorf("it was made %d times", made)
	}
	if first, second := p.in(zstandard), p.in(zstandard); first != second {
		t.Error("an encoding is made for each")
	}
	noise := newPayload("t", bytesOf([]byte{1}))
	if b := noise.in(zstandard); b.encoding != identity || len(b.bytes) != 1 {
		t.Errorf("one byte becomes %d in %v", len(b.bytes), b.encoding)
	}
}

// TestUnpackIsBounded: a bomb costs no more than what is allowed.
func TestUnpackIsBounded(t *testing.T) {
	const limit = 1 << 20
	zeros := make([]byte, 32<<20)
	var gz bytes.Buffer
	w, err := gzip.NewWriterLevel(&gz, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(zeros); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(nil, zstd.WithWindowSize(32<<20))
	if err != nil {
		t.Fatal(err)
	}
	wide := z.EncodeAll(zeros, nil) // says that it wants 32 MiB before anything comes out
	bomb := compressed(zstandard, zeros)
	for name, tc := range map[string]struct {
		encoding string
		packed   []byte
	}{"gzip": {"gzip", gz.Bytes()}, "zstd": {"zstd", bomb}, "zstd with a wide window": {"zstd", wide}} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		b, err := unpack(tc.encoding, tc.packed, limit)
		runtime.ReadMemStats(&after)
		if b != nil || err == nil {
			t.Errorf("%s: %d bytes of %d come out, %v", name, len(b), len(zeros), err)
		}
		if spent := after.TotalAlloc - before.TotalAlloc; spent > 24<<20 {
			t.Errorf("%s: %d bytes were allocated for at most %d", name, spent, limit)
		}
	}
	if _, err := unpack("gzip", gz.Bytes(), limit); !errors.Is(err, errTooBig) {
		t.Errorf("got %v", err)
	}
	if _, err := unpack("", zeros, limit); !errors.Is(err, errTooBig) {
		t.Errorf("got %v", err)
	}
	if _, err := unpack("br", nil, limit); err == nil || !strings.Contains(err.Error(), `"br"`) {
		t.Errorf("got %v", err)
	}
	for _, e := range []string{"gzip", "zstd"} {
		if b, err := unpack(e, []byte("hello"), limit); err == nil {
			t.Errorf("%s: %q from nonsense", e, b)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add("zstd", compressed(zstandard, []byte("hello hello hello")))
	f.Add("gzip", compressed(gzipped, []byte("hello hello hello")))
	f.Add("", []byte("x"))
	f.Fuzz(func(t *testing.T, e string, b []byte) {
		const limit = 1 << 16
		if out, err := unpack(e, b, limit); err == nil && len(out) > limit {
			t.Errorf("%d bytes came out", len(out))
		}
	})
}
