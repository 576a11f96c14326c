package sched

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxSnapshotBytes bounds a Snapshot as JSON: 16,384 nodes of 1 KB, a million rows of
// quality would be too many.
const MaxSnapshotBytes = 64 << 20

// ParseSnapshot reads a Snapshot from JSON, strictly: unknown keys, unknown words and
// more than one value are errors, and so is what [Snapshot.Validate] finds.
func ParseSnapshot(b []byte) (*Snapshot, error) {
	if len(b) > MaxSnapshotBytes {
		return nil, fmt.Errorf("snapshot: longer than %d bytes", MaxSnapshotBytes)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	s := &Snapshot{}
	if err := d.Decode(s); err != nil {
		return nil, fmt.Errorf("snapshot: byte %d: %w", d.InputOffset(), err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("snapshot: byte %d: more follows the value: send one", d.InputOffset())
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return s, nil
}
