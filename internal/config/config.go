// Package config puts the settings of a node together: defaults, then a YAML
// file, then environment variables, then flags.
//
//	defaults  <  --config FILE  <  MILLRACE_RTMP_HANDSHAKE_TIMEOUT=5s  <  --rtmp :1935
//
// Each package owns its section: a Config with defaults and a Validate. A key is
// the section, a dot and the name of the field in snake case; the environment
// variable of rtmp.handshake_timeout is MILLRACE_ and the key in capitals with an
// underscore for each dot. Lists stand in variables with commas between the items,
// maps in YAML's short form ({live: [key-one, key-two]}).
//
// It is strict. Unknown keys and variables, values of the wrong kind, values out
// of range and settings that contradict each other are errors, all told at once,
// each with its file and line, its variable or its flag. Nothing is opened and
// nothing is started here.
package config

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"millrace/internal/admin"
	"millrace/internal/auth"
	"millrace/internal/httpflv"
	"millrace/internal/listen"
	"millrace/internal/rtmp"
	"millrace/internal/stream"
)

// Role is the tier of a node.
type Role uint8

// The roles of a node.
const (
	Center Role = iota // takes publishers in
	Relay              // forwards between centers and edges
	Edge               // serves viewers
)

var roleWords = []string{"center", "relay", "edge"}

// String returns the word of r.
func (r Role) String() string { return roleWords[r] }

// MarshalText returns the word of r.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a word.
func (r *Role) UnmarshalText(b []byte) error {
	i := slices.Index(roleWords, string(b))
	if i < 0 {
		return fmt.Errorf("%q is not a role: use center, relay or edge", b)
	}
	*r = Role(i)
	return nil
}

// Node is the whole configuration of one node.
type Node struct {
	Role Role
	// MemoryLimit is where the garbage collector begins to work hard to stay
	// below. Zero leaves it to the GOMEMLIMIT variable.
	MemoryLimit int64

	Address Address
	TLS     TLS
	Log     Log
	Drain   Drain

	Stream  stream.Config
	Auth    auth.Config
	Listen  listen.Config
	RTMP    rtmp.Config
	HTTPFLV httpflv.Config
	Admin   admin.Config
}

// Address is where the node listens, as host:port. An empty one is not opened.
type Address struct {
	RTMP  string
	RTMPS string
	HTTP  string
	HTTPS string
	Admin string
}

// TLS names the files of the certificate for RTMPS and HTTPS. They are read again
// at every reload.
type TLS struct {
	CertFile string
	KeyFile  string
}

// Log says what is logged, and how.
type Log struct {
	Level  slog.Level
	Format string // auto is text on a terminal and JSON elsewhere
}

// Drain says how a node leaves.
type Drain struct {
	// Deadline is from SIGTERM to the end. Viewers may leave by themselves until
	// shortly before.
	Deadline time.Duration
}

// Default returns a stand-alone center.
func Default() Node {
	return Node{
		Address: Address{RTMP: ":1935", HTTP: ":8080", Admin: "127.0.0.1:9090"},
		Log:     Log{Format: "auto"},
		Drain:   Drain{Deadline: 25 * time.Second},
		Stream:  stream.DefaultConfig(),
		Auth:    auth.DefaultConfig(),
		Listen:  listen.DefaultConfig(),
		RTMP:    rtmp.DefaultConfig(),
		HTTPFLV: httpflv.DefaultConfig(),
		Admin:   admin.DefaultConfig(),
	}
}

