package control

import (
	"errors"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// unpacker unpacks what comes often, into memory that it uses again. Safe from any
// goroutine.
type unpacker struct {
	zstd *zstd.Decoder
	// Buffers of an ordinary size, *[]byte.
	buffers sync.Pool
}

// keptBuffer is how big a buffer may be that is kept. What needs a bigger one is rare.
const keptBuffer = 256 << 10

func newUnpacker() *unpacker {
	// It begins nothing as long as it is given whole bodies only.
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxWindow(maxWindow),
		zstd.WithDecoderMaxMemory(MaxHeartbeat), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic("control: " + err.Error()) // its options are constants
	}
	return &unpacker{zstd: d, buffers: sync.Pool{New: func() any { b := make([]byte, 0, keptBuffer); return &b }}}
}

// unpack calls use with what b holds in the encoding of that name, at most limit bytes,
// which are valid until use returns.
func (u *unpacker) unpack(name string, b []byte, limit int, use func([]byte) error) error {
	if name != zstandard.String() {
		plain, err := unpack(name, b, int64(limit))
		if errors.Is(err, errTooBig) {
			return deny(TooBig, "the body unpacks to more than %d bytes", limit)
		}
		if err != nil {
			return deny(BadRequest, "the body cannot be unpacked: %w", err)
		}
		return use(plain)
	}
	var head zstd.Header
	if err := head.Decode(b); err != nil {
		return deny(BadRequest, "the body cannot be unpacked: %w", err)
	}
	kept := u.buffers.Get().(*[]byte)
	defer u.buffers.Put(kept)
	dst := *kept
	switch size := head.FrameContentSize; {
	case size > uint64(limit):
		return deny(TooBig, "the body unpacks to %d bytes, at most %d are read", size, limit)
	case !head.HasFCS:
		dst = make([]byte, 0, limit)
	case size > keptBuffer:
		dst = make([]byte, 0, size)
	}
	plain, err := u.zstd.DecodeAll(b, dst)
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		return deny(TooBig, "the body unpacks to more than it says, or than %d bytes", limit)
	}
	if err != nil {
		return deny(BadRequest, "the body cannot be unpacked: %w", err)
	}
	return use(plain)
}
