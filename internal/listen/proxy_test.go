package listen

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/pires/go-proxyproto"

	"millrace/internal/session"
)

func trusting(c *Config) { c.ProxyProtocol = []string{"127.0.0.0/8"} }

// header returns the bytes of a PROXY header about a client.
func header(t testing.TB, version byte, client string) []byte {
	t.Helper()
	src := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(client))
	dst := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1935}
	if src.IP.To4() == nil {
		dst.IP = net.ParseIP("2001:db8::ffff")
	}
	b, err := proxyproto.HeaderProxyFromAddrs(version, src, dst).Format()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// v2 returns a version 2 header with the given command, family and body.
func v2(command, family byte, body []byte) []byte {
	b := append(bytes.Clone(proxyproto.SIGV2), command, family)
	return append(binary.BigEndian.AppendUint16(b, uint16(len(body))), body...)
}

func TestProxiedConnections(t *testing.T) {
	l := start(t, func(c *Config) { trusting(c); c.MaxPerAddress = 1 })
	// Each client has one connection: were they counted on the proxy's address, the
	// second would be refused.
	for _, h := range []struct {
		version byte
		client  string
	}{{1, "198.51.100.1:1000"}, {2, "198.51.100.2:1001"}, {1, "[2001:db8::1]:1002"}, {2, "[2001:db8:0:1::1]:65535"}} {
		client := dial(t, l)
		if _, err := client.Write(append(header(t, h.version, h.client), "hello"...)); err != nil {
			t.Fatal(err)
		}
		c := accept(t, l)
		if got := c.RemoteAddr().String(); got != h.client {
			t.Errorf("version %d: client %s, want %s", h.version, got, h.client)
		}
		if _, err := client.Write([]byte(", world")); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 12)
		if _, err := io.ReadFull(iotest.OneByteReader(c), b); err != nil || string(b) != "hello, world" {
			t.Errorf("version %d: read %q, %v", h.version, b, err)
		}
		if _, err := c.Write([]byte("!")); err != nil {
			t.Error(err)
		}
		if _, err := io.ReadFull(client, b[:1]); err != nil || b[0] != '!' {
			t.Errorf("version %d: answer %q, %v", h.version, b[0], err)
		}
		if TCPConn(c) == nil {
			t.Error("no TCP connection found below")
		}
	}
	if s := l.Stats(); s.Open != 4 || s.Addresses != 4 {
		t.Errorf("stats %+v, want 4 connections of 4 addresses", s)
	}

	// The same client once more is one too many, whatever its port.
	go func() { // refuses, until Close
		for {
			if c, err := l.Accept(); err != nil {
				return
			} else {
				t.Errorf("handed out a connection of %v", c.RemoteAddr())
				_ = c.Close()
			}
		}
	}()
	again := dial(t, l)
	if _, err := again.Write(header(t, 2, "198.51.100.1:2000")); err != nil {
		t.Fatal(err)
	}
	gone(t, again)
	wantRefused(t, l, map[session.Reason]uint64{session.AddressLimit: 1})
}

// A peer that says nothing costs itself: others pass it, and it ends in time.
func TestSilentProxyHoldsUpNobody(t *testing.T) {
	l := start(t, func(c *Config) { trusting(c); c.ProxyTimeout = 2 * time.Second })
	silent := make([]net.Conn, 20)
	for i := range silent {
		silent[i] = dial(t, l)
		if i%2 == 0 {
			if _, err := silent[i].Write([]byte("PROXY TCP4 ")); err != nil {
				t.Fatal(err)
			}
		}
	}
	good := dial(t, l)
	if _, err := good.Write(header(t, 1, "198.51.100.1:1000")); err != nil {
		t.Fatal(err)
	}
	c := accept(t, l)
	if got := c.RemoteAddr().String(); got != "198.51.100.1:1000" {
		t.Errorf("client %s", got)
	}
	for _, s := range silent {
		gone(t, s)
	}
	wantRefused(t, l, map[session.Reason]uint64{session.BadProxyHeader: 20})
	if s := l.Stats(); s.Open != 1 {
		t.Errorf("%d open, want 1", s.Open)
	}
}

