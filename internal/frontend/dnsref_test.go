package frontend

import (
	"encoding/hex"
	"net/netip"
	"slices"
	"time"

	"github.com/miekg/dns"

	"millrace/internal/sched"
)

// reference is a second server for the same plan and rule, made of what the library
// reads and packs, without a thought of speed. What it says to a message, ours must
// say, byte for byte in meaning.
type reference struct {
	plan    *sched.Plan
	secrets secrets
	size    int
}

// reply answers m as it came from client.
func (f *reference) reply(now time.Time, client netip.Addr, tcp bool, m *dns.Msg) *dns.Msg {
	r := new(dns.Msg)
	r.MsgHdr = dns.MsgHdr{Id: m.Id, Response: true, Opcode: m.Opcode}
	if m.Opcode != dns.OpcodeQuery {
		r.Rcode = dns.RcodeNotImplemented
		if len(m.Question) <= 1 {
			r.Question = m.Question
			if opt := m.IsEdns0(); opt != nil {
				f.addOPT(now, client, opt, r, 0)
			}
		}
		return r
	}
	r.RecursionDesired, r.CheckingDisabled = m.RecursionDesired, m.CheckingDisabled
	if len(m.Question) <= 1 {
		r.Question = m.Question
	}
	if len(m.Question) > 1 || len(m.Answer) > 0 {
		r.Rcode = dns.RcodeFormatError
		return r
	}
	opt, limit := m.IsEdns0(), minUDP
	scope := 0
	if opt != nil {
		limit = min(max(int(opt.UDPSize()), minUDP), f.size)
	}
	if tcp {
		limit = dns.MaxMsgSize
	}
	var proof cookieState
	if opt == nil && len(m.Question) == 0 {
		r.Rcode = dns.RcodeFormatError
		return r
	}
	if opt != nil && opt.Version() != 0 {
		r.Rcode = dns.RcodeBadVers
	} else {
		cookie, state := f.cookie(now, client, opt)
		proof = state
		switch {
		case len(m.Question) > 0:
			scope = f.answer(client, opt, m.Question[0], r)
		case cookie == nil:
			r.Rcode = dns.RcodeFormatError
		case proof == cookieBad:
			r.Rcode = dns.RcodeBadCookie
		}
	}
	if opt != nil {
		f.addOPT(now, client, opt, r, scope)
	}
	f.truncate(r, limit)
	return r
}

func (f *reference) cookie(now time.Time, client netip.Addr, opt *dns.OPT) ([]byte, cookieState) {
	if opt == nil || opt.Version() != 0 {
		return nil, cookieNone
	}
	for _, o := range opt.Option {
		if c, ok := o.(*dns.EDNS0_COOKIE); ok {
			b, _ := hex.DecodeString(c.Cookie)
			state, server := f.secrets.check(now, b, client, nil)
			return append(slices.Clone(b[:clientCookieLen]), server...), state
		}
	}
	return nil, cookieNone
}

func subnetOption(opt *dns.OPT) *dns.EDNS0_SUBNET {
	if opt != nil && opt.Version() == 0 {
		for _, o := range opt.Option {
			if s, ok := o.(*dns.EDNS0_SUBNET); ok {
				return s
			}
		}
	}
	return nil
}

func (f *reference) addOPT(now time.Time, client netip.Addr, asked *dns.OPT, r *dns.Msg, scope int) {
	opt := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}}
	opt.SetUDPSize(uint16(f.size))
	opt.SetDo(asked.Do())
	if s := subnetOption(asked); s != nil {
		echo := *s
		echo.SourceScope = uint8(scope)
		opt.Option = append(opt.Option, &echo)
	}
	if c, _ := f.cookie(now, client, asked); c != nil {
		opt.Option = append(opt.Option, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: hex.EncodeToString(c)})
	}
	r.Extra = append(r.Extra, opt)
}

// truncate leaves out what does not fit, as RFC 2181, 9 says, with the sizes of a
// message whose owners are compressed and whose data are not.
func (f *reference) truncate(r *dns.Msg, limit int) {
	used := headerLen
	for _, q := range r.Question {
		used += len(wire(q.Name)) + 4
	}
	if opt := r.IsEdns0(); opt != nil {
		b := make([]byte, 1024)
		n, _ := dns.PackRR(opt, b, 0, nil, false)
		used += n
	}
	fits := func(rr dns.RR, compressed bool) bool {
		b := make([]byte, 4096)
		n, _ := dns.PackRR(rr, b, 0, nil, false)
		if compressed {
			n += 2 - len(wire(rr.Header().Name))
		}
		if used+n > limit {
			return false
		}
		used += n
		return true
	}
	for _, s := range []*[]dns.RR{&r.Answer, &r.Ns} {
		for i, rr := range *s {
			if r.Truncated || !fits(rr, true) {
				r.Truncated = true
				*s = (*s)[:i]
				break
			}
		}
	}
	for i, rr := range r.Extra {
		if rr.Header().Rrtype != dns.TypeOPT && (r.Truncated || !fits(rr, false)) {
			r.Extra = append(r.Extra[:i:i], r.Extra[len(r.Extra)-btoi(r.IsEdns0() != nil):]...)
			break
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func wire(name string) []byte {
	b := make([]byte, 256)
	n, err := dns.PackDomainName(name, b, 0, nil, false)
	if err != nil {
		panic(err)
	}
	return b[:n]
}
