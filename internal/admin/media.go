package admin

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/bluenviron/mediacommon/v2/pkg/codecs/av1"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h265"

	"millrace/internal/flv"
	"millrace/internal/stream"
)

// Resolution returns the size of the pictures of a stream: from its sequence
// header, else what its metadata claims, else 0, 0.
func Resolution(st stream.Stats) (width, height int) {
	if w, h := headerSize(st.Video); plausible(w, h) {
		return w, h
	}
	if st.Meta.Wire == nil {
		return 0, 0
	}
	p := st.Meta.Payload()
	if w, h := metaNumber(p, "width"), metaNumber(p, "height"); plausible(w, h) {
		return w, h
	}
	return 0, 0
}

// plausible keeps nonsense out of the API; 16384 is more than any codec level has.
func plausible(w, h int) bool { return w > 0 && h > 0 && w <= 16384 && h <= 16384 }

// headerSize reads the size of the picture from a sequence header.
func headerSize(t flv.Tag) (w, h int) {
	if t.Wire == nil {
		return 0, 0
	}
	// The bytes come from a stranger and go to parsers that are not ours: a fault
	// there must not end the node.
	defer func() {
		if recover() != nil {
			w, h = 0, 0
		}
	}()
	// Both the legacy header (FLV 10.1, E.4.3.1: frame type and codec, packet type,
	// composition time) and the plain enhanced one (type, FourCC) are 5 bytes; the
	// latter with prefixes or several tracks is left to the metadata.
	p := t.Payload()
	if len(p) < 6 || p[0]&0x80 != 0 && p[0]&0x0f != 0 {
		return 0, 0
	}
	p = p[5:]
	switch t.Codec {
	case flv.H264:
		var sps h264.SPS
		if b := avcSPS(p); b != nil && sps.Unmarshal(b) == nil {
			return sps.Width(), sps.Height()
		}
	case flv.H265:
		var sps h265.SPS
		if b := hevcSPS(p); b != nil && sps.Unmarshal(b) == nil {
			return sps.Width(), sps.Height()
		}
	case flv.AV1:
		var seq av1.SequenceHeader
		if b := av1Sequence(p); b != nil && seq.Unmarshal(b) == nil {
			return seq.Width(), seq.Height()
		}
	}
	return 0, 0
}

// avcSPS returns the first SPS of an AVCDecoderConfigurationRecord (ISO/IEC
// 14496-15, 5.3.3.1).
func avcSPS(p []byte) []byte {
	if len(p) < 8 || p[5]&0x1f == 0 {
		return nil
	}
	n := int(binary.BigEndian.Uint16(p[6:]))
	if n == 0 || len(p) < 8+n {
		return nil
	}
	return p[8 : 8+n]
}

// hevcSPS returns the first SPS of an HEVCDecoderConfigurationRecord (ISO/IEC
// 14496-15, 8.3.3.1).
func hevcSPS(p []byte) []byte {
	const fixed, typeSPS = 22, 33
	if len(p) <= fixed {
		return nil
	}
	arrays, p := int(p[fixed]), p[fixed+1:]
	for range arrays {
		if len(p) < 3 {
			return nil
		}
		kind, count := p[0]&0x3f, int(binary.BigEndian.Uint16(p[1:]))
		p = p[3:]
		for range count {
			if len(p) < 2 {
				return nil
			}
			n := int(binary.BigEndian.Uint16(p))
			if len(p) < 2+n {
				return nil
			}
			if kind == typeSPS && n > 0 {
				return p[2 : 2+n]
			}
			p = p[2+n:]
		}
	}
	return nil
}

// av1Sequence returns the sequence header OBU of an AV1CodecConfigurationRecord
// (AV1-ISOBMFF, 2.3.3).
func av1Sequence(p []byte) []byte {
	if len(p) <= 4 {
		return nil
	}
	var obus av1.Bitstream
	if obus.Unmarshal(p[4:]) != nil {
		return nil
	}
	for _, o := range obus {
		if len(o) > 0 && o[0]>>3&0x0f == 1 {
			return o
		}
	}
	return nil
}

// metaNumber returns a number of onMetaData, or 0: the key with its length before
// it, then the marker 0 and a double (AMF0, 2.2 and 2.5).
func metaNumber(p []byte, key string) int {
	want := append([]byte{0, byte(len(key))}, key...)
	i := bytes.Index(p, append(want, 0))
	if i < 0 || len(p) < i+len(want)+9 {
		return 0
	}
	f := math.Float64frombits(binary.BigEndian.Uint64(p[i+len(want)+1:]))
	if !(f >= 0 && f <= 1<<20) {
		return 0
	}
	return int(f)
}
