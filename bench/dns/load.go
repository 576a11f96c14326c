package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"

	"millrace/tools/procstat"
)

// networks is how many networks the coverage has; queries come from all of them.
const networks = 12_800

// network returns one of them, a /20.
func network(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(20 + i>>12), byte(i >> 4), byte(i & 15 << 4), 0}), 20)
}

func clientSubnet(p netip.Prefix) *dns.EDNS0_SUBNET {
	return &dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: uint8(p.Bits()), Address: p.Addr().AsSlice()}
}

// writeQueries writes what dnsperf sends, in its binary form: questions for A with the
// /24 of a client, each name and each network about equally often, in random order
// that is the same in each run.
func writeQueries(file string) error {
	var out []byte
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		m := new(dns.Msg)
		m.SetQuestion(nameOf(r.IntN(names)), dns.TypeA)
		m.RecursionDesired = false
		o := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}}
		o.SetUDPSize(1232)
		o.Option = []dns.EDNS0{clientSubnet(netip.PrefixFrom(network(r.IntN(networks)).Addr(), 24))}
		m.Extra = append(m.Extra, o)
		b, err := m.Pack()
		if err != nil {
			return err
		}
		out = append(binary.BigEndian.AppendUint16(out, uint16(len(b))), b...)
	}
	return os.WriteFile(file, out, 0o644)
}

// outcome is what one run showed.
type outcome struct {
	perSecond float64 // queries answered, as the load saw it
	cpu       float64 // µs of the server for one
	pacedCPU  float64 // the same at the pace of the run for latency
	lost      float64 // share of queries without an answer
	p50, p99  float64 // ms at the pace of the run for latency
}

// trial starts a server on one core, loads it from the others and stops it.
func (b *bench) trial(ctx context.Context, name string) (o outcome, err error) {
	s, err := b.start(ctx, name)
	if err != nil {
		return o, err
	}
	defer s.stop()
	if _, err := b.load(ctx, s, time.Second); err != nil { // warm
		return o, err
	}
	text, err := b.measured(ctx, s, &o.cpu)
	if err != nil {
		return o, err
	}
	o.perSecond = figure(text, "Queries per second")
	o.lost = 1 - figure(text, "Queries completed")/figure(text, "Queries sent")
	if text, err = b.measured(ctx, s, &o.pacedCPU, "-v", "-Q", strconv.Itoa(b.paced)); err != nil {
		return o, err
	}
	o.p50, o.p99 = latencies(text)
	return o, nil
}

// allWell is what dnsperf says when every answer was one.
var allWell = regexp.MustCompile(`Response codes:\s*NOERROR [0-9]+ \(100\.00%\)`)

// measured is load for the measuring time; it sets cpu to what an answer cost the
// server, in µs.
func (b *bench) measured(ctx context.Context, s *server, cpu *float64, args ...string) ([]byte, error) {
	before, err := procstat.CPU(s.pid())
	if err != nil {
		return nil, err
	}
	text, err := b.load(ctx, s, b.duration, args...)
	if err != nil {
		return nil, err
	}
	after, err := procstat.CPU(s.pid())
	if err != nil {
		return nil, err
	}
	if !allWell.Match(text) {
		return nil, fmt.Errorf("not all answers are NOERROR:\n%s\n%s", text[max(0, len(text)-2000):], s.tail())
	}
	*cpu = float64((after - before).Microseconds()) / figure(text, "Queries completed")
	return text, nil
}

// load runs dnsperf on all cores but the server's, and returns what it printed.
func (b *bench) load(ctx context.Context, s *server, d time.Duration, args ...string) ([]byte, error) {
	_, port, _ := strings.Cut(s.addr, ":")
	all := append([]string{
		"-s", "127.0.0.1", "-p", port, "-B", "-d", b.queries, "-c", "16", "-q", "200", "-t", "2",
		"-l", strconv.Itoa(max(1, int(d/time.Second))),
	}, args...)
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "dnsperf", all...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := onCores(loadCores(), cmd.Start)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return nil, fmt.Errorf("dnsperf %s: %w\n%s", strings.Join(all, " "), err, out.Bytes())
	}
	return out.Bytes(), nil
}

// figure returns the number behind a word in what dnsperf prints at its end.
func figure(text []byte, word string) float64 {
	m := regexp.MustCompile(regexp.QuoteMeta(word) + `:\s*([0-9.]+)`).FindSubmatch(text)
	if m == nil {
		return 0
	}
	f, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		return 0
	}
	return f
}

// latencies returns the median and the 99th percentile, in ms, of what dnsperf prints of
// each query: "> NOERROR name A 0.000123".
func latencies(text []byte) (p50, p99 float64) {
	var ms []float64
	for line := range bytes.Lines(text) {
		f := bytes.Fields(line)
		if len(f) < 3 || f[0][0] != '>' {
			continue
		}
		if s, err := strconv.ParseFloat(string(f[len(f)-1]), 64); err == nil {
			ms = append(ms, s*1000)
		}
	}
	if len(ms) == 0 {
		return 0, 0
	}
	slices.Sort(ms)
	return ms[len(ms)/2], ms[len(ms)*99/100]
}
