package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"
)

// A journal is a run of records. Each begins with sixteen bytes, all numbers big endian:
//
//	0   4  "mlr1"
//	4   4  length of what follows the sixteen bytes
//	8   4  CRC-32C of that
//	12  4  CRC-32C of the twelve bytes before
//
// and goes on with a line of JSON and a body. The first record says which format it is.
// A record is on the disk before the next one is begun, so a machine that stops in the
// middle of a write harms the last record alone, and nobody was told that it is kept.
const (
	magic      = "mlr1"
	headerSize = 16
	maxLine    = 64 << 10 // of JSON: a comment of 4 KiB, each byte escaped, and the rest
	maxRecord  = maxLine + MaxBody
	format     = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// kinds of records.
const (
	recordBegin     = "begin"     // the first one
	recordOrigin    = "origin"    // the name of this store
	recordDocument  = "document"  // a version; replaces what has its number
	recordCut       = "cut"       // versions above Number never were
	recordReserve   = "reserve"   // publications of kind Key up to Number may have been seen
	recordPublished = "published" // of the file of publications
)

// record is one change of what is kept.
type record struct {
	Kind    string    `json:"kind"`
	Format  int       `json:"format,omitempty"`
	Origin  string    `json:"origin,omitempty"`
	Key     string    `json:"key,omitempty"`
	Number  uint64    `json:"number,omitempty"`
	Fence   Fence     `json:"fence,omitempty"`
	ID      string    `json:"id,omitempty"`
	At      time.Time `json:"at,omitzero"`
	Name    string    `json:"name,omitempty"`
	Comment string    `json:"comment,omitempty"`
	Body    []byte    `json:"-"`
}

func documentRecord(v version) record {
	return record{
		Kind: recordDocument, Key: v.Key, Number: v.Version, ID: v.ID, At: v.At,
		Name: v.Name, Comment: v.Comment, Body: v.Body,
	}
}

func (r record) version() version {
	return version{Document{r.Key, r.Number, r.At, Author{r.Name, r.Comment}, r.Body}, r.ID}
}

func publishedRecord(p Published) record {
	return record{Kind: recordPublished, Key: p.Kind, Number: p.Number, Fence: p.Fence, At: p.At, Body: p.Body}
}

func (r record) published() Published {
	return Published{r.Key, r.Number, r.Fence, r.At, r.Body}
}

// appendRecord appends r as it stands in a journal.
func appendRecord(b []byte, r record) ([]byte, error) {
	line, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if len(line) >= maxLine || len(r.Body) > MaxBody {
		return nil, ErrTooBig
	}
	start := len(b)
	b = append(b, make([]byte, headerSize)...)
	b = append(append(append(b, line...), '\n'), r.Body...)
	header, payload := b[start:start+headerSize], b[start+headerSize:]
	copy(header, magic)
	binary.BigEndian.PutUint32(header[4:], uint32(len(payload)))
	binary.BigEndian.PutUint32(header[8:], crc32.Checksum(payload, castagnoli))
	binary.BigEndian.PutUint32(header[12:], crc32.Checksum(header[:12], castagnoli))
	return b, nil
}

// header reads the sixteen bytes before a record.
func header(b []byte) (size, sum uint32, ok bool) {
	if len(b) < headerSize || string(b[:4]) != magic || crc32.Checksum(b[:12], castagnoli) != binary.BigEndian.Uint32(b[12:]) {
		return 0, 0, false
	}
	size, sum = binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	return size, sum, size <= maxRecord
}

// parseRecord reads what follows the header, and checks everything. The record keeps b.
func parseRecord(b []byte) (record, error) {
	line, body, ok := bytes.Cut(b, []byte("\n"))
	if !ok || len(line) >= maxLine || len(body) > MaxBody {
		return record{}, errors.New("a record without its line of JSON")
	}
	var r record
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return record{}, fmt.Errorf("a record's line: %w", err)
	}
	r.Body = body
	return r, r.check()
}

