package frontend

import (
	"encoding/binary"

	"github.com/miekg/dns"
)

// section is a part of a message that records go into; its value is where the
// header counts them.
type section int

const (
	answerSection     section = 6
	authoritySection  section = 8
	additionalSection section = 10
)

// reply is a message that is being written into a buffer of its owner. The OPT record
// comes last; room for it is kept from the beginning (RFC 6891, 7).
type reply struct {
	b     []byte
	limit int  // up to where records may go
	cut   bool // a record that had to be there did not fit
}

// begin writes the header and the question, in the case it was asked in, and keeps
// room for what finish adds. limit is how long the message may be in all.
func (r *reply) begin(buf, msg []byte, q *query, limit int) {
	r.b = append(buf[:0], msg[:headerLen]...)
	clear(r.b[2:headerLen])
	if q.question > 0 {
		r.b[5] = 1
		r.b = append(r.b, msg[headerLen:q.question]...)
	}
	r.limit, r.cut = limit, false
	if q.edns {
		r.limit -= optLen + q.ecs.size()
		if q.cookie != nil {
			r.limit -= optionHeader + cookieLen
		}
	}
}

// questionName is where the name of the question is, and the end of it is where the
// names of its zone and of what is above are. A pointer reaches all of them.
const questionName = headerLen

func pointer(owner int) uint16 { return 0xc000 | uint16(owner) }

// add writes a record whose owner is the name at offset owner. It reports whether it
// fitted.
func (r *reply) add(s section, owner int, kind uint16, ttl uint32, data []byte) bool {
	if len(r.b)+2+rrFixed+len(data) > r.limit {
		return false
	}
	r.b = binary.BigEndian.AppendUint16(r.b, pointer(owner))
	r.fields(s, kind, ttl, data)
	return true
}

// addNamed is add for an owner that is nowhere in the message.
func (r *reply) addNamed(s section, owner []byte, kind uint16, ttl uint32, data []byte) bool {
	if len(r.b)+len(owner)+rrFixed+len(data) > r.limit {
		return false
	}
	r.b = append(r.b, owner...)
	r.fields(s, kind, ttl, data)
	return true
}

// must is add for a record without which the message has to be asked for again over
// TCP.
func (r *reply) must(s section, owner int, kind uint16, ttl uint32, data []byte) {
	if !r.cut && !r.add(s, owner, kind, ttl, data) {
		r.cut = true
	}
}

func (r *reply) fields(s section, kind uint16, ttl uint32, data []byte) {
	r.b = binary.BigEndian.AppendUint16(r.b, kind)
	r.b = binary.BigEndian.AppendUint16(r.b, dns.ClassINET)
	r.b = binary.BigEndian.AppendUint32(r.b, ttl)
	r.b = binary.BigEndian.AppendUint16(r.b, uint16(len(data)))
	r.b = append(r.b, data...)
	r.count(s)
}

func (r *reply) count(s section) {
	binary.BigEndian.PutUint16(r.b[s:], binary.BigEndian.Uint16(r.b[s:])+1)
}

// finish writes what is known last: the code, the flags and the OPT record, with the
// client's own cookie before ours.
func (r *reply) finish(q *query, rcode int, authoritative bool, scope int, serverCookie []byte, size int) []byte {
	// RFC 4035, 3.1.6 for CD; recursion is neither done nor said to be available.
	flags := flagQR | q.flags&(opcodeMask<<opcodeShift|flagRD|flagCD) | uint16(rcode&0xf)
	if q.opcode() != dns.OpcodeQuery {
		flags &^= flagRD | flagCD // these bits may mean something else there
	}
	if authoritative {
		flags |= flagAA
	}
	if r.cut {
		flags |= flagTC
	}
	binary.BigEndian.PutUint16(r.b[2:], flags)
	if !q.edns {
		return r.b
	}
	r.b = append(r.b, 0) // the root
	r.b = binary.BigEndian.AppendUint16(r.b, dns.TypeOPT)
	r.b = binary.BigEndian.AppendUint16(r.b, uint16(size))
	r.b = append(r.b, byte(rcode>>4), 0)
	var flagsDO uint16
	if q.dnssec {
		flagsDO = flagDO // RFC 3225, 3
	}
	r.b = binary.BigEndian.AppendUint16(r.b, flagsDO)
	lengthAt := len(r.b)
	r.b = append(r.b, 0, 0)
	if q.ecs.present() {
		r.b = q.ecs.append(r.b, scope)
	}
	if serverCookie != nil {
		r.b = append(r.b, 0, optionCookie, 0, cookieLen)
		r.b = append(r.b, q.cookie[:clientCookieLen]...)
		r.b = append(r.b, serverCookie...)
	}
	binary.BigEndian.PutUint16(r.b[lengthAt:], uint16(len(r.b)-lengthAt-2))
	r.count(additionalSection)
	return r.b
}
