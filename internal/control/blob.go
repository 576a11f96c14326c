package control

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"millrace/internal/geo"
)

// Blob is a file that a bundle needs and that rarely changes. It travels on its own,
// named by its content.
type Blob struct {
	Sum  string `json:"sum"` // SHA-256, 64 hexadecimal digits
	Size int64  `json:"size"`

	read func() ([]byte, error) // nil while the content is not here
}

// MaxBlob bounds a coverage or mmdb file.
const MaxBlob = geo.MaxMMDBBytes

// NewBlob returns a blob of data, which it keeps.
func NewBlob(data []byte) *Blob {
	return &Blob{Sum: sumOf(data), Size: int64(len(data)), read: func() ([]byte, error) { return data, nil }}
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Data returns the content, not to be changed. It may come from a file of this
// program's own, and then the error says what is wrong with that.
func (b *Blob) Data() ([]byte, error) {
	if b.read == nil {
		return nil, fmt.Errorf("the file with the sum %.16s… is not here", b.Sum)
	}
	return b.read()
}

// verify decides whether data is the content of b.
func (b *Blob) verify(data []byte) error {
	if int64(len(data)) != b.Size {
		return fmt.Errorf("the file with the sum %.16s… has %d bytes, want %d", b.Sum, len(data), b.Size)
	}
	if sum := sumOf(data); sum != b.Sum {
		return fmt.Errorf("the file with the sum %.16s… is damaged: its sum is %.16s…", b.Sum, sum)
	}
	return nil
}

// check looks at what is said of a blob; nil is none.
func (b *Blob) check() error {
	if b == nil {
		return nil
	}
	if sum, err := hex.DecodeString(b.Sum); err != nil || len(sum) != sha256.Size || hex.EncodeToString(sum) != b.Sum {
		return fmt.Errorf("the sum of a file is %.80q: want 64 hexadecimal digits", b.Sum)
	}
	if b.Size < 0 || b.Size > MaxBlob {
		return fmt.Errorf("a file has %d bytes, at most %d are read", b.Size, int64(MaxBlob))
	}
	return nil
}
