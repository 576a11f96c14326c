package frontend

import (
	"bytes"
	"net"
	"net/netip"
	"strings"

	"github.com/valyala/fasthttp"

	"millrace/internal/address"
	"millrace/internal/stream"
)

// maxDomain is how many bytes the name of a host may have (RFC 1035, 2.3.4).
const maxDomain = 253

// appendHost appends the host of a Host field in its normal form: no port, no final
// dot, lower case. An IPv6 address loses its brackets.
func appendHost(dst, host []byte) []byte {
	switch colon := bytes.IndexByte(host, ':'); {
	case len(host) > 0 && host[0] == '[':
		host = host[1:]
		if end := bytes.IndexByte(host, ']'); end >= 0 {
			host = host[:end]
		}
	case colon >= 0 && bytes.IndexByte(host[colon+1:], ':') < 0:
		host = host[:colon]
	}
	host = bytes.TrimSuffix(host, []byte("."))
	for _, c := range host {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// client is who asks, and how.
type client struct {
	addr  netip.Addr
	https bool
}

// clientOf returns who asks. Behind proxies that are trusted it is the address that
// the last of them saw: the rightmost one that is not a trusted proxy itself. What
// stands left of that was written by the client and may be anything.
func (s *httpSettings) clientOf(ctx *fasthttp.RequestCtx) client {
	c := client{addr: addrOf(ctx.RemoteAddr()), https: ctx.IsTLS()}
	if len(s.proxies) == 0 || !address.Within(s.proxies, c.addr) {
		return c
	}
	h := &ctx.Request.Header
	if proto := h.Peek("X-Forwarded-Proto"); len(proto) > 0 {
		c.https = bytes.EqualFold(proto, []byte("https"))
	}
	lines := h.PeekAll("X-Forwarded-For")
	for i := len(lines) - 1; i >= 0; i-- {
		for line := lines[i]; len(line) > 0; {
			comma := bytes.LastIndexByte(line, ',')
			a, ok := parseHop(string(bytes.TrimSpace(line[comma+1:])))
			if !ok {
				return c // whoever is behind this cannot be known
			}
			if c.addr = a; !address.Within(s.proxies, a) {
				return c
			}
			line = line[:max(comma, 0)]
		}
	}
	return c
}

// parseHop reads an address, with or without a port.
func parseHop(s string) (netip.Addr, bool) {
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return plain(a), true
	}
	ap, err := netip.ParseAddrPort(s)
	return plain(ap.Addr()), err == nil
}

// plain is a in the form in which addresses are compared.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

func addrOf(a net.Addr) netip.Addr {
	if t, ok := a.(*net.TCPAddr); ok {
		return plain(t.AddrPort().Addr())
	}
	ap, _ := netip.ParseAddrPort(a.String())
	return plain(ap.Addr())
}

// target returns the path and the query as the client sent them, not decoded and not
// tidied up. A request with an absolute URL loses scheme and host.
func target(ctx *fasthttp.RequestCtx) (path, query []byte) {
	_, uri := authority(ctx.Request.Header.RequestURI())
	if q := bytes.IndexByte(uri, '?'); q >= 0 {
		return uri[:q], uri[q+1:]
	}
	return uri, nil
}

// hostOf returns the host that is asked for: that of an absolute URL, which comes
// before the Host field (RFC 9112, 3.2.2).
func hostOf(ctx *fasthttp.RequestCtx) []byte {
	if host, _ := authority(ctx.Request.Header.RequestURI()); host != nil {
		return host
	}
	return ctx.Request.Header.Host()
}

// authority cuts scheme and host off an absolute URL.
func authority(uri []byte) (host, rest []byte) {
	if len(uri) == 0 || uri[0] == '/' {
		return nil, uri
	}
	at := bytes.Index(uri, []byte("://"))
	if at < 0 {
		return nil, uri
	}
	host = uri[at+len("://"):]
	if end := bytes.IndexAny(host, "/?"); end >= 0 {
		return host[:end], host[end:]
	}
	return host, nil
}

// nextPair cuts the first pair off a raw query.
func nextPair(query []byte) (name, value, rest []byte) {
	pair := query
	if i := bytes.IndexByte(query, '&'); i >= 0 {
		pair, rest = query[:i], query[i+1:]
	}
	if i := bytes.IndexByte(pair, '='); i >= 0 {
		return pair[:i], pair[i+1:], rest
	}
	return pair, nil, rest
}

// unescape undoes percent-encoding (RFC 3986, 2.1), in a query that of spaces too.
// Where there is nothing to undo it returns s itself.
func unescape(s []byte, query bool) ([]byte, bool) {
	if bytes.IndexByte(s, '%') < 0 && (!query || bytes.IndexByte(s, '+') < 0) {
		return s, true
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '%':
			if i+2 >= len(s) || hexDigit(s[i+1]) < 0 || hexDigit(s[i+2]) < 0 {
				return nil, false
			}
			out = append(out, byte(hexDigit(s[i+1])<<4|hexDigit(s[i+2])))
			i += 2
		case c == '+' && query:
			out = append(out, ' ')
		default:
			out = append(out, c)
		}
	}
	return out, true
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// streamName reads the name of a stream from a decoded path without its suffix. Names
// as nearly everyone has them cost no more than their own bytes.
func streamName(path []byte) (stream.Name, error) {
	if name := bytes.TrimPrefix(path, []byte("/")); simpleName(name) {
		return stream.Name(name), nil
	}
	return stream.ParsePath(string(path))
}

// simpleName reports whether name is a normal form that cannot be any other: letters,
// digits, hyphens and underscores in two segments.
func simpleName(name []byte) bool {
	slash := bytes.IndexByte(name, '/')
	if slash < 1 || slash == len(name)-1 || len(name) > stream.MaxName || string(name[:slash]) == stream.PageApp {
		return false
	}
	for i, c := range name {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || i == slash) {
			return false
		}
	}
	return true
}
