package frontend

import (
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// dig asks at with the program that operators use. Without it the test is skipped, or
// fails where nothing may be missing.
func dig(t *testing.T, at netip.AddrPort, args string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped: dig takes seconds, and -short was given")
	}
	path, err := exec.LookPath("dig")
	switch {
	case err == nil:
	case os.Getenv("E2E_REQUIRE") != "":
		t.Fatal("dig is not installed, and E2E_REQUIRE is set")
	default:
		t.Skip("skipped: dig is not installed (apt-get install dnsutils)")
	}
	all := append([]string{"@" + at.Addr().String(), "-p", strconv.Itoa(int(at.Port())), "+time=10", "+tries=1", "+norec"}, strings.Fields(args)...)
	out, err := exec.Command(path, all...).CombinedOutput()
	if err != nil {
		t.Errorf("dig %s: %v\n%s", strings.Join(all, " "), err, out)
	}
	return string(out)
}

func TestDig(t *testing.T) {
	d := newTestDNS(t)
	at := serveDNS(t, d, "127.0.0.1:0")
	f := func(args string, want ...string) {
		t.Helper()
		out := dig(t, at, args)
		for _, w := range want {
			not := strings.HasPrefix(w, "!")
			if strings.Contains(out, strings.TrimPrefix(w, "!")) == not {
				t.Errorf("dig %s: want %q in\n%s", args, w, out)
			}
		}
		if strings.Contains(out, "WARNING") || strings.Contains(out, "Warning") {
			t.Errorf("dig %s warns:\n%s", args, out)
		}
	}
	f("live.example.com A", "status: NOERROR", "flags: qr aa;", "ANSWER: 3", "198.127.0.1", "EDNS: version: 0, flags:; udp: 1232", "(good)")
	f("lIve.eXample.com AAAA +noedns", "lIve.eXample.com.	30	IN	AAAA	2001:db8:7f00:1::1", "!EDNS")
	f("live.example.com A +subnet=1.2.3.0/24", "CLIENT-SUBNET: 1.2.3.0/24/16", "198.1.2.1")
	f("live.example.com A +subnet=2a00:1:2:3::/56", "CLIENT-SUBNET: 2a00:1:2::/56/56", "198.42.0.1")
	f("live.example.com A +subnet=0", "CLIENT-SUBNET: 0.0.0.0/0/0", "198.127.0.1")
	f("live.example.com A +subnet=10.0.0.0/16", "CLIENT-SUBNET: 10.0.0.0/16/8", "198.127.0.1")
	f("live.example.com TXT", "status: NOERROR", "ANSWER: 0, AUTHORITY: 1", "IN	SOA")
	f("nothing.example.com", "status: NXDOMAIN", "AUTHORITY: 1")
	f("elsewhere.org", "status: REFUSED", "!flags: qr aa")
	f("example.com SOA", "ns1.example.com. hostmaster.example.com. 2026 3600 600 604800 45")
	f("example.com NS", "ANSWER: 3", "ADDITIONAL: 4", "ns.elsewhere.net.")
	f("example.com CAA", `0 issue "letsencrypt.org"`)
	f("live.example.com ANY +notcp", `HINFO	"RFC8482" ""`)
	f("live.example.com A +edns=1 +noednsneg", "status: BADVERS")
	f("version.bind CH TXT", "status: REFUSED")
	f("+opcode=notify example.com SOA", "status: NOTIMP")
	f("+opcode=15 +header-only", "status: NOTIMP")
	f("live.example.com A +dnssec +bufsize=4096", "flags: do; udp: 1232", "ANSWER: 3")
	f("live.example.com A +tcp", "ANSWER: 3")
	f("live.example.com A +tcp +keepopen example.com NS nothing.example.com A", "ANSWER: 3", "NXDOMAIN")
	f("big.test NS +ignore +noedns", "flags: qr aa tc;", "ANSWER: 6")
	f("big.test NS +noedns", "Truncated, retrying in TCP mode", "flags: qr aa;", "ANSWER: 13", "(TCP)")
	f("big.test NS +bufsize=4096 +ignore", "flags: qr aa;", "ANSWER: 13") // 1232 is room enough
	f("live.example.com A +cookie=0123456789abcdef", "COOKIE: 0123456789abcdef01", "(good)")
	f("live.example.com A +ednsopt=8:000300000000", "status: FORMERR")
	if out := dig(t, at, "example.com AXFR"); !strings.Contains(out, "Transfer failed") {
		t.Errorf("a transfer:\n%s", out)
	}
	if st := d.Stats(); st.Dropped["no_query"] > 0 || st.Types["XFR"] != 1 {
		t.Errorf("counted as %+v", st)
	}
}

// TestDigOverTheRate has dig, whose address is over its rate, get through with what
// it was told: a cookie, or TCP.
func TestDigOverTheRate(t *testing.T) {
	const every = time.Second // RateLimit 1
	d := newTestDNS(t, func(c *DNSConfig) { c.RateLimit, c.RateSlip = 1, 1 })
	at := serveDNS(t, d, "127.0.0.1:0")
	key := newRateKey(at.Addr(), classAnswer)
	// over asks while the bucket is empty. Where the machine was too slow for that, it
	// asks again: the answer would tell nothing.
	over := func(args string) (string, uint64) {
		for range 50 {
			for d.rates.allow(time.Now(), key, perSecond(1)) {
			}
			slipped, empty := d.Stats().Slipped, time.Now()
			if out := dig(t, at, args); time.Since(empty) < every {
				return out, d.Stats().Slipped - slipped
			}
		}
		t.Skip("skipped: dig takes longer than a second here")
		return "", 0
	}
	out, slipped := over("live.example.com A +cookie")
	if !strings.Contains(out, "ANSWER: 3") || strings.Contains(out, "(TCP)") || slipped != 1 {
		t.Errorf("with a cookie, %d hints:\n%s", slipped, out)
	}
	out, slipped = over("live.example.com A +nocookie")
	if !strings.Contains(out, "ANSWER: 3") || !strings.Contains(out, "(TCP)") || slipped != 1 {
		t.Errorf("without a cookie, %d hints:\n%s", slipped, out)
	}
}
