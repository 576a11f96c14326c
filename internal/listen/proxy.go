package listen

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/pires/go-proxyproto"
)

// Sizes of a PROXY header (haproxy's proxy-protocol.txt, 2.1 and 2.2).
const (
	v1Longest = 107 // with its line end
	v2Fixed   = 16  // signature, version, family, length
	// maxHeader bounds version 2 with its extensions; certificates of clients make
	// the longest ones, of one or two kilobytes.
	maxHeader = 4096
)

// errSilentClose is a peer that closed without a byte: a health check.
var errSilentClose = errors.New("closed without a PROXY header")

var errNoHeader = errors.New("no PROXY header")

// readProxyHeader makes the client that the header names the peer of c. What came
// behind the header is kept for Read.
func (c *Conn) readProxyHeader(deadline time.Time) error {
	if err := c.Conn.SetReadDeadline(deadline); err != nil {
		return errSilentClose // the socket is gone
	}
	br := bufio.NewReaderSize(c.Conn, maxHeader)
	client, err := parseProxyHeader(br)
	if err != nil {
		return err
	}
	if client.IsValid() {
		c.peer, c.remote = client, net.TCPAddrFromAddrPort(client)
	}
	if n := br.Buffered(); n > 0 {
		b, _ := br.Peek(n) // what is buffered can always be peeked
		c.rest = bytes.Clone(b)
	}
	return c.Conn.SetReadDeadline(time.Time{})
}

// parseProxyHeader reads one header from br, whose buffer is maxHeader long, and
// not a byte more. The client is not valid if the proxy speaks for itself
// (command LOCAL, or UNKNOWN in version 1).
func parseProxyHeader(br *bufio.Reader) (client netip.AddrPort, err error) {
	if err := fill(br); err != nil {
		return client, err
	}
	h, err := proxyproto.Read(br)
	if err != nil {
		return client, err
	}
	if h.Command.IsLocal() {
		return client, nil
	}
	src, ok := h.SourceAddr.(*net.TCPAddr)
	if !ok {
		return client, fmt.Errorf("the PROXY header is about %v, not TCP over IP", h.TransportProtocol)
	}
	client = addrPort(src)
	if a := client.Addr(); !a.IsValid() || a.IsUnspecified() || a.IsMulticast() {
		return netip.AddrPort{}, fmt.Errorf("the PROXY header names %v as the client", a)
	}
	return client, nil
}

// fill waits until the whole header is in the buffer of br. The library reads
// version 1 only if it arrives in one piece, and version 2 only up to the size of
// the buffer; proxies are to send it in one piece, but a network may cut it.
func fill(br *bufio.Reader) error {
	b, err := br.Peek(1)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) { // or reset it
		return errSilentClose
	}
	if err != nil {
		return err
	}
	signature := proxyproto.SIGV2
	if b[0] == proxyproto.SIGV1[0] {
		signature = []byte("PROXY ")
	}
	for n := 1; ; n++ { // byte by byte: what is no header must not be waited for
		if b, err = br.Peek(n); err != nil {
			return err
		}
		if b[n-1] != signature[n-1] {
			return errNoHeader
		}
		if n == len(signature) {
			break
		}
	}
	if signature[0] == proxyproto.SIGV1[0] {
		for n := len(signature) + 1; n <= v1Longest; n++ {
			if b, err = br.Peek(n); err != nil {
				return err
			}
			if b[n-1] == '\n' {
				return nil
			}
		}
		return proxyproto.ErrVersion1HeaderTooLong
	}
	if b, err = br.Peek(v2Fixed); err != nil {
		return err
	}
	n := v2Fixed + int(binary.BigEndian.Uint16(b[v2Fixed-2:]))
	if n > maxHeader {
		return fmt.Errorf("the PROXY header has %d bytes, at most %d are taken", n, maxHeader)
	}
	_, err = br.Peek(n)
	return err
}