// Validate checks every section and what sections must agree on.
func (n Node) Validate() error {
	var errs []error
	for _, p := range n.problems() {
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}

// problem is what is wrong within a section, or, with an empty section, at the top.
type problem struct {
	section string
	err     error
}

func (p problem) Error() string {
	if p.section == "" {
		return p.err.Error()
	}
	return p.section + ": " + p.err.Error()
}

func (n Node) problems() []problem {
	sections := []struct {
		name     string
		validate func() error
	}{
		{"", n.validateTop},
		{"address", n.Address.Validate},
		{"tls", n.TLS.Validate},
		{"log", n.Log.Validate},
		{"drain", n.Drain.Validate},
		{"stream", n.Stream.Validate},
		{"auth", n.Auth.Validate},
		{"listen", n.Listen.Validate},
		{"rtmp", n.RTMP.Validate},
		{"httpflv", n.HTTPFLV.Validate},
		{"admin", n.Admin.Validate},
	}
	var out []problem
	for _, s := range sections {
		for _, err := range split(s.validate()) {
			out = append(out, problem{s.name, err})
		}
	}
	for _, err := range n.relations() {
		out = append(out, problem{"", err})
	}
	return out
}

// split takes joined errors apart.
func split(err error) []error {
	var joined interface{ Unwrap() []error }
	switch {
	case err == nil:
		return nil
	case errors.As(err, &joined):
		var out []error
		for _, e := range joined.Unwrap() {
			out = append(out, split(e)...)
		}
		return out
	}
	return []error{err}
}

func (n Node) validateTop() error {
	if n.MemoryLimit != 0 && n.MemoryLimit < 64<<20 || n.MemoryLimit == math.MaxInt64 {
		return fmt.Errorf("memory_limit is %s: use 64MiB or more, or 0 for none", FormatSize(n.MemoryLimit))
	}
	return nil
}

// Validate checks that each address can be listened on.
func (a Address) Validate() error {
	var errs []error
	for _, l := range a.all() {
		if l.addr == "" {
			continue
		}
		if err := checkAddress(l.addr); err != nil {
			errs = append(errs, fmt.Errorf("%s is %q: %w", l.key, l.addr, err))
		}
	}
	return errors.Join(errs...)
}

type listener struct{ key, addr string }

func (a Address) all() []listener {
	return []listener{{"rtmp", a.RTMP}, {"rtmps", a.RTMPS}, {"http", a.HTTP}, {"https", a.HTTPS}, {"admin", a.Admin}}
}

func checkAddress(s string) error {
	const form = "use host:port or :port, with a port of 0 to 65535, such as :1935 or [::1]:1935"
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return errors.New(form)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return errors.New(form)
	}
	if strings.ContainsAny(host, "/ @?") {
		return errors.New(form)
	}
	return nil
}

// Loopback reports whether addr can be reached from this machine alone.
func Loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// Validate checks that both files are named or none, and that they can be read.
func (t TLS) Validate() error {
	switch {
	case t.CertFile == "" && t.KeyFile == "":
		return nil
	case t.CertFile == "":
		return errors.New("cert_file is missing: key_file is set, set both or none")
	case t.KeyFile == "":
		return errors.New("key_file is missing: cert_file is set, set both or none")
	}
	var errs []error
	for _, f := range []struct{ key, path string }{{"cert_file", t.CertFile}, {"key_file", t.KeyFile}} {
		if _, err := os.Stat(f.path); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.key, err))
		}
	}
	return errors.Join(errs...)
}

// Validate checks the format.
func (l Log) Validate() error {
	if formats := []string{"auto", "text", "json"}; !slices.Contains(formats, l.Format) {
		return fmt.Errorf("format is %q: use auto, text or json", l.Format)
	}
	return nil
}

// Validate checks the deadline. An hour is what orchestrators allow at most.
func (d Drain) Validate() error {
	if d.Deadline < 0 || d.Deadline > time.Hour {
		return fmt.Errorf("deadline is %s: use 0s to 1h", formatDuration(d.Deadline))
	}
	return nil
}

// relations checks what sections must agree on. Its errors name whole keys.
func (n Node) relations() []error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	if n.TLS.CertFile == "" && n.Address.RTMPS != "" {
		bad("address.rtmps needs a certificate: set tls.cert_file and tls.key_file")
	}
	if n.TLS.CertFile == "" && n.Address.HTTPS != "" {
		bad("address.https needs a certificate: set tls.cert_file and tls.key_file")
	}
	if n.Address.RTMP == "" && n.Address.RTMPS == "" && n.Address.HTTP == "" && n.Address.HTTPS == "" {
		bad("address.rtmp, address.rtmps, address.http and address.https are all empty: the node would serve nobody")
	}
	if n.Address.Admin != "" && n.Admin.Token == "" && !Loopback(n.Address.Admin) {
		bad("address.admin is %s, which other machines can reach: set admin.token, or use 127.0.0.1", n.Address.Admin)
	}
	seen := map[string]string{}
	for _, l := range n.Address.all() {
		if _, port, err := net.SplitHostPort(l.addr); err != nil || port == "0" {
			continue
		}
		if other, dup := seen[l.addr]; dup {
			bad("address.%s is %s, as is address.%s: they need ports of their own", l.key, l.addr, other)
		}
		seen[l.addr] = l.key
	}
	return errs
}
