package frontend

import (
	"encoding/binary"

	"github.com/miekg/dns"
)

// Sizes and codes of the wire (RFC 1035, 4; RFC 6891, 6.1).
const (
	headerLen    = 12
	maxName      = 255 // octets of a name, its end included
	maxLabel     = 63
	rrFixed      = 10 // type, class, TTL, length of data
	optLen       = 1 + rrFixed
	optionHeader = 4 // code and length

	minUDP = 512 // what everybody can take (RFC 1035, 4.2.1)

	optionECS    = dns.EDNS0SUBNET
	optionCookie = dns.EDNS0COOKIE

	flagQR = 0x8000
	flagAA = 0x0400
	flagTC = 0x0200
	flagRD = 0x0100
	flagCD = 0x0010
	flagDO = 0x8000 // of EDNS

	opcodeShift = 11
	opcodeMask  = 0xf
)

// query is one request, as read from the wire. Its slices point into the message,
// so it is good for as long as that.
type query struct {
	id    uint16
	flags uint16

	// The question. Without one, question is 0 and nothing below is set.
	question int // where it ends in the message
	qtype    uint16
	qclass   uint16
	name     []byte             // in wire form, lower case
	lower    [maxName]byte      // holds name
	labels   [maxName / 2]uint8 // where its labels begin
	depth    int                // how many labels it has

	// EDNS. Without an OPT record, edns is false and nothing below is set.
	edns    bool
	dnssec  bool // the DO bit
	version uint8
	size    uint16 // of the UDP payload that the client takes
	ecs     ecs
	badECS  bool
	cookie  []byte // nil for none
}

// parse reads a message. It reports whether it may be answered at all, and with
// which code if its content makes no answer possible. What is not a query, or too
// short to have been one, gets nothing, so that two servers can never talk to each
// other.
func (q *query) parse(b []byte) (rcode int, answerable bool) {
	if len(b) < headerLen {
		return 0, false
	}
	q.id, q.flags = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	q.forget()
	if q.flags&flagQR != 0 {
		return 0, false
	}
	rcode = q.readSections(b)
	if q.opcode() != dns.OpcodeQuery {
		// Updates and notes of change have the sections of a query. What has not may mean
		// something else altogether, and its header is all that can be sent back.
		if rcode == dns.RcodeFormatError {
			q.forget()
		}
		return dns.RcodeNotImplemented, true
	}
	return rcode, true
}

// forget undoes what was read behind the header.
func (q *query) forget() {
	q.question, q.qtype, q.qclass, q.name, q.depth = 0, 0, 0, nil, 0
	q.edns, q.dnssec, q.version, q.size = false, false, 0, 0
	q.ecs, q.badECS, q.cookie = ecs{}, false, nil
}

// readSections reads all behind the header.
func (q *query) readSections(b []byte) (rcode int) {
	questions, answers := binary.BigEndian.Uint16(b[4:]), binary.BigEndian.Uint16(b[6:])
	authority, additional := binary.BigEndian.Uint16(b[8:]), binary.BigEndian.Uint16(b[10:])
	if questions > 1 { // RFC 9619
		return dns.RcodeFormatError
	}
	off := headerLen
	if questions == 1 {
		if off = q.readQuestion(b); off == 0 {
			return dns.RcodeFormatError
		}
		q.question = off
	}
	asks := q.opcode() == dns.OpcodeQuery
	if asks && (answers > 0 || authority > 0 && q.qtype != dns.TypeIXFR) {
		return dns.RcodeFormatError
	}
	for range int(answers) + int(authority) {
		if _, off = readRecord(b, off); off == 0 {
			return dns.RcodeFormatError
		}
	}
	for range int(additional) {
		start := off
		var r record
		if r, off = readRecord(b, off); off == 0 {
			return dns.RcodeFormatError
		}
		if r.kind == dns.TypeOPT {
			if q.edns || b[start] != 0 || !q.readOPT(r) { // RFC 6891, 6.1.1: one, and of the root
				return dns.RcodeFormatError
			}
		}
	}
	switch {
	case off != len(b):
		return dns.RcodeFormatError
	case q.version != 0:
		return dns.RcodeBadVers
	case asks && questions == 0 && q.cookie == nil: // RFC 7873, 5.4: only cookies can be had without a question
		return dns.RcodeFormatError
	}
	return dns.RcodeSuccess
}

