package flv

import (
	"encoding/binary"

	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/mpeg4audio"
)

// Description is what a sequence header says about its track. What it does not say
// is zero.
type Description struct {
	Codec      Codec
	Profile    string // as the codec's specification calls it
	Level      string // "4.1"
	Width      int
	Height     int
	SampleRate int // in hertz
	Channels   int
}

// Bounds of what is believed: more than any level of the codecs has.
const (
	maxConfig     = 16 << 10 // bytes of a sequence header
	maxSide       = 16384
	maxSampleRate = 768_000
	maxChannels   = 64
)

// Describe reads the sequence header t. ok is false if t is none, or of a codec
// without a known form, or odd in any way.
func Describe(t Tag) (d Description, ok bool) {
	if !t.Is(Header) || len(t.Wire) < HeaderSize+TrailerSize {
		return Description{}, false
	}
	codec, config, ok := sequenceConfig(t.Kind, t.Payload())
	if !ok || len(config) > maxConfig {
		return Description{}, false
	}
	d.Codec = codec
	switch codec {
	case H264:
		ok = d.readAVC(config)
	case H265:
		ok = d.readHEVC(config)
	case AV1:
		ok = d.readAV1(config)
	case VP9:
		ok = d.readVP9(config)
	case AAC:
		ok = d.readAAC(config)
	case Opus:
		ok = d.readOpus(config)
	default:
		ok = false
	}
	if !ok || !d.plausible() {
		return Description{}, false
	}
	return d, true
}

func (d *Description) plausible() bool {
	if d.Width < 0 || d.Width > maxSide || d.Height < 0 || d.Height > maxSide || (d.Width == 0) != (d.Height == 0) {
		return false
	}
	return d.SampleRate >= 0 && d.SampleRate <= maxSampleRate && d.Channels >= 0 && d.Channels <= maxChannels
}

// sequenceConfig returns the decoder configuration within the payload of a
// sequence header; of several tracks, the first.
func sequenceConfig(kind Kind, p []byte) (codec Codec, config []byte, ok bool) {
	if len(p) < 2 {
		return None, nil, false
	}
	codec, _ = Classify(kind, p)
	switch {
	case kind == Video && p[0]&0x80 != 0:
		config, ok = exConfig(p, packetVideoModEx, packetVideoMultitrack)
		return codec, config, ok
	case kind == Audio && p[0]>>4 == 9:
		config, ok = exConfig(p, packetAudioModEx, packetAudioMultitrack)
		return codec, config, ok
	case kind == Video && len(p) > 5: // FLV 10.1, E.4.3.1: packet type, composition time
		return codec, p[5:], true
	case kind == Audio && len(p) > 2: // E.4.2.1: packet type
		return codec, p[2:], true
	}
	return None, nil, false
}

// exConfig passes over the header of enhanced RTMP v2, which audio and video have
// in common but for the numbers of packet types.
func exConfig(p []byte, modEx, multitrack byte) ([]byte, bool) {
	rest, packet, ok := skipModEx(p[1:], p[0]&0x0f, modEx)
	if !ok {
		return nil, false
	}
	if packet != multitrack {
		if packet != packetSequenceStart || len(rest) <= 4 {
			return nil, false
		}
		return rest[4:], true
	}
	// AvMultitrackType and packet type, FourCC, track number, and with more than one
	// track the size of each.
	const oneTrack = 0
	if len(rest) < 6 || rest[0]&0x0f != packetSequenceStart {
		return nil, false
	}
	one := rest[0]>>4 == oneTrack
	if rest = rest[6:]; one {
		return rest, len(rest) > 0
	}
	if len(rest) < 3 {
		return nil, false
	}
	n := int(rest[0])<<16 | int(rest[1])<<8 | int(rest[2])
	rest = rest[3:]
	if n == 0 || n > len(rest) {
		return nil, false
	}
	return rest[:n], true
}