// check refuses what this program does not write.
func (r record) check() error {
	switch r.Kind {
	case recordBegin:
		if r.Format != format {
			return fmt.Errorf("format %d, and this program knows %d: use the version that wrote it, or a newer one", r.Format, format)
		}
		return nil
	case recordOrigin:
		return checkName("origin", r.Origin)
	case recordDocument:
		if r.Number == 0 || !isID(r.ID) {
			return fmt.Errorf("document %q has version %d with the mark %q", r.Key, r.Number, r.ID)
		}
		return checkEdit(r.Key, r.Body, Author{r.Name, r.Comment})
	case recordCut, recordReserve, recordPublished:
		return checkName("key", r.Key)
	default:
		return fmt.Errorf("a record of kind %q, which this program does not know: use a newer one", r.Kind)
	}
}

// errForeign is the error of a file that was never a journal.
var errForeign = errors.New("this is not a state file of a router")

// readJournal hands each record of a journal of size bytes to take. It returns how many bytes
// are good. Fewer than size, without an error, is what a machine leaves that stopped in
// the middle of a write: behind that point there is no whole record.
func readJournal(in io.ReaderAt, size int64, take func(record) error) (good int64, err error) {
	var head [headerSize]byte
	if n, err := in.ReadAt(head[:], 0); err != nil && err != io.EOF {
		return 0, err
	} else if n := min(n, len(magic)); string(head[:n]) != magic[:n] {
		return 0, errForeign
	}
	for good < size {
		n, err := in.ReadAt(head[:], good)
		if err != nil && err != io.EOF {
			return good, err
		}
		length, sum, ok := header(head[:n])
		if !ok || good+headerSize+int64(length) > size {
			return good, checkTail(in, good, size)
		}
		payload := make([]byte, length)
		if _, err := in.ReadAt(payload, good+headerSize); err != nil && err != io.EOF {
			return good, err
		}
		if crc32.Checksum(payload, castagnoli) != sum {
			return good, checkTail(in, good, size)
		}
		r, err := parseRecord(payload)
		if err == nil && (r.Kind == recordBegin) != (good == 0) {
			err = fmt.Errorf("a record of kind %s where it cannot be", r.Kind)
		}
		if err == nil {
			err = take(r)
		}
		if err != nil {
			return good, fmt.Errorf("at byte %d: %w", good, err)
		}
		good += headerSize + int64(length)
	}
	return good, nil
}

// checkTail looks for a whole record behind a bad one. There is none when a write was
// cut short; when there is one, the file was damaged later, and what was kept is lost.
func checkTail(in io.ReaderAt, bad, size int64) error {
	const chunk = 1 << 20
	buf := make([]byte, min(chunk, size-bad)+headerSize)
	for at := bad + 1; at+headerSize <= size; at += chunk {
		n, err := in.ReadAt(buf, at)
		if err != nil && err != io.EOF {
			return err
		}
		b := buf[:n]
		for i := bytes.Index(b, []byte(magic)); i >= 0; {
			if whole(in, at+int64(i), size) {
				return fmt.Errorf("damaged at byte %d, and there is more behind it at byte %d", bad, at+int64(i))
			}
			next := bytes.Index(b[i+1:], []byte(magic))
			if next < 0 {
				break
			}
			i += 1 + next
		}
	}
	return nil
}

// whole reports whether there is an undamaged record at that place.
func whole(in io.ReaderAt, at, size int64) bool {
	var head [headerSize]byte
	if _, err := in.ReadAt(head[:], at); err != nil && err != io.EOF {
		return false
	}
	length, sum, ok := header(head[:])
	if !ok || at+headerSize+int64(length) > size {
		return false
	}
	h := crc32.New(castagnoli)
	_, err := io.Copy(h, io.NewSectionReader(in, at+headerSize, int64(length)))
	return err == nil && h.Sum32() == sum
}
