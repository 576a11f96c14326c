package flv

import "bytes"

// Codec is the coding of a track.
type Codec uint8

// The codecs that are recognised. Others pass through as None.
const (
	None Codec = iota
	H263
	H264
	H265
	VP8
	VP9
	AV1
	AAC
	MP3
	Opus
	AC3
	EAC3
	FLAC
	PCM
	Speex
	codecs // how many there are
)

// String returns the name used in the API.
func (c Codec) String() string {
	if c >= codecs {
		return "unknown"
	}
	return [codecs]string{
		"unknown", "h263", "h264", "h265", "vp8", "vp9", "av1",
		"aac", "mp3", "opus", "ac3", "eac3", "flac", "pcm", "speex",
	}[c]
}

// Classify looks at the first bytes of a payload. It never fails: what it does
// not know gets codec None and, for audio and video, the flag Frame when there is
// a payload at all.
func Classify(kind Kind, payload []byte) (Codec, Flags) {
	switch kind {
	case Audio:
		return classifyAudio(payload)
	case Video:
		return classifyVideo(payload)
	case Script:
		if bytes.HasPrefix(payload, onMetaData) {
			return None, Metadata
		}
	}
	return None, 0
}

var onMetaData = []byte("\x02\x00\x0aonMetaData")

// Enhanced RTMP v2, "ExVideoTagHeader" and "ExAudioTagHeader": packet types.
const (
	packetSequenceStart   = 0
	packetCodedFrames     = 1
	packetSequenceEnd     = 2
	packetCodedFramesX    = 3
	packetVideoMetadata   = 4
	packetMPEG2TSSequence = 5
	packetVideoMultitrack = 6
	packetVideoModEx      = 7

	packetAudioMultichannel = 4
	packetAudioMultitrack   = 5
	packetAudioModEx        = 7
)

const frameTypeKey = 1 // FLV 10.1, E.4.3.1; 4 is a "generated keyframe", server use only

// classifyVideo reads FLV 10.1 E.4.3.1 and, when the high bit of the first byte
// is set, the enhanced header. That bit must be looked at first: read as a legacy
// header, 0x90 would be H.263.
func classifyVideo(p []byte) (Codec, Flags) {
	if len(p) == 0 {
		return None, 0
	}
	if p[0]&0x80 != 0 {
		return classifyExVideo(p)
	}
	key := p[0]>>4 == frameTypeKey
	switch p[0] >> 4 {
	case 5: // video info or command frame
		return None, 0
	}
	switch p[0] & 0x0f {
	case 2:
		return H263, frame(key)
	case 7:
		return H264, legacyPacket(p, key)
	case 12: // not in the specification, but what HEVC over RTMP used for years
		return H265, legacyPacket(p, key)
	case 13: // likewise for AV1
		return AV1, legacyPacket(p, key)
	}
	return None, frame(key)
}

func frame(key bool) Flags {
	if key {
		return Frame | Keyframe
	}
	return Frame
}

// legacyPacket reads AVCPacketType, the second byte.
func legacyPacket(p []byte, key bool) Flags {
	if len(p) < 2 {
		return 0
	}
	body := len(p) > 5 // behind the composition time
	switch {
	case p[1] == 0 && body:
		return Header
	case p[1] == 1 && body:
		return frame(key)
	case p[1] == 2:
		return EndOfSequence
	}
	return 0 // nothing configures nothing, and is no picture
}

func classifyExVideo(p []byte) (Codec, Flags) {
	frameType, packet := p[0]>>4&7, p[0]&0x0f
	p, packet, ok := skipModEx(p[1:], packet, packetVideoModEx)
	if !ok || frameType == 5 && packet != packetVideoMetadata {
		return None, 0
	}
	before := 4 // the FourCC
	if packet == packetVideoMultitrack {
		if len(p) < 1 {
			return None, 0
		}
		packet = p[0] & 0x0f // the first track speaks for the tag
		p = p[1:]
		before++ // its number
	}
	if len(p) < 4 {
		return None, 0
	}
	codec := videoFourCC(string(p[:4]))
	if packet == packetCodedFrames && (codec == H264 || codec == H265) {
		before += 3 // the composition time
	}
	body := len(p) > before
	switch packet {
	case packetSequenceStart, packetMPEG2TSSequence:
		if body {
			return codec, Header
		}
	case packetCodedFrames, packetCodedFramesX:
		if body {
			return codec, frame(frameType == frameTypeKey)
		}
	case packetSequenceEnd:
		return codec, EndOfSequence
	}
	return codec, 0 // nothing configures nothing, and is no picture
}

func videoFourCC(s string) Codec {
	switch s {
	case "avc1":
		return H264
	case "hvc1":
		return H265
	case "vp08":
		return VP8
	case "vp09":
		return VP9
	case "av01":
		return AV1
	}
	return None
}

// classifyAudio reads FLV 10.1 E.4.2.1 and the enhanced header (sound format 9).
func classifyAudio(p []byte) (Codec, Flags) {
	if len(p) == 0 {
		return None, 0
	}
	switch p[0] >> 4 {
	case 0, 1, 3, 7, 8:
		return PCM, Frame
	case 2, 14:
		return MP3, Frame
	case 9:
		return classifyExAudio(p)
	case 10:
		if len(p) < 2 {
			return AAC, 0
		}
		switch {
		case len(p) == 2: // an empty configuration, or an empty frame
			return AAC, 0
		case p[1] == 0:
			return AAC, Header
		}
		return AAC, Frame
	case 11:
		return Speex, Frame
	case 13: // not in the specification; Opus as some encoders send it
		if len(p) >= 2 && p[1] == 0 {
			return Opus, Header
		}
		return Opus, Frame
	}
	return None, Frame
}

func classifyExAudio(p []byte) (Codec, Flags) {
	p, packet, ok := skipModEx(p[1:], p[0]&0x0f, packetAudioModEx)
	if !ok {
		return None, 0
	}
	before := 4 // the FourCC
	if packet == packetAudioMultitrack {
		if len(p) < 1 {
			return None, 0
		}
		packet = p[0] & 0x0f
		p = p[1:]
		before++ // the number of the first track
	}
	if len(p) < 4 {
		return None, 0
	}
	codec := audioFourCC(string(p[:4]))
	body := len(p) > before
	switch packet {
	case packetSequenceStart:
		if body {
			return codec, Header
		}
	case packetCodedFrames:
		if body {
			return codec, Frame
		}
	case packetSequenceEnd:
		return codec, EndOfSequence
	}
	return codec, 0
}

func audioFourCC(s string) Codec {
	switch s {
	case "mp4a":
		return AAC
	case ".mp3":
		return MP3
	case "Opus":
		return Opus
	case "ac-3":
		return AC3
	case "ec-3":
		return EAC3
	case "fLaC":
		return FLAC
	}
	return None
}

// skipModEx passes over "ModEx" prefixes (enhanced RTMP v2): a size less one in 8
// bits, or 255 and then 16 bits, that many bytes, then a byte whose low half is
// the next packet type.
func skipModEx(p []byte, packet, modEx byte) (rest []byte, next byte, ok bool) {
	for packet == modEx {
		if len(p) < 1 {
			return nil, 0, false
		}
		n, at := int(p[0])+1, 1
		if n == 256 {
			if len(p) < 3 {
				return nil, 0, false
			}
			n, at = int(p[1])<<8+int(p[2])+1, 3
		}
		if len(p) < at+n+1 {
			return nil, 0, false
		}
		packet = p[at+n] & 0x0f
		p = p[at+n+1:]
	}
	return p, packet, true
}
