// Package config puts the settings of a program together: defaults, then a YAML
// file, then environment variables, then flags.
//
//	defaults  <  --config FILE  <  MILLRACE_RTMP_HANDSHAKE_TIMEOUT=5s  <  --rtmp :1935
//
// Each program has a [Root], a struct of sections, and each package owns its
// section: a Config with defaults and a Validate. A key is the section, a dot and
// the name of the field in snake case; the environment variable of
// rtmp.handshake_timeout is MILLRACE_ and the key in capitals with an underscore for
// each dot. Lists stand in variables with commas between the items, maps in YAML's
// short form ({live: [key-one, key-two]}).
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
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"millrace/internal/auth"
	"millrace/internal/listen"
)

// Root is the whole configuration of one program.
type Root interface {
	Node | Scheduler | Router
	// Validate checks every section and what sections must agree on.
	Validate() error

	problems() []problem
	restart() []string // sections and keys that a reload from this or to this leaves as they are
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

// Unwrap returns what is wrong.
func (p problem) Unwrap() error { return p.err }

// check is a section and what checks it.
type check struct {
	section  string
	validate func() error
}

// findings returns what all checks find, and then what the sections do not agree on.
func findings(checks []check, relations []error) []problem {
	var out []problem
	for _, c := range checks {
		for _, err := range split(c.validate()) {
			out = append(out, problem{c.section, err})
		}
	}
	for _, err := range split(errors.Join(relations...)) {
		out = append(out, problem{"", err})
	}
	return out
}

// join returns problems as one error, nil without any.
func join(problems []problem) error {
	var errs []error
	for _, p := range problems {
		errs = append(errs, p)
	}
	return errors.Join(errs...)
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

// checkName checks a name by which programs of the cluster know one another.
func checkName(key, value string) error {
	if value != "" && !auth.ValidNodeID(value) {
		return fmt.Errorf("%s is %q: use letters, digits, dots, underscores and hyphens, at most %d", key, value, auth.MaxNodeID)
	}
	return nil
}

// listener is one address of a section of them.
type listener struct{ key, addr string }

// validateAddresses checks that each address can be listened on.
func validateAddresses(all []listener) error {
	var errs []error
	for _, l := range all {
		if l.addr == "" {
			continue
		}
		if err := checkAddress(l.addr); err != nil {
			errs = append(errs, fmt.Errorf("%s is %q: %w", l.key, l.addr, err))
		}
	}
	return errors.Join(errs...)
}

// sharedPorts returns which addresses are there twice.
func sharedPorts(all []listener) (errs []error) {
	seen := map[string]string{}
	for _, l := range all {
		if _, port, err := net.SplitHostPort(l.addr); err != nil || port == "0" {
			continue
		}
		if other, dup := seen[l.addr]; dup {
			errs = append(errs, fmt.Errorf("address.%s is %s, as is address.%s: they need ports of their own", l.key, l.addr, other))
		}
		seen[l.addr] = l.key
	}
	return errs
}

// needsCertificate returns what is wrong with an address inside TLS.
func needsCertificate(key, addr string, t TLS) error {
	if t.CertFile == "" && addr != "" {
		return fmt.Errorf("address.%s needs a certificate: set tls.cert_file and tls.key_file", key)
	}
	return nil
}

// needsToken returns what is wrong with an address for operators.
func needsToken(addr, token string) error {
	if addr != "" && token == "" && !Loopback(addr) {
		return fmt.Errorf("address.admin is %s, which other machines can reach: set admin.token, or use 127.0.0.1", addr)
	}
	return nil
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

// Load reads the certificate; nil when none is named.
func (t TLS) Load() (*listen.Certificate, error) {
	if t.CertFile == "" {
		return nil, nil
	}
	c, err := listen.LoadCertificate(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	return c, nil
}

// CheckKeys tells what a program would refuse of a certificate and of the keys that
// nodes share, though all of it reads well.
func CheckKeys(t TLS, cluster auth.ClusterConfig) error {
	_, err := t.Load()
	errs := []error{err}
	if _, err := auth.NewCluster(cluster); err != nil {
		errs = append(errs, fmt.Errorf("cluster: %w", err))
	}
	return errors.Join(errs...)
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