func (q *query) opcode() int { return int(q.flags >> opcodeShift & opcodeMask) }

// readQuestion reads the question and returns where it ends, 0 for one that is
// malformed. There is nothing before it that a compressed name could point to.
func (q *query) readQuestion(b []byte) int {
	off, n := headerLen, 0
	for {
		if off >= len(b) {
			return 0
		}
		length := int(b[off])
		if length > maxLabel || n+1+length > maxName || off+1+length > len(b) {
			return 0
		}
		q.lower[n] = byte(length)
		if length == 0 {
			off, n = off+1, n+1
			break
		}
		q.labels[q.depth] = uint8(n)
		q.depth++
		for i, c := range b[off+1 : off+1+length] {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			q.lower[n+1+i] = c
		}
		off, n = off+1+length, n+1+length
	}
	if off+4 > len(b) {
		return 0
	}
	q.name = q.lower[:n]
	q.qtype, q.qclass = binary.BigEndian.Uint16(b[off:]), binary.BigEndian.Uint16(b[off+2:])
	return off + 4
}

// record is a resource record of a query.
type record struct {
	kind, class uint16
	ttl         uint32
	data        []byte
}

// readRecord reads the record at off and returns where it ends, 0 for one that is
// malformed.
func readRecord(b []byte, off int) (r record, end int) {
	if off = skipName(b, off); off == 0 || off+rrFixed > len(b) {
		return record{}, 0
	}
	f := b[off:]
	r = record{kind: binary.BigEndian.Uint16(f), class: binary.BigEndian.Uint16(f[2:]), ttl: binary.BigEndian.Uint32(f[4:])}
	off += rrFixed
	end = off + int(binary.BigEndian.Uint16(f[8:]))
	if end > len(b) {
		return record{}, 0
	}
	r.data = b[off:end]
	return r, end
}

// skipName returns where the name at off ends, 0 for one that is malformed. What a
// pointer points to is of no interest.
func skipName(b []byte, off int) int {
	for n := 0; off < len(b); {
		length := int(b[off])
		switch {
		case length == 0:
			return off + 1
		case length >= 0xc0:
			if off+2 > len(b) {
				return 0
			}
			return off + 2
		case length > maxLabel:
			return 0
		}
		off += 1 + length
		if n += 1 + length; n >= maxName {
			return 0
		}
	}
	return 0
}

// readOPT reads what the client can do. It reports whether it is well formed;
// options of a version that we do not speak are left alone.
func (q *query) readOPT(r record) bool {
	q.edns = true
	q.size = r.class
	q.version = uint8(r.ttl >> 16)
	q.dnssec = r.ttl&flagDO != 0
	if q.version != 0 {
		return true
	}
	for b := r.data; len(b) > 0; {
		if len(b) < optionHeader {
			return false
		}
		code, length := binary.BigEndian.Uint16(b), int(binary.BigEndian.Uint16(b[2:]))
		b = b[optionHeader:]
		if length > len(b) {
			return false
		}
		// Of an option that comes twice, the first one counts.
		switch content := b[:length:length]; {
		case code == optionECS && !q.ecs.present():
			var ok bool
			if q.ecs, ok = parseECS(content); !ok {
				q.badECS = true
				return false
			}
		case code == optionCookie && q.cookie == nil:
			if !wellFormedCookie(length) {
				return false // RFC 7873, 5.2.2
			}
			q.cookie = content
		}
		b = b[length:]
	}
	return true
}

// limit is how long a reply over UDP may be (RFC 6891, 6.2.3 to 6.2.5).
func (q *query) limit(most int) int {
	if !q.edns {
		return minUDP
	}
	return min(max(int(q.size), minUDP), most)
}