func TestCloseEndsPendingHeaders(t *testing.T) {
	l := start(t, func(c *Config) { trusting(c); c.ProxyTimeout = time.Minute })
	silent := dial(t, l)
	later := dial(t, l)
	if _, err := later.Write(header(t, 1, "198.51.100.1:1000")); err != nil {
		t.Fatal(err)
	}
	_ = accept(t, l).Close() // so the earlier one has been accepted too, and waits
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	gone(t, silent)
	if s := l.Stats(); s.Open != 0 {
		t.Errorf("%d open after Close, want none", s.Open)
	}
}

// What a health check does is not an error.
func TestHealthChecks(t *testing.T) {
	l := start(t, trusting)
	local := dial(t, l)
	if _, err := local.Write(v2(0x20, 0, nil)); err != nil {
		t.Fatal(err)
	}
	c := accept(t, l)
	if got, want := c.RemoteAddr().String(), local.LocalAddr().String(); got != want {
		t.Errorf("the proxy itself passes for %s, want %s", got, want)
	}
	client, server := net.Pipe()
	_ = client.Close()
	l.limits.enter(2)
	l.identify(&Conn{Conn: server, owner: l}, l.settings.Load())
	wantRefused(t, l, map[session.Reason]uint64{session.PeerClosed: 1})
}

var v4Body = []byte{198, 51, 100, 1, 192, 0, 2, 1, 0x10, 0, 0x07, 0x8f}

func TestParseProxyHeader(t *testing.T) {
	with := func(n int) []byte { // extensions behind the addresses
		return append(bytes.Clone(v4Body), make([]byte, n)...)
	}
	const v4 = "198.51.100.1:4096"
	cases := []struct {
		name string
		in   []byte
		want string // "" refuses, "proxy" is the proxy itself
	}{
		{"v1", []byte("PROXY TCP4 198.51.100.1 192.0.2.1 4096 1935\r\n"), v4},
		{"v1 longest", []byte("PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n"), "proxy"},
		{"v1 unknown", []byte("PROXY UNKNOWN\r\n"), "proxy"},
		{"v1 mapped", []byte("PROXY TCP6 ::ffff:198.51.100.1 ::1 4096 1\r\n"), v4},
		{"v1 too long", append([]byte("PROXY TCP4 "), bytes.Repeat([]byte("1"), 200)...), ""},
		{"v1 without CR", []byte("PROXY TCP4 198.51.100.1 192.0.2.1 4096 1935\n"), ""},
		{"v1 lower case", []byte("proxy TCP4 198.51.100.1 192.0.2.1 4096 1935\r\n"), ""},
		{"v1 wrong family", []byte("PROXY TCP6 198.51.100.1 192.0.2.1 4096 1935\r\n"), ""},
		{"v1 UDP", []byte("PROXY UDP4 198.51.100.1 192.0.2.1 4096 1935\r\n"), ""},
		{"v1 port", []byte("PROXY TCP4 198.51.100.1 192.0.2.1 65536 1935\r\n"), ""},
		{"v1 host name", []byte("PROXY TCP4 localhost 192.0.2.1 4096 1935\r\n"), ""},
		{"v1 short", []byte("PROXY TCP4 198.51.100.1\r\n"), ""},
		{"v1 empty", []byte("PROXY \r\n"), ""},
		{"v1 nothing named", []byte("PROXY TCP4 0.0.0.0 192.0.2.1 4096 1935\r\n"), ""},
		{"v1 multicast", []byte("PROXY TCP6 ff02::1 ::1 4096 1935\r\n"), ""},
		{"v2", v2(0x21, 0x11, v4Body), v4},
		{"v2 extensions", v2(0x21, 0x11, with(300)), v4},
		{"v2 as long as is taken", v2(0x21, 0x11, with(maxHeader-v2Fixed-12)), v4},
		{"v2 longer", v2(0x21, 0x11, with(maxHeader-v2Fixed-11)), ""},
		{"v2 length 65535", v2(0x21, 0x11, with(65535-12)), ""},
		{"v2 local", v2(0x20, 0x11, v4Body), "proxy"},
		{"v2 local, empty", v2(0x20, 0, nil), "proxy"},
		{"v2 addresses too short", v2(0x21, 0x11, v4Body[:11]), ""},
		{"v2 addresses of the other family", v2(0x21, 0x21, v4Body), ""},
		{"v2 UDP", v2(0x21, 0x12, v4Body), ""},
		{"v2 unix", v2(0x21, 0x31, make([]byte, 216)), ""},
		{"v2 unspecified", v2(0x21, 0x00, nil), ""},
		{"v2 family 15", v2(0x21, 0xf1, v4Body), ""},
		{"v2 command 15", v2(0x2f, 0x11, v4Body), ""},
		{"v2 version 1", v2(0x11, 0x11, v4Body), ""},
		{"v2 cut", v2(0x21, 0x11, v4Body)[:20], ""},
		{"v2 cut signature", proxyproto.SIGV2[:7], ""},
		{"TLS", []byte("\x16\x03\x01\x02\x00\x01"), ""},
		{"HTTP", []byte("POST /live/room.flv HTTP/1.1\r\n\r\n"), ""},
		{"RTMP", append([]byte{3}, make([]byte, 1536)...), ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, whole := range []bool{true, false} { // networks cut where they like
				var r io.Reader = bytes.NewReader(append(bytes.Clone(c.in), "rest"...))
				if strings.Contains(c.name, "cut") {
					r = bytes.NewReader(c.in)
				}
				if !whole {
					r = iotest.OneByteReader(r)
				}
				br := bufio.NewReaderSize(r, maxHeader)
				client, err := parseProxyHeader(br)
				got := client.String()
				switch {
				case err != nil:
					got = ""
				case !client.IsValid():
					got = "proxy"
				}
				if got != c.want {
					t.Fatalf("whole %v: client %q, %v, want %q", whole, got, err, c.want)
				}
				if rest, _ := io.ReadAll(br); err == nil && string(rest) != "rest" {
					t.Errorf("whole %v: %q is left, want \"rest\"", whole, rest)
				}
			}
		})
	}
	if _, err := parseProxyHeader(bufio.NewReaderSize(strings.NewReader(""), maxHeader)); !errors.Is(err, errSilentClose) {
		t.Errorf("nothing: %v, want errSilentClose", err)
	}
}