// readAVC reads an AVCDecoderConfigurationRecord (ISO/IEC 14496-15, 5.3.3.1).
func (d *Description) readAVC(p []byte) bool {
	if len(p) < 8 || p[0] != 1 || p[5]&0x1f == 0 {
		return false
	}
	n := int(binary.BigEndian.Uint16(p[6:]))
	if n == 0 || len(p) < 8+n {
		return false
	}
	var sps h264.SPS
	if sps.Unmarshal(p[8:8+n]) != nil || sps.ChromaFormatIdc > 3 {
		return false
	}
	// The library computes in 32 bits; keep it from wrapping into a likely size.
	const mb, most = 16, maxSide / 16
	if sps.PicWidthInMbsMinus1 >= most || sps.PicHeightInMapUnitsMinus1 >= most {
		return false
	}
	if c := sps.FrameCropping; c != nil && max(c.LeftOffset, c.RightOffset, c.TopOffset, c.BottomOffset) > maxSide {
		return false
	}
	d.Width, d.Height = sps.Width(), sps.Height()
	d.Profile = avcProfile(sps)
	d.Level = level(int(sps.LevelIdc), 10)
	if sps.LevelIdc == 11 && sps.ConstraintSet3Flag && sps.ProfileIdc < 100 {
		d.Level = "1b" // H.264, A.3.1
	}
	return d.Width > 0 && d.Height > 0
}

// avcProfile names profile_idc (H.264, A.2).
func avcProfile(sps h264.SPS) string {
	switch sps.ProfileIdc {
	case 66:
		if sps.ConstraintSet1Flag {
			return "Constrained Baseline"
		}
		return "Baseline"
	case 77:
		return "Main"
	case 88:
		return "Extended"
	case 100:
		return "High"
	case 110:
		return "High 10"
	case 122:
		return "High 4:2:2"
	case 244:
		return "High 4:4:4 Predictive"
	case 44:
		return "CAVLC 4:4:4 Intra"
	}
	return ""
}

// level writes a level that is coded as unit times its number.
func level(idc, unit int) string {
	if idc <= 0 || idc/unit > 99 {
		return ""
	}
	major, minor := idc/unit, idc%unit*10/unit
	out := make([]byte, 0, 4)
	if major >= 10 {
		out = append(out, byte('0'+major/10))
	}
	out = append(out, byte('0'+major%10))
	if minor > 0 {
		out = append(out, '.', byte('0'+minor))
	}
	return string(out)
}

// readAAC reads an AudioSpecificConfig (ISO/IEC 14496-3, 1.6.2.1).
func (d *Description) readAAC(p []byte) bool {
	var c mpeg4audio.AudioSpecificConfig
	if c.Unmarshal(p) != nil || c.SampleRate <= 0 {
		return false
	}
	d.Profile, d.SampleRate, d.Channels = "LC", c.SampleRate, channels(c.ChannelConfig)
	switch c.ExtensionType {
	case mpeg4audio.ObjectTypeSBR:
		d.Profile, d.SampleRate = "HE-AAC", c.ExtensionSampleRate
	case mpeg4audio.ObjectTypePS: // one channel is sent, and two are heard
		d.Profile, d.SampleRate, d.Channels = "HE-AAC v2", c.ExtensionSampleRate, 2
	}
	return d.SampleRate > 0
}

// channels returns how many a channel configuration means (table 1.19), 0 if it is
// described elsewhere.
func channels(config uint8) int {
	if config == 7 {
		return 8
	}
	return int(config)
}

// readOpus reads an identification header (RFC 7845, 5.1). Opus always plays at
// 48 kHz; the rate in the header is what the source had.
func (d *Description) readOpus(p []byte) bool {
	if len(p) < 19 || string(p[:8]) != "OpusHead" || p[8]>>4 != 0 || p[9] == 0 {
		return false
	}
	d.SampleRate, d.Channels = 48_000, int(p[9])
	return true
}

// readVP9 reads a VPCodecConfigurationRecord (VP9 in ISOBMFF, "vpcC"), which does
// not have the size of the picture.
func (d *Description) readVP9(p []byte) bool {
	if len(p) < 12 || p[0] != 1 || p[4] > 3 {
		return false
	}
	d.Profile = string([]byte{'0' + p[4]})
	d.Level = level(int(p[5]), 10)
	return true
}
