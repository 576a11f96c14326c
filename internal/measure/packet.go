package measure

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"millrace/internal/auth"
)

// A packet of a train, or the answer to one, with all numbers in network order:
//
//	 0  4  "MRP1"
//	 4  1  '?' or '!'
//	 5  1  0
//	 6  2  number within the train
//	 8  8  the train, drawn at random
//	16  8  Unix seconds at which it was signed
//	24 32  HMAC-SHA256, or zeros where no node has a key
//	56  8  0
const (
	packetSize = 64
	magic      = "MRP1"
	question   = '?'
	answer     = '!'
	headSize   = 16 // what is signed as it stands
	macSize    = 32
)

// maxPackets is how many packets a train can have.
const maxPackets = 64

// packet is one of a train, or its answer.
type packet struct {
	kind  byte
	index uint16
	train uint64
	at    int64
	mac   [macSize]byte
}

var errMalformed = errors.New("it is no packet of a probe")

// parse reads a packet. It keeps nothing of b.
func parse(b []byte) (packet, error) {
	if len(b) != packetSize || string(b[:4]) != magic || b[4] != question && b[4] != answer || b[5] != 0 ||
		binary.BigEndian.Uint64(b[headSize+8+macSize:]) != 0 {
		return packet{}, errMalformed
	}
	p := packet{
		kind: b[4], index: binary.BigEndian.Uint16(b[6:]), train: binary.BigEndian.Uint64(b[8:]),
		at: int64(binary.BigEndian.Uint64(b[headSize:])),
	}
	copy(p.mac[:], b[headSize+8:])
	if p.index >= maxPackets || p.at < 0 {
		return packet{}, errMalformed
	}
	return p, nil
}

// append appends p as it goes over the wire.
func (p *packet) append(dst []byte) []byte {
	dst = p.appendHead(dst)
	dst = binary.BigEndian.AppendUint64(dst, uint64(p.at))
	dst = append(dst, p.mac[:]...)
	return append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
}

func (p *packet) appendHead(dst []byte) []byte {
	dst = append(dst, magic...)
	dst = append(dst, p.kind, 0)
	dst = binary.BigEndian.AppendUint16(dst, p.index)
	return binary.BigEndian.AppendUint64(dst, p.train)
}

// purpose keeps these signatures apart from those of other messages.
const purpose = "probe"

// fields are what a packet is signed with. node is who answers: a question to one node is
// none to another. An answer has the signature of its question among them.
func (p *packet) fields(node string, asked *packet) []string {
	var head [headSize]byte
	out := []string{node, string(p.appendHead(head[:0]))}
	if asked != nil {
		out = append(out, string(asked.mac[:]))
	}
	return out
}

// sign signs p at a time.
func (p *packet) sign(now time.Time, c *auth.Cluster, node string, asked *packet) {
	p.at, p.mac = now.Unix(), [macSize]byte{}
	at, sum, ok := strings.Cut(c.SignMessage(now, purpose, p.fields(node, asked)...), ":")
	if !ok {
		return // nobody has a key
	}
	p.at, _ = strconv.ParseInt(at, 10, 64)
	_, _ = hex.Decode(p.mac[:], []byte(sum))
}

// verify decides whether p was signed lately by a node of the cluster. The error is an
// [*auth.Denied].
func (p *packet) verify(now time.Time, c *auth.Cluster, node string, asked *packet) error {
	if !c.Enabled() {
		return nil
	}
	sig := append(strconv.AppendInt(make([]byte, 0, 20+2*macSize), p.at, 10), ':')
	sig = hex.AppendEncode(sig, p.mac[:])
	return c.VerifyMessage(now, string(sig), purpose, p.fields(node, asked)...)
}
