package frontend

import (
	"bytes"
	"fmt"
	"net/netip"
	"strconv"
	"sync"

	"github.com/valyala/fasthttp"

	"millrace/internal/sched"
	"millrace/internal/session"
)

// exchange is what one request needs, for reuse.
type exchange struct {
	query  sched.Query
	answer sched.Answer
	host   []byte
	uri    []byte
	buf    []byte
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// maxKept is how long the buffer of an exchange may be for reuse. Only large batches
// make longer ones.
const maxKept = 16 << 10

func (e *exchange) release() {
	if cap(e.buf) <= maxKept {
		exchanges.Put(e)
	}
}

// maxPlace is how many bytes the name of a region or ISP may have.
const maxPlace = 64

// begin makes a question that says nothing but who asks.
func (e *exchange) begin(c client) {
	e.query = sched.Query{Client: prefixOf(c.addr)}
}

// set takes in a parameter of a question as it stands in a query. Parameters that are
// none of a question are passed over: signatures and caches have theirs.
func (e *exchange) set(name, value []byte) *refusal {
	if len(value) == 0 {
		return nil
	}
	value, ok := unescape(value, true)
	if !ok {
		return badRequest(fmt.Sprintf("%.32q is not percent-encoded properly", name))
	}
	return e.setDecoded(name, value)
}

// setDecoded is set for a value that is not encoded.
func (e *exchange) setDecoded(name, value []byte) *refusal {
	if len(value) == 0 {
		return nil
	}
	switch string(name) {
	case "stream":
		n, err := streamName(bytes.TrimSuffix(value, []byte(suffix)))
		if err != nil {
			return badName(err.Error())
		}
		e.query.Stream = n
	case "ip":
		p, ok := parseClient(value)
		if !ok {
			return badRequest(fmt.Sprintf("ip: %.64q is not an address such as 1.2.3.4, 2001:db8::1 or 1.2.3.0/24", value))
		}
		e.query.Client = p
	case "region", "isp":
		if len(value) > maxPlace {
			return badRequest(fmt.Sprintf("%s: longer than %d bytes", name, maxPlace))
		}
		if string(name) == "region" {
			e.query.Region = string(value)
		} else {
			e.query.ISP = string(value)
		}
	case "net":
		access, ok := accessOf(value)
		if !ok {
			return badRequest(fmt.Sprintf("net: %.32q is not a kind of network: use fixed, wifi, mobile, 3g, 4g, 5g or unknown", value))
		}
		e.query.Access = access
	case "family":
		switch string(value) {
		case "4":
			e.query.Families = sched.V4
		case "6":
			e.query.Families = sched.V6
		default:
			return badRequest(fmt.Sprintf("family: %.32q must be 4 or 6, or left out for both", value))
		}
	case "scheme":
		switch string(value) {
		case "http", "https":
			e.query.HTTPS = string(value) == "https"
		default:
			return badRequest(fmt.Sprintf("scheme: %.32q must be http or https", value))
		}
	case "n":
		n, err := strconv.Atoi(string(value))
		if err != nil {
			return badRequest(fmt.Sprintf("n: %.32q is not a number", value))
		}
		return e.want(n)
	}
	return nil
}

// want says how many edges are asked for.
func (e *exchange) want(n int) *refusal {
	if n < 1 || n > sched.MaxWant {
		return badRequest(fmt.Sprintf("n: is %d, must be 1 to %d", n, sched.MaxWant))
	}
	e.query.Want = n
	return nil
}

// accessOf reads a kind of network, by our words and by those that apps use.
func accessOf(word []byte) (sched.Access, bool) {
	switch string(word) {
	case "fixed", "wifi", "wired", "ethernet", "lan":
		return sched.AccessFixed, true
	case "mobile", "cellular", "2g", "3g", "4g", "5g":
		return sched.AccessMobile, true
	case "unknown":
		return sched.AccessUnknown, true
	}
	return sched.AccessUnknown, false
}

// parseClient reads an address, or a prefix for callers that do not tell all of it.
func parseClient(b []byte) (netip.Prefix, bool) {
	if len(b) > maxClient {
		return netip.Prefix{}, false
	}
	if bytes.IndexByte(b, '/') < 0 {
		a, err := netip.ParseAddr(string(b))
		a = plain(a)
		return prefixOf(a), err == nil
	}
	p, err := netip.ParsePrefix(string(b))
	if err != nil {
		return netip.Prefix{}, false
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return netip.Prefix{}, false
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), true
}

// maxClient is how many bytes an address with a length may have in text.
const maxClient = len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255/128")

// valueOf returns the first value of a parameter as it stands in a query.
func valueOf(query []byte, param string) []byte {
	for len(query) > 0 {
		var name, value []byte
		if name, value, query = nextPair(query); string(name) == param {
			return value
		}
	}
	return nil
}

func badName(text string) *refusal {
	return &refusal{status: fasthttp.StatusBadRequest, reason: refusedFor(session.BadName), text: text}
}
