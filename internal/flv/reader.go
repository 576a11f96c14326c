package flv

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Errors of a [Reader].
var (
	ErrNotFLV = errors.New("not an FLV stream: it does not begin with \"FLV\"")
	ErrTooBig = errors.New("tag is over the size limit")
	ErrTag    = errors.New("malformed tag")
)

// Reader reads tags from an FLV stream: a file or the body of a response.
type Reader struct {
	r       *bufio.Reader
	limit   int
	started bool
	timed   bool
	hasA    bool
	hasV    bool
	clock   int64 // the last tag's time, not wrapped
	head    [HeaderSize]byte
}

// NewReader returns a Reader that refuses payloads of more than limit bytes before
// it allocates for them. It reads 64 KiB at a time.
func NewReader(r io.Reader, limit int) *Reader { return NewReaderSize(r, limit, 64<<10) }

// NewReaderSize is NewReader with a buffer of size bytes, for an r that has one
// itself and is cheap to ask.
func NewReaderSize(r io.Reader, limit, size int) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, size), limit: limit}
}

// Tracks returns what the FLV header announced; valid after the first Read.
func (r *Reader) Tracks() (audio, video bool) { return r.hasA, r.hasV }

// Read returns the next tag, whose bytes are the caller's. At the end of the
// stream between two tags the error is io.EOF; within one, io.ErrUnexpectedEOF.
// Times are unwrapped over 2^32 ms. Tags of other kinds, and encrypted ones
// (E.4.1: Filter), are passed over.
func (r *Reader) Read() (Tag, error) {
	if !r.started {
		if err := r.readFileHeader(); err != nil {
			return Tag{}, err
		}
		r.started = true
	}
	for {
		t, err := r.readTag()
		if err != nil || t.Kind == Audio || t.Kind == Video || t.Kind == Script {
			return t, err
		}
	}
}

func (r *Reader) readFileHeader() error {
	h := r.head[:9]
	if _, err := io.ReadFull(r.r, h); err != nil {
		return err
	}
	if string(h[:3]) != "FLV" {
		return ErrNotFLV
	}
	r.hasA, r.hasV = h[4]&4 != 0, h[4]&1 != 0
	offset := binary.BigEndian.Uint32(h[5:])
	if offset < 9 || offset > 1<<16 {
		return fmt.Errorf("%w: header of %d bytes", ErrNotFLV, offset)
	}
	_, err := r.r.Discard(int(offset) - 9 + 4)
	return unexpected(err)
}

func (r *Reader) readTag() (Tag, error) {
	h := r.head[:]
	if _, err := io.ReadFull(r.r, h); err != nil {
		return Tag{}, err
	}
	n := int(h[1])<<16 | int(h[2])<<8 | int(h[3])
	if n > r.limit {
		return Tag{}, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrTooBig, n, r.limit)
	}
	wire := make([]byte, HeaderSize+n+TrailerSize)
	copy(wire, h)
	if _, err := io.ReadFull(r.r, wire[HeaderSize:]); err != nil {
		return Tag{}, unexpected(err)
	}
	if size := binary.BigEndian.Uint32(wire[HeaderSize+n:]); int(size) != HeaderSize+n && size != 0 {
		return Tag{}, fmt.Errorf("%w: previous tag size is %d, want %d", ErrTag, size, HeaderSize+n)
	}
	binary.BigEndian.PutUint32(wire[HeaderSize+n:], uint32(HeaderSize+n))
	wire[0] &= 0x3f // without the two reserved bits; the filter bit makes it another kind
	wire[8], wire[9], wire[10] = 0, 0, 0
	raw := uint32(h[4])<<16 | uint32(h[5])<<8 | uint32(h[6]) | uint32(h[7])<<24
	if !r.timed {
		r.clock, r.timed = int64(raw), true
	} else {
		r.clock += int64(int32(raw - uint32(r.clock)))
	}
	return Make(wire, r.clock), nil
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