func FuzzProxyHeader(f *testing.F) {
	for _, client := range []string{"198.51.100.1:1", "[2001:db8::1]:65535"} {
		f.Add(header(f, 1, client))
		f.Add(header(f, 2, client))
	}
	f.Add(v2(0x21, 0x11, append(bytes.Clone(v4Body), 3, 0, 4, 1, 2, 3, 4)))
	f.Add(v2(0x20, 0, nil))
	f.Add([]byte("PROXY UNKNOWN\r\nGET / HTTP/1.1\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		parse := func(r io.Reader) (netip.AddrPort, int, error) {
			br := bufio.NewReaderSize(r, maxHeader)
			client, err := parseProxyHeader(br)
			if err != nil {
				return client, 0, err
			}
			rest, _ := io.ReadAll(br)
			return client, len(in) - len(rest), nil
		}
		client, used, err := parse(bytes.NewReader(in))
		slow, usedSlow, errSlow := parse(iotest.OneByteReader(bytes.NewReader(in)))
		if client != slow || used != usedSlow || (err == nil) != (errSlow == nil) {
			t.Fatalf("whole: %v %d %v, in pieces: %v %d %v", client, used, err, slow, usedSlow, errSlow)
		}
		if err != nil {
			if client.IsValid() {
				t.Fatalf("%v with %v", client, err)
			}
			return
		}
		if used > maxHeader || used < len("PROXY UNKNOWN\r\n") {
			t.Fatalf("a header of %d bytes", used)
		}
		if client.IsValid() { // what was understood means the same when said again
			a := client.Addr()
			if a.Is4In6() || a.Zone() != "" || a.IsUnspecified() {
				t.Fatalf("client %v", client)
			}
			in = header(t, 2, client.String())
			if again, _, err := parse(bytes.NewReader(in)); err != nil || again != client {
				t.Fatalf("again: %v, %v, want %v", again, err, client)
			}
		}
	})
}
