package pull

import (
	"encoding/binary"
	"errors"
	"fmt"

	"millrace/internal/flv"
	"millrace/tools/frames"
)

// Errors of a [Parser].
var (
	ErrNotFLV  = errors.New("body does not begin as FLV does")
	ErrTrailer = errors.New("size behind a tag is wrong")
	ErrKind    = errors.New("unknown kind of tag")
)

// Tag is what a [Parser] tells of a tag: its framing and the first bytes of its payload.
type Tag struct {
	Kind   flv.Kind
	Time   uint32 // ms, as on the wire
	Size   int    // of the payload
	Prefix []byte // at most frames.PrefixSize bytes of the payload; valid until the callback returns
	Stamp  int    // where in the payload the stamp is, or -1
	Sum    uint32 // CRC-32C of the payload behind the stamp, if the parser verifies
}

// where a parser is within the stream.
type place uint8

const (
	inFileHeader place = iota
	inTagHeader
	inPrefix
	inBody
	inTrailer
)

// Parser reads FLV in pieces of any size. It keeps nothing of a payload but the
// first bytes, so that a thousand of them cost little.
type Parser struct {
	// Verify asks for the checksum of payloads.
	Verify bool

	place place
	have  int // bytes of the current piece in head
	left  int // bytes of the body to come
	hash  bool
	tag   Tag
	head  [flv.HeaderSize + frames.PrefixSize]byte
}

// Feed reads the next piece and calls emit for every tag that is complete. After
// an error the parser is of no more use.
func (p *Parser) Feed(b []byte, emit func(*Tag)) error {
	for len(b) > 0 {
		switch p.place {
		case inFileHeader:
			b = p.fill(b, flv.FileHeaderSize)
			if p.have == flv.FileHeaderSize {
				if string(p.head[:4]) != "FLV\x01" || string(p.head[5:13]) != "\x00\x00\x00\x09\x00\x00\x00\x00" {
					return fmt.Errorf("%w: %x", ErrNotFLV, p.head[:13])
				}
				p.place, p.have = inTagHeader, 0
			}
		case inTagHeader:
			b = p.fill(b, flv.HeaderSize)
			if p.have == flv.HeaderSize {
				if err := p.begin(); err != nil {
					return err
				}
			}
		case inPrefix:
			b = p.fill(b, flv.HeaderSize+len(p.tag.Prefix))
			if p.have == flv.HeaderSize+len(p.tag.Prefix) {
				p.find()
			}
		case inBody:
			n := min(len(b), p.left)
			if p.hash {
				p.tag.Sum = frames.Sum(p.tag.Sum, b[:n])
			}
			p.left -= n
			b = b[n:]
			if p.left == 0 {
				p.place, p.have = inTrailer, 0
			}
		case inTrailer:
			// The trailer goes over the tag header, which has been read.
			b = p.fill(b, flv.TrailerSize)
			if p.have == flv.TrailerSize {
				if n := binary.BigEndian.Uint32(p.head[:]); int(n) != flv.HeaderSize+p.tag.Size {
					return fmt.Errorf("%w: %d, want %d", ErrTrailer, n, flv.HeaderSize+p.tag.Size)
				}
				p.place, p.have = inTagHeader, 0
				emit(&p.tag)
			}
		}
	}
	return nil
}

// fill takes what it can for the first n bytes of head and returns the rest.
func (p *Parser) fill(b []byte, n int) []byte {
	k := copy(p.head[p.have:n], b)
	p.have += k
	return b[k:]
}

func (p *Parser) begin() error {
	h := p.head[:flv.HeaderSize]
	p.tag = Tag{
		Kind: flv.Kind(h[0]), Stamp: -1,
		Size: int(h[1])<<16 | int(h[2])<<8 | int(h[3]),
		Time: uint32(h[4])<<16 | uint32(h[5])<<8 | uint32(h[6]) | uint32(h[7])<<24,
	}
	if k := p.tag.Kind; k != flv.Audio && k != flv.Video && k != flv.Script {
		return fmt.Errorf("%w: %d", ErrKind, k)
	}
	p.tag.Prefix = p.head[flv.HeaderSize:][:min(p.tag.Size, frames.PrefixSize)]
	p.place = inPrefix
	if p.tag.Size == 0 {
		p.place, p.have = inTrailer, 0
	}
	return nil
}

// find looks for the stamp once the beginning of the payload is there.
func (p *Parser) find() {
	at := frames.Offset(p.tag.Kind, p.tag.Prefix)
	p.tag.Stamp = at
	p.hash = p.Verify && at >= 0 && at+frames.StampSize <= len(p.tag.Prefix)
	if p.hash {
		p.tag.Sum = frames.Sum(0, p.tag.Prefix[at+frames.StampSize:])
	}
	p.left = p.tag.Size - len(p.tag.Prefix)
	p.place = inBody
	if p.left == 0 {
		p.place, p.have = inTrailer, 0
	}
}
