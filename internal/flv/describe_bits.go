package flv

import (
	"encoding/binary"

	"github.com/bluenviron/mediacommon/v2/pkg/bits"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"
)

// bitReader reads fields of a parameter set. After the end, or a code that is too
// long, everything reads as zero and bad is set.
type bitReader struct {
	b   []byte
	pos int
	bad bool
}

func (r *bitReader) u(n int) uint64 {
	if r.bad {
		return 0
	}
	v, err := bits.ReadBits(r.b, &r.pos, n)
	r.bad = err != nil
	return v
}

func (r *bitReader) flag() bool { return r.u(1) == 1 }

// ue reads an Exp-Golomb code (H.265, 9.2), which AV1 calls uvlc.
func (r *bitReader) ue() uint32 {
	if r.bad {
		return 0
	}
	v, err := bits.ReadGolombUnsigned(r.b, &r.pos)
	r.bad = err != nil
	return v
}

func (r *bitReader) skip(n int) {
	for ; n > 32; n -= 32 {
		r.u(32)
	}
	r.u(n)
}

// readHEVC reads an HEVCDecoderConfigurationRecord (ISO/IEC 14496-15, 8.3.3.1).
func (d *Description) readHEVC(p []byte) bool {
	const fixed, typeSPS = 22, 33
	if len(p) <= fixed || p[0] != 1 {
		return false
	}
	d.Profile = map[byte]string{1: "Main", 2: "Main 10", 3: "Main Still Picture", 4: "Range Extensions"}[p[1]&0x1f]
	d.Level = level(int(p[12]), 30)
	arrays, p := int(p[fixed]), p[fixed+1:]
	for range arrays {
		if len(p) < 3 {
			return false
		}
		kind, count := p[0]&0x3f, int(binary.BigEndian.Uint16(p[1:]))
		p = p[3:]
		for range count {
			if len(p) < 2 {
				return false
			}
			n := int(binary.BigEndian.Uint16(p))
			if len(p) < 2+n {
				return false
			}
			if kind == typeSPS && n > 2 {
				return d.readHEVCSize(p[2 : 2+n])
			}
			p = p[2+n:]
		}
	}
	return false
}

// readHEVCSize reads an SPS as far as the picture size (H.265, 7.3.2.2.1). The
// library's own parser goes on to the end, and refuses what it does not know there
// (long-term reference pictures).
func (d *Description) readHEVCSize(sps []byte) bool {
	if sps[0]>>1&0x3f != 33 {
		return false
	}
	r := bitReader{b: h264.EmulationPreventionRemove(sps[2:])}
	r.u(4)
	subLayers := int(r.u(3)) // sps_max_sub_layers_minus1
	r.u(1)
	r.skip(88 + 8) // profile_tier_level (7.3.3): general profile and level
	var present [7]struct{ profile, level bool }
	for i := range subLayers {
		present[i].profile, present[i].level = r.flag(), r.flag()
	}
	if subLayers > 0 {
		r.skip(2 * (8 - subLayers))
	}
	for i := range subLayers {
		if present[i].profile {
			r.skip(88)
		}
		if present[i].level {
			r.skip(8)
		}
	}
	r.ue() // sps_seq_parameter_set_id
	chroma := r.ue()
	if chroma == 3 {
		r.flag() // separate_colour_plane_flag
	}
	width, height := int64(r.ue()), int64(r.ue())
	if r.flag() { // conformance_window_flag; the units are those of table 6-1
		unitX, unitY := int64(1), int64(1)
		if chroma == 1 || chroma == 2 {
			unitX = 2
		}
		if chroma == 1 {
			unitY = 2
		}
		width -= unitX * (int64(r.ue()) + int64(r.ue()))
		height -= unitY * (int64(r.ue()) + int64(r.ue()))
	}
	if r.bad || chroma > 3 || width < 1 || height < 1 || width > maxSide || height > maxSide {
		return false
	}
	d.Width, d.Height = int(width), int(height)
	return true
}

// readAV1 reads an AV1CodecConfigurationRecord (AV1 in ISOBMFF, 2.3.3).
func (d *Description) readAV1(p []byte) bool {
	if len(p) < 5 || p[0] != 0x81 {
		return false
	}
	d.Profile = map[byte]string{0: "Main", 1: "High", 2: "Professional"}[p[1]>>5]
	if l := int(p[1] & 0x1f); l < 24 { // AV1, A.3; above are reserved numbers and "any"
		d.Level = level((2+l>>2)*10+l&3, 10)
	}
	for p = p[4:]; len(p) > 0; {
		kind, body, rest, ok := nextOBU(p)
		if !ok {
			return false
		}
		if kind == 1 { // OBU_SEQUENCE_HEADER
			return d.readAV1Size(body)
		}
		p = rest
	}
	return false
}

// nextOBU takes the first unit off p (AV1, 5.3).
func nextOBU(p []byte) (kind byte, body, rest []byte, ok bool) {
	head := p[0]
	if head&0x80 != 0 {
		return 0, nil, nil, false
	}
	p = p[1:]
	if head&4 != 0 { // extension
		if len(p) < 1 {
			return 0, nil, nil, false
		}
		p = p[1:]
	}
	kind = head >> 3 & 0x0f
	if head&2 == 0 { // without a size it is the last one
		return kind, p, nil, true
	}
	n, used := binary.Uvarint(p) // leb128 is the same coding
	if used <= 0 || n > uint64(len(p)-used) {
		return 0, nil, nil, false
	}
	return kind, p[used : used+int(n)], p[used+int(n):], true
}

// readAV1Size reads a sequence header as far as the frame size (AV1, 5.5.1). The
// library's own parser refuses decoder models and display delays.
func (d *Description) readAV1Size(body []byte) bool {
	r := bitReader{b: body}
	r.u(3 + 1)    // seq_profile, still_picture
	if r.flag() { // reduced_still_picture_header
		r.u(5)
	} else {
		delayBits := 0
		decoderModel := false
		if r.flag() { // timing_info_present_flag
			r.skip(64)
			if r.flag() {
				r.ue()
			}
			if decoderModel = r.flag(); decoderModel {
				delayBits = int(r.u(5)) + 1
				r.skip(32 + 5 + 5)
			}
		}
		displayDelay := r.flag()
		for range r.u(5) + 1 { // operating points
			r.u(12)
			if r.u(5) > 7 {
				r.u(1)
			}
			if decoderModel && r.flag() {
				r.skip(2*delayBits + 1)
			}
			if displayDelay && r.flag() {
				r.u(4)
			}
		}
	}
	widthBits, heightBits := int(r.u(4))+1, int(r.u(4))+1
	d.Width, d.Height = int(r.u(widthBits))+1, int(r.u(heightBits))+1
	return !r.bad
}
