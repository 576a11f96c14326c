package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"reflect"
	"strings"
	"testing"
	"time"
)

var sampleTime = time.Date(2026, 11, 30, 14, 5, 0, 123456789, time.UTC)

// sampleRecords has each kind of a journal's records, and bodies of awkward sizes.
func sampleRecords() []record {
	id := strings.Repeat("A", idLength)
	out := []record{
		{Kind: recordBegin, Format: format},
		{Kind: recordOrigin, Origin: "20261130T140500.000Z-ABCDEFGHIJ"},
		{Kind: recordReserve, Key: "plan", Number: 64, Fence: 3},
	}
	for i, body := range []string{"", "\n", "{\"a\":1}\n", strings.Repeat("x", 100), "\x00\xff"} {
		v := version{Document{"edits", uint64(i + 1), sampleTime, anna, []byte(body)}, id}
		out = append(out, documentRecord(v))
	}
	return append(out, record{Kind: recordCut, Key: "edits", Number: 4})
}

func journalOf(t testing.TB, records []record) (b []byte, ends []int) {
	t.Helper()
	for _, r := range records {
		var err error
		if b, err = appendRecord(b, r); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, len(b))
	}
	return b, ends
}

// readAll returns the records of a journal.
func readAll(b []byte) (out []record, good int64, err error) {
	good, err = readJournal(bytes.NewReader(b), int64(len(b)), func(r record) error {
		out = append(out, r)
		return nil
	})
	return out, good, err
}

func equalRecords(a, b []record) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i], b[i]
		if !bytes.Equal(x.Body, y.Body) || !x.At.Equal(y.At) {
			return false
		}
		x.Body, y.Body, x.At, y.At = nil, nil, time.Time{}, time.Time{}
		if !reflect.DeepEqual(x, y) {
			return false
		}
	}
	return true
}

