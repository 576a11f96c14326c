package console

import (
	"bytes"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// packers are for answers. Making one costs more than most answers.
var packers = sync.Pool{New: func() any { return newPacker(gzip.BestSpeed) }}

func newPacker(level int) *gzip.Writer {
	w, err := gzip.NewWriterLevel(nil, level)
	if err != nil {
		panic(err) // the level is one that there is
	}
	return w
}

// packed returns b by gzip.
func packed(w *gzip.Writer, b []byte) []byte {
	var out bytes.Buffer
	w.Reset(&out)
	_, _ = w.Write(b) // into memory
	_ = w.Close()
	return out.Bytes()
}
