package frames

import "bytes"

// pictures writes the H.264 of the synthetic streams: constrained baseline, CAVLC,
// an IDR picture of plain grey and P pictures that skip every macroblock
// (ITU-T H.264, 7.3 for the syntax). They cost little and any decoder takes them.
type pictures struct {
	width, height int // pixels
	mbw, mbh      int // macroblocks
	idr           []byte
}

func newPictures(width, height int) pictures {
	p := pictures{width: width, height: height, mbw: (width + 15) / 16, mbh: (height + 15) / 16}
	p.idr = p.grey(0)
	return p
}

// config returns the AVCDecoderConfigurationRecord (ISO 14496-15, 5.2.4.1).
func (p pictures) config() []byte {
	sps, pps := p.sps(), p.pps()
	b := []byte{1, sps[1], sps[2], sps[3], 0xff, 0xe1, byte(len(sps) >> 8), byte(len(sps))}
	b = append(b, sps...)
	b = append(b, 1, byte(len(pps)>>8), byte(len(pps)))
	return append(b, pps...)
}

func (p pictures) sps() []byte {
	level := uint64(31) // up to 1280x720 at 30 frames a second
	if p.mbw*p.mbh > 3600 {
		level = 51
	}
	var w bits
	w.put(8, 66) // baseline
	w.put(8, 0xc0)
	w.put(8, level)
	w.ue(0) // seq_parameter_set_id
	w.ue(4) // frame_num has 8 bits
	w.ue(2) // pic_order_cnt_type: output is in decoding order
	w.ue(1) // max_num_ref_frames
	w.put(1, 0)
	w.ue(uint64(p.mbw - 1))
	w.ue(uint64(p.mbh - 1))
	w.put(1, 1) // frame_mbs_only_flag
	w.put(1, 1) // direct_8x8_inference_flag
	right, bottom := p.mbw*16-p.width, p.mbh*16-p.height
	if right+bottom == 0 {
		w.put(1, 0)
	} else {
		w.put(1, 1)
		w.ue(0)
		w.ue(uint64(right / 2))
		w.ue(0)
		w.ue(uint64(bottom / 2))
	}
	w.put(1, 0) // no VUI
	return w.unit(0x67)
}

func (p pictures) pps() []byte {
	var w bits
	w.ue(0)
	w.ue(0)
	w.put(2, 0) // CAVLC, no bottom field order
	w.ue(0)     // one slice group
	w.ue(0)
	w.ue(0)
	w.put(3, 0) // no weighted prediction
	w.ue(0)     // quantisers
	w.ue(0)
	w.ue(0)
	w.put(3, 4) // deblocking_filter_control_present_flag
	return w.unit(0x68)
}

// grey is an IDR picture: every macroblock is Intra16x16 with DC prediction and no residual.
func (p pictures) grey(id uint64) []byte {
	var w bits
	w.ue(0)     // first_mb_in_slice
	w.ue(7)     // I
	w.ue(0)     // pic_parameter_set_id
	w.put(8, 0) // frame_num
	w.ue(id)
	w.put(2, 0) // dec_ref_pic_marking
	w.ue(0)     // slice_qp_delta
	w.ue(1)     // no deblocking
	for range p.mbw * p.mbh {
		w.put(8, 0x27) // mb_type 3, intra_chroma_pred_mode 0, mb_qp_delta 0, no coefficients
	}
	return w.unit(0x65)
}

// slice returns the picture number n of a GOP.
func (p pictures) slice(n, gop int64) []byte {
	if n == 0 {
		if gop%2 == 0 {
			return p.idr
		}
		return p.grey(1) // idr_pic_id must differ between neighbours
	}
	var w bits
	w.ue(0)
	w.ue(5) // P
	w.ue(0)
	w.put(8, uint64(n)&0xff)
	w.put(3, 0) // references as they are, sliding window
	w.ue(0)
	w.ue(1)
	w.ue(uint64(p.mbw * p.mbh)) // mb_skip_run
	return w.unit(0x41)
}

// bits writes a bit string.
type bits struct {
	b    []byte
	free uint // unused bits in the last byte
}

func (w *bits) put(n uint, v uint64) {
	for n > 0 {
		if w.free == 0 {
			w.b, w.free = append(w.b, 0), 8
		}
		k := min(n, w.free)
		w.b[len(w.b)-1] |= byte(v>>(n-k)&(1<<k-1)) << (w.free - k)
		n, w.free = n-k, w.free-k
	}
}

// ue writes an Exp-Golomb code (9.1).
func (w *bits) ue(v uint64) {
	n := uint(0)
	for (v+1)>>(n+1) > 0 {
		n++
	}
	w.put(n, 0)
	w.put(n+1, v+1)
}

// unit ends the bit string and returns it as a NAL unit with emulation prevention (7.4.1).
func (w *bits) unit(header byte) []byte {
	w.put(1, 1)
	if !bytes.Contains(w.b, []byte{0, 0}) {
		return append([]byte{header}, w.b...)
	}
	out, zeros := []byte{header}, 0
	for _, c := range w.b {
		if zeros == 2 && c <= 3 {
			out, zeros = append(out, 3), 0
		}
		if c == 0 {
			zeros++
		} else {
			zeros = 0
		}
		out = append(out, c)
	}
	return out
}
