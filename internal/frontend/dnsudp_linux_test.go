package frontend

import (
	"encoding/binary"
	"net"
	"net/netip"
	"testing"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"
)

// TestAddressOfReplies has control data as the kernel gives them for a message, and
// wants those for its reply.
func TestAddressOfReplies(t *testing.T) {
	f := func(what string, level, kind int32, data []byte, ok bool, wantIndex uint32, at int) {
		t.Helper()
		control := make([]byte, unix.CmsgSpace(len(data)))
		binary.NativeEndian.PutUint64(control, uint64(unix.CmsgLen(len(data))))
		binary.NativeEndian.PutUint32(control[8:], uint32(level))
		binary.NativeEndian.PutUint32(control[12:], uint32(kind))
		copy(control[unix.CmsgLen(0):], data)
		if got := fromAsked(control); got != ok {
			t.Errorf("%s: is used: %v", what, got)
		}
		if index := binary.NativeEndian.Uint32(control[unix.CmsgLen(0)+at:]); ok && index != wantIndex {
			t.Errorf("%s: interface %d, want %d", what, index, wantIndex)
		}
	}
	v4 := append(binary.NativeEndian.AppendUint32(nil, 3), 127, 0, 0, 2, 127, 0, 0, 2)
	f("IPv4", unix.IPPROTO_IP, unix.IP_PKTINFO, v4, true, 0, 0)
	v6 := func(a string) []byte { return binary.NativeEndian.AppendUint32(netip.MustParseAddr(a).AsSlice(), 3) }
	f("IPv6", unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, v6("2001:db8::1"), true, 0, 16)
	f("mapped", unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, v6("::ffff:127.0.0.2"), true, 0, 16)
	f("link-local", unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, v6("fe80::1"), true, 3, 16)
	f("something else", unix.SOL_SOCKET, unix.SO_TIMESTAMP, v4, false, 0, 0)
	f("too short", unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, v4, false, 0, 0)
	if fromAsked(nil) {
		t.Error("no control data are used")
	}
}

// TestDatagramsWithoutReply sends what is dropped, and behind it a query, whose reply
// comes first.
func TestDatagramsWithoutReply(t *testing.T) {
	d := newTestDNS(t, func(c *DNSConfig) { c.Workers = 1 })
	c, err := net.Dial("udp", serveDNS(t, d, "127.0.0.1:0").String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	response := question("live.example.com", dns.TypeA)
	response.Response = true
	long := append(packed(t, question("live.example.com", dns.TypeA)), make([]byte, maxQuery)...)
	for _, b := range [][]byte{{}, {1, 2, 3}, packed(t, response), long, packed(t, question("x.app.example.com", dns.TypeA))} {
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	m, err := (&dns.Conn{Conn: c}).ReadMsg()
	if err != nil || m.Question[0].Name != "x.app.example.com." {
		t.Errorf("got %v, %v", m, err)
	}
	if st := d.Stats(); st.Dropped["no_query"] != 3 || st.Dropped["too_long"] != 1 {
		t.Errorf("dropped: %v", st.Dropped)
	}
}
