package frontend

import (
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

func TestFlags(t *testing.T) {
	c := newDNSClient(newTestDNS(t))
	q := question("live.example.com", dns.TypeA)
	q.RecursionDesired, q.CheckingDisabled, q.AuthenticatedData, q.Zero = true, true, true, true
	q.Authoritative, q.Truncated, q.RecursionAvailable = true, true, true
	m := c.ask(t, q)
	if !m.Response || !m.RecursionDesired || !m.CheckingDisabled || m.RecursionAvailable || m.AuthenticatedData || m.Zero || m.Truncated {
		t.Errorf("got %v", m.MsgHdr)
	}
	if m.Id != q.Id || len(m.Answer) != 3 {
		t.Errorf("got %v", m)
	}
}

func TestWhatIsRefused(t *testing.T) {
	c := newDNSClient(newTestDNS(t))
	f := func(what string, change func(*dns.Msg), rcode int, withQuestion bool) {
		t.Helper()
		q := question("live.example.com", dns.TypeA)
		change(q)
		m := c.ask(t, q)
		if m == nil || m.Rcode != rcode || len(m.Answer)+len(m.Ns) > 0 || len(m.Question) > 0 != withQuestion || m.Authoritative {
			t.Errorf("%s: got %v", what, m)
		}
	}
	for opcode := 1; opcode < 16; opcode++ {
		f(fmt.Sprint("opcode ", opcode), func(m *dns.Msg) { m.Opcode = opcode }, dns.RcodeNotImplemented, true)
	}
	f("update", func(m *dns.Msg) {
		m.SetUpdate("example.com.")
		m.RemoveName([]dns.RR{&dns.A{Hdr: dns.RR_Header{Name: "live.example.com."}}})
	}, dns.RcodeNotImplemented, true)
	f("notify", func(m *dns.Msg) { m.SetNotify("example.com.") }, dns.RcodeNotImplemented, true)
	f("two questions of an update", func(m *dns.Msg) { m.SetUpdate("example.com."); m.Question = append(m.Question, m.Question[0]) }, dns.RcodeNotImplemented, false)
	f("two questions", func(m *dns.Msg) { m.Question = append(m.Question, m.Question[0]) }, dns.RcodeFormatError, false)
	f("no question", func(m *dns.Msg) { m.Question = nil }, dns.RcodeFormatError, false)
	f("an answer", func(m *dns.Msg) { m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeA}}} }, dns.RcodeFormatError, true)
	f("transfer since", func(m *dns.Msg) { m.SetIxfr("example.com.", 1, "a.", "b.") }, dns.RcodeRefused, true)
	f("version.bind", func(m *dns.Msg) {
		m.Question[0] = dns.Question{Name: "version.bind.", Qtype: dns.TypeTXT, Qclass: dns.ClassCHAOS}
	}, dns.RcodeRefused, true)
	f("class CH of a served name", func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS }, dns.RcodeRefused, true)
	f("class ANY", func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassANY }, dns.RcodeRefused, true)
	f("bad client subnet", func(m *dns.Msg) {
		edns(m, 1232, &dns.EDNS0_LOCAL{Code: dns.EDNS0SUBNET, Data: []byte{0, 3, 0, 0}})
	}, dns.RcodeFormatError, true)
	f("bad cookie", func(m *dns.Msg) {
		edns(m, 1232, &dns.EDNS0_LOCAL{Code: dns.EDNS0COOKIE, Data: make([]byte, 9)})
	}, dns.RcodeFormatError, true)

	for n := range headerLen {
		if c.raw(make([]byte, n)) != nil {
			t.Errorf("%d bytes get a reply", n)
		}
	}
	q := question("live.example.com", dns.TypeA)
	q.Response = true
	if m := c.ask(t, q); m != nil {
		t.Errorf("a response gets the reply %v", m)
	}
	st := c.r.d.Stats()
	if st.Dropped["no_query"] != headerLen+1 || st.ECS["bad"] != 1 || st.Codes["NOTIMP"] != 18 {
		t.Errorf("counted as %+v", st)
	}
}

// TestNamesOfRecords has records behind the question whose names are of all kinds; only
// their ends matter.
func TestNamesOfRecords(t *testing.T) {
	c := newDNSClient(newTestDNS(t))
	f := func(what, name string, rcode int) {
		t.Helper()
		b := packed(t, question("live.example.com", dns.TypeA))
		b[11] = 1
		b = append(append(b, name...), 0, 1, 0, 1, 0, 0, 0, 0, 0, 0)
		if m := unpack(t, c.raw(b)); m.Rcode != rcode {
			t.Errorf("%s: %v", what, m)
		}
	}
	long := strings.Repeat("\x3f"+strings.Repeat("x", 63), 3)
	f("root", "\x00", dns.RcodeSuccess)
	f("labels", "\x01a\x02bc\x00", dns.RcodeSuccess)
	f("pointer", "\xc0\x0c", dns.RcodeSuccess)
	f("labels and a pointer", "\x01a\xc0\x0c", dns.RcodeSuccess)
	f("255 bytes", long+"\x3d"+strings.Repeat("x", 61)+"\x00", dns.RcodeSuccess)
	f("256 bytes", long+"\x3e"+strings.Repeat("x", 62)+"\x00", dns.RcodeFormatError)
	f("a label of 64", "\x40"+strings.Repeat("x", 64)+"\x00", dns.RcodeFormatError)
	f("a label without an end", "\x3f", dns.RcodeFormatError)

	b := packed(t, question("live.example.com", dns.TypeA))
	b[11] = 1
	if m := unpack(t, c.raw(append(b, 0xc0))); m.Rcode != dns.RcodeFormatError {
		t.Errorf("half a pointer: %v", m)
	}
	if m := unpack(t, c.raw(append(b, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 9))); m.Rcode != dns.RcodeFormatError {
		t.Errorf("data beyond the end: %v", m)
	}
	if m := unpack(t, c.raw(append(packed(t, question("live.example.com", dns.TypeA)), 0))); m.Rcode != dns.RcodeFormatError {
		t.Errorf("a byte behind the end: %v", m)
	}
	b = packed(t, question("live.example.com", dns.TypeA))
	b[headerLen] = 0xc0 // a compressed name in the question
	if m := unpack(t, c.raw(b)); m.Rcode != dns.RcodeFormatError {
		t.Errorf("a question with a pointer: %v", m)
	}
}
