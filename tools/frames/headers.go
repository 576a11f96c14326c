package frames

import (
	"encoding/binary"
	"encoding/hex"
	"math"
)

// Configuration records of 1280x720 that x265 and SVT-AV1 wrote (ffmpeg 5.1, testsrc2).
const (
	hvcC = "0101600000009000000000005df000fcfdf8f800000f03200001001840010c01ffff016000000300900000030000030" +
		"05d959809210001002b42010101600000030090000003000003005da00280802d165959a4932bc05a020000030002000003" +
		"003c1022000100074401c172b46240"
	av1C = "81050c000a0b0000002d4cffb3c02f8004"
)

// videoHeader returns the payload of the sequence header.
func videoHeader(cfg Config, p pictures) []byte {
	switch cfg.Codec {
	case H265:
		return append([]byte{0x1c, 0, 0, 0, 0}, mustHex(hvcC)...)
	case H265Enhanced:
		return append([]byte("\x90hvc1"), mustHex(hvcC)...)
	case AV1:
		return append([]byte("\x90av01"), mustHex(av1C)...)
	}
	return append([]byte{0x17, 0, 0, 0, 0}, p.config()...)
}

func mustHex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

// metadata returns an onMetaData message as encoders send it: AMF0 string and ECMA array.
func metadata(cfg Config) []byte {
	b := append([]byte{2}, name("onMetaData")...)
	b = append(b, 8, 0, 0, 0, 0)
	count := len(b)
	n := uint32(0)
	number := func(key string, v float64) {
		b = append(append(b, name(key)...), 0)
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(v))
		n++
	}
	if !cfg.NoVideo {
		number("width", float64(cfg.Width))
		number("height", float64(cfg.Height))
		number("framerate", cfg.FPS)
		number("videodatarate", float64(cfg.VideoKbps))
		number("videocodecid", map[Codec]float64{H264: 7, H265: 12, H265Enhanced: 0x68766331, AV1: 0x61763031}[cfg.Codec])
	}
	if !cfg.NoAudio {
		number("audiosamplerate", sampleRate)
		number("audiodatarate", float64(cfg.AudioKbps))
		number("audiocodecid", 10)
	}
	b = append(append(b, name("encoder")...), 2)
	b = append(b, name("flvgen")...)
	binary.BigEndian.PutUint32(b[count-4:], n+1)
	return append(b, 0, 0, 9)
}

func name(s string) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(s))), s...)
}