// TestJournalCutShort reads a journal that ends after each of its bytes.
func TestJournalCutShort(t *testing.T) {
	records := sampleRecords()
	b, ends := journalOf(t, records)
	whole := 0
	for n := range len(b) + 1 {
		if whole < len(ends) && n == ends[whole] {
			whole++
		}
		got, good, err := readAll(b[:n])
		if err != nil {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
		if !equalRecords(got, records[:whole]) {
			t.Fatalf("the first %d bytes: got %d records, want %d", n, len(got), whole)
		}
		if want := int64(append([]int{0}, ends...)[whole]); good != want {
			t.Fatalf("of the first %d bytes %d are good, want %d", n, good, want)
		}
		// A file system may have made the file longer before it had the bytes.
		got, good2, err := readAll(append(bytes.Clone(b[:n]), make([]byte, 100)...))
		if n >= len(magic) && (err != nil || good2 != good || !equalRecords(got, records[:whole])) {
			t.Fatalf("the first %d bytes and zeros: good %d, %v", n, good2, err)
		}
	}
}

// TestJournalDamaged changes each byte of a journal.
func TestJournalDamaged(t *testing.T) {
	records := sampleRecords()
	b, ends := journalOf(t, records)
	for i := range b {
		for _, change := range []byte{0x01, 0x80} {
			bad := bytes.Clone(b)
			bad[i] ^= change
			hit := 0 // the record that is damaged
			for i >= ends[hit] {
				hit++
			}
			got, _, err := readAll(bad)
			if !equalRecords(got, records[:hit]) {
				t.Fatalf("byte %d, of record %d, changed: got %d records", i, hit, len(got))
			}
			if last := hit == len(records)-1; (err == nil) != last {
				t.Fatalf("byte %d, of record %d of %d, changed: error %v", i, hit, len(records), err)
			}
		}
	}
}

// TestJournalFindsWhatFollows puts a good record far behind damage, around the seams of
// the search.
func TestJournalFindsWhatFollows(t *testing.T) {
	records := sampleRecords()
	begin, _ := journalOf(t, records[:1])
	tail, _ := journalOf(t, records[3:4])
	for _, gap := range []int{1, 15, 16, 17, 1<<20 - 17, 1<<20 - 2, 1<<20 - 1, 1 << 20, 1<<20 + 1, 2<<20 + 5} {
		b := append(bytes.Clone(begin), bytes.Repeat([]byte("m"), gap)...)
		if _, good, err := readAll(b); err != nil || good != int64(len(begin)) {
			t.Errorf("%d bytes that are nothing: good %d, %v", gap, good, err)
		}
		b = append(b, tail...)
		_, _, err := readAll(b)
		if want := fmt.Sprintf("damaged at byte %d, and there is more behind it at byte %d", len(begin), len(begin)+gap); err == nil || err.Error() != want {
			t.Errorf("a record %d bytes behind: got %v, want %s", gap, err, want)
		}
	}
}

// seal makes a record of any payload.
func seal(payload []byte, length int) []byte {
	b := make([]byte, headerSize)
	copy(b, magic)
	binary.BigEndian.PutUint32(b[4:], uint32(length))
	binary.BigEndian.PutUint32(b[8:], crc32.Checksum(payload, castagnoli))
	binary.BigEndian.PutUint32(b[12:], crc32.Checksum(b[:12], castagnoli))
	return append(b, payload...)
}

func TestJournalRefuses(t *testing.T) {
	begin, _ := journalOf(t, sampleRecords()[:1])
	id := strings.Repeat("A", idLength)
	f := func(name, payload, want string) {
		t.Helper()
		_, good, err := readAll(append(bytes.Clone(begin), seal([]byte(payload), len(payload))...))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
		if good != int64(len(begin)) {
			t.Errorf("%s: %d bytes are good", name, good)
		}
	}
	f("no line", `{"kind":"origin"}`, "without its line")
	f("no JSON", "{\n", "a record's line")
	f("a line that is too long", `{"kind":"`+strings.Repeat("a", maxLine)+"\"}\n", "without its line")
	f("an unknown key", `{"kind":"origin","origin":"a","more":1}`+"\n", "unknown field")
	f("an unknown kind", `{"kind":"other"}`+"\n", "use a newer one")
	f("the beginning again", `{"kind":"begin","format":1}`+"\n", "where it cannot be")
	f("no version", `{"kind":"document","key":"a","id":"`+id+`"}`+"\n", "version 0")
	f("no mark", `{"kind":"document","key":"a","number":1}`+"\n", "mark")
	f("no key", `{"kind":"document","number":1,"id":"`+id+`"}`+"\n", "key")
	f("a long name", `{"kind":"document","key":"a","number":1,"id":"`+id+`","name":"`+strings.Repeat("n", 300)+`"}`+"\n", "name")
	f("a cut of nothing", `{"kind":"cut"}`+"\n", "key")
	f("no origin", `{"kind":"origin"}`+"\n", "origin")

	newer := []byte(`{"kind":"begin","format":2}` + "\n")
	if _, _, err := readAll(seal(newer, len(newer))); err == nil || !strings.Contains(err.Error(), "format 2, and this program knows 1") {
		t.Errorf("a newer format: %v", err)
	}
	for _, foreign := range []string{"x", "mlx", "# a YAML file", "\x00"} {
		if _, _, err := readAll([]byte(foreign)); err != errForeign {
			t.Errorf("%q: %v", foreign, err)
		}
	}
}

// TestJournalBelievesNoLength claims records of four gigabytes: nothing is allocated.
func TestJournalBelievesNoLength(t *testing.T) {
	begin, _ := journalOf(t, sampleRecords()[:1])
	for _, length := range []int{maxRecord + 1, 1<<32 - 1, maxRecord} {
		b := append(bytes.Clone(begin), seal([]byte("short"), length)...)
		allocated := testing.AllocsPerRun(1, func() { _, _, _ = readAll(b) })
		if _, good, err := readAll(b); err != nil || good != int64(len(begin)) {
			t.Errorf("length %d: good %d, %v", length, good, err)
		}
		if allocated > 100 {
			t.Errorf("length %d: %v allocations", length, allocated)
		}
	}
	if _, err := appendRecord(nil, record{Kind: recordDocument, Body: make([]byte, MaxBody+1)}); err == nil {
		t.Error("a body beyond the limit is written")
	}
}

func FuzzJournal(f *testing.F) {
	b, ends := journalOf(f, sampleRecords())
	f.Add(b)
	f.Add(b[:ends[3]-1])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		records, good, err := readAll(b)
		if good < 0 || good > int64(len(b)) {
			t.Fatalf("%d of %d bytes are good", good, len(b))
		}
		if err != nil {
			return
		}
		again, n, err := readAll(b[:good])
		if err != nil || n != good || !equalRecords(again, records) {
			t.Fatalf("the good bytes alone: %d of %d good, %v", n, good, err)
		}
	})
}

func FuzzRecord(f *testing.F) {
	b, ends := journalOf(f, sampleRecords())
	start := 0
	for _, end := range ends {
		f.Add(b[start+headerSize : end])
		start = end
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		r, err := parseRecord(payload)
		if err != nil {
			return
		}
		b, err := appendRecord(nil, r)
		if err != nil {
			t.Fatalf("%+v was read and cannot be written: %v", r, err)
		}
		got, err := parseRecord(b[headerSize:])
		if err != nil || !equalRecords([]record{got}, []record{r}) {
			t.Fatalf("got %+v, want %+v, %v", got, r, err)
		}
	})
}

func FuzzRedisAnswer(f *testing.F) {
	id := strings.Repeat("A", idLength)
	f.Add("7 "+id, id+`{"at":"2026-11-30T14:05:00Z","name":"anna","comment":"why"}`)
	f.Add("", "")
	f.Add("07 "+id, id+"{}")
	f.Fuzz(func(t *testing.T, newest, about string) {
		h, err := parseHead(newest)
		if err == nil && h.String() != newest {
			t.Fatalf("%q is read as %q", newest, h)
		}
		v, err := parseVersion("edits", "7", about, nil)
		if err != nil {
			return
		}
		again, err := line(v)
		if err != nil {
			t.Skip() // a year that JSON does not have
		}
		got, err := parseVersion("edits", "7", v.ID+again, nil)
		if err != nil || got.ID != v.ID || got.Author != v.Author || !got.At.Equal(v.At) {
			t.Fatalf("got %+v, want %+v, %v", got, v, err)
		}
	})
}
