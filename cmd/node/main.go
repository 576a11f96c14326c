// Command node takes streams in over RTMP and serves them over HTTP-FLV. One
// binary is center, relay or edge, by configuration.
//
//	node                                  a stand-alone center
//	node --config FILE --check-config     0 if the file is good, else 2 and why not
//	node --help                           all flags
//
// Signals: SIGHUP reads the configuration again, SIGTERM and SIGINT drain, a second
// one ends at once. Exit codes: 0 after a drain, 1 when something failed while
// running, 2 when it could not start.
//
// The files: build.go makes components from a configuration, group.go runs them,
// drain.go and reload.go are what the signals do, limits.go the descriptors.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"millrace/internal/config"
)

const (
	exitOK      = 0
	exitFailed  = 1
	exitRefused = 2
)

func main() {
	reload, end := make(chan os.Signal, 1), make(chan os.Signal, 2)
	signal.Notify(reload, syscall.SIGHUP)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	os.Exit(run(os.Args[1:], os.Environ(), signals{reload, end}, os.Stdout, os.Stderr))
}

// signals are what the operating system tells the program. The kinds have channels
// of their own, so that no storm of SIGHUP makes a SIGTERM go lost. Never closed.
type signals struct {
	reload <-chan os.Signal // capacity 1: one that waits stands for all that come after
	end    <-chan os.Signal // capacity 2: the second ends at once
}

// flags are the command line. A pointer tells a flag that is missing from one that
// is empty.
type flags struct {
	Config      string   `help:"Read settings from this YAML file." placeholder:"FILE"`
	Role        *string  `help:"What the node is for: center, relay or edge." placeholder:"ROLE"`
	RTMP        *string  `name:"rtmp" help:"Where encoders connect (:1935)." placeholder:"ADDR"`
	RTMPS       *string  `name:"rtmps" help:"The same inside TLS; needs tls.cert_file." placeholder:"ADDR"`
	HTTP        *string  `name:"http" help:"Where players connect (:8080)." placeholder:"ADDR"`
	HTTPS       *string  `name:"https" help:"The same inside TLS; needs tls.cert_file." placeholder:"ADDR"`
	Admin       *string  `help:"Where operators connect (127.0.0.1:9090)." placeholder:"ADDR"`
	LogLevel    *string  `help:"debug, info, warn or error." placeholder:"LEVEL"`
	LogFormat   *string  `help:"auto, text or json." placeholder:"FORMAT"`
	Set         []string `help:"Any setting of the file, such as --set stream.grace=5s." placeholder:"KEY=VALUE" sep:"none"`
	CheckConfig bool     `help:"Check the settings and exit."`
	Version     bool     `help:"Show the version and exit."`
}

// sources returns where the settings come from.
func (f *flags) sources(environ []string) (config.Sources, error) {
	src := config.Sources{File: f.Config, Environ: environ}
	if src.File == "" {
		src.File = config.FileFromEnv(environ)
	}
	add := func(name, key string, text *string) {
		if text != nil {
			src.Flags = append(src.Flags, config.Flag{Name: name, Key: key, Text: *text})
		}
	}
	add("--role", "role", f.Role)
	add("--rtmp", "address.rtmp", f.RTMP)
	add("--rtmps", "address.rtmps", f.RTMPS)
	add("--http", "address.http", f.HTTP)
	add("--https", "address.https", f.HTTPS)
	add("--admin", "address.admin", f.Admin)
	add("--log-level", "log.level", f.LogLevel)
	add("--log-format", "log.format", f.LogFormat)
	for _, set := range f.Set {
		flag, err := config.ParseFlag("--set", set)
		if err != nil {
			return src, err
		}
		src.Flags = append(src.Flags, flag)
	}
	return src, nil
}

// exited is how kong ends the program, caught by run.
type exited int

// run is the program. It returns the exit code.
func run(args, environ []string, sigs signals, stdout, stderr io.Writer) (code int) {
	defer func() {
		if p := recover(); p != nil {
			e, ok := p.(exited)
			if !ok {
				panic(p)
			}
			code = int(e)
		}
	}()
	var f flags
	parser, err := kong.New(&f,
		kong.Name("node"),
		kong.Description("Takes live streams in over RTMP and serves them over HTTP-FLV."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(c int) { panic(exited(c)) }),
	)
	if err != nil {
		return refuse(stderr, err)
	}
	if _, err := parser.Parse(args); err != nil {
		return refuse(stderr, err)
	}
	if f.Version {
		fmt.Fprintln(stdout, "millrace node", versionLine())
		return exitOK
	}
	src, err := f.sources(environ)
	if err != nil {
		return refuse(stderr, err)
	}
	loaded, err := config.Load(src)
	if err != nil {
		return refuse(stderr, err)
	}
	if f.CheckConfig {
		if err := check(loaded); err != nil {
			return refuse(stderr, err)
		}
		fmt.Fprintln(stdout, "the configuration is good")
		return exitOK
	}

	out := newLog(loaded.Log, stderr)
	n, err := build(loaded, src, out)
	if err != nil {
		out.log.Error("cannot start", "err", err)
		return exitRefused
	}
	if out.terminal {
		n.banner(stderr)
	}
	if err := n.run(sigs); err != nil {
		out.log.Error("ended by a failure", "err", err)
		return exitFailed
	}
	out.log.Info("ended")
	return exitOK
}

// refuse says why the program does not start, one line for each reason.
func refuse(w io.Writer, err error) int {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		fmt.Fprintln(w, "node:", err)
		return exitRefused
	}
	for _, e := range joined.Unwrap() {
		fmt.Fprintln(w, "node:", e)
	}
	return exitRefused
}
