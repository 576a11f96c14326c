package rtmp

import (
	"encoding/binary"
	"math"

	"millrace/internal/flv"
	"millrace/internal/session"
)

// The names of data messages that we know (RTMP 1.0, section 7.1.2).
const (
	setDataFrame   = "@setDataFrame"
	clearDataFrame = "@clearDataFrame"
	onMetaData     = "onMetaData"
)

// emptyMetadata stands in for an onMetaData without an object, which breaks
// players. It says nothing about the tracks: what it claimed could be wrong.
var emptyMetadata = append(encode(onMetaData), amfECMAArray, 0, 0, 0, 1,
	0, 8, 'd', 'u', 'r', 'a', 't', 'i', 'o', 'n', amfNumber, 0, 0, 0, 0, 0, 0, 0, 0,
	0, 0, amfObjectEnd)

// mediaTag makes the tag of an audio, video or data message; it takes the
// message's bytes. A reason other than None says why there is none.
func mediaTag(m *message) (flv.Tag, session.Reason) {
	switch m.kind {
	case typeAudio, typeVideo:
		if len(m.wire) == framing {
			return flv.Tag{}, session.BadTag
		}
		return flv.Make(m.wire, int64(m.time)), session.None
	case typeDataAMF3:
		// One byte says which AMF follows. All encoders that use this type send AMF0.
		p := m.payload()
		if len(p) == 0 || p[0] != 0 {
			return flv.Tag{}, session.BadTag
		}
		m.wire = cut(m.wire, 1)
	}
	return scriptTag(m)
}

// cut takes n bytes off the front of a payload, in place.
func cut(wire []byte, n int) []byte {
	wire = wire[n:]
	seal(wire, typeData, len(wire)-framing)
	return wire
}

// scriptTag makes the tag of a data message. Encoders wrap their metadata in a
// call of @setDataFrame, meant for the server, so that is taken off. What is not
// valid AMF0 is not passed on.
func scriptTag(m *message) (flv.Tag, session.Reason) {
	name, n := dataName(m.payload())
	switch name {
	case setDataFrame:
		m.wire = cut(m.wire, n)
		name, n = dataName(m.payload())
	case clearDataFrame:
		return flv.Tag{}, session.BadTag
	}
	if n == 0 {
		return flv.Tag{}, session.BadTag
	}
	body := m.payload()[n:]
	switch {
	case name == onMetaData && !isMetadata(body):
		m.wire = flv.New(flv.Script, int64(m.time), emptyMetadata).Wire
	case len(body) > 0 && !validScript(body):
		return flv.Tag{}, session.BadTag
	}
	return flv.Make(m.wire, int64(m.time)), session.None
}

// isMetadata reports whether p is an object or an array with names.
func isMetadata(p []byte) bool {
	return len(p) > 0 && (p[0] == amfObject || p[0] == amfECMAArray || p[0] == amfTypedObject) && validScript(p)
}

// dataName returns the string that p begins with and how many bytes it takes; 0 if
// it begins with none.
func dataName(p []byte) (string, int) {
	if len(p) < 3 {
		return "", 0
	}
	n, at := int(binary.BigEndian.Uint16(p[1:])), 3
	switch {
	case p[0] == amfLongString && len(p) >= 5:
		n, at = int(min(binary.BigEndian.Uint32(p[1:]), math.MaxInt32)), 5
	case p[0] != amfString:
		return "", 0
	}
	if n > len(p)-at {
		return "", 0
	}
	return string(p[at : at+n]), at + n
}

// splitAggregate calls emit for each message in an aggregate (RTMP 1.0, section
// 7.1.6): FLV tags one behind the other. The time of the aggregate is that of the
// first; the others keep their distance to it. emit may keep the bytes, which are
// parts of m's. What is cut off at the end is left out.
func splitAggregate(m *message, emit func(*message) error) error {
	var first uint32
	p := m.payload()
	for begun := false; len(p) >= flv.HeaderSize; begun = true {
		n := int(p[1])<<16 | int(p[2])<<8 | int(p[3])
		time := uint32(p[4])<<16 | uint32(p[5])<<8 | uint32(p[6]) | uint32(p[7])<<24
		if len(p) < flv.HeaderSize+n {
			return nil
		}
		if !begun {
			first = time
		}
		part := message{stream: m.stream, time: m.time + time - first, kind: p[0]}
		end := framing + n
		if len(p) < end { // the last one may lack its size
			part.wire = flv.New(flv.Kind(part.kind), 0, p[flv.HeaderSize:]).Wire
			end = len(p)
		} else {
			part.wire = p[:end:end]
			seal(part.wire, part.kind, n)
		}
		p = p[end:]
		if !isMedia(part.kind) {
			continue
		}
		if err := emit(&part); err != nil {
			return err
		}
	}
	return nil
}
