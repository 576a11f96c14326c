// Package run is what every program of Millrace does around its components: it reads
// the command line, writes the log, raises the limit of file descriptors, opens
// listeners, runs the components as a group and acts on signals.
//
//	Main      the process: arguments, environment, signals, exit code
//	Parse     the command line
//	Start     the log, and a program that is built and runs until its end
//	NewLog    the log, behind a Spool that never blocks
//	Doors     the listeners, within limits and with a certificate
//	Life      from the first component to the last: SIGHUP reads the settings again,
//	          SIGTERM and SIGINT drain, a second one ends at once, a third without
//	          waiting for anything
//	Group     runs components, and stops them stage by stage
//
// It knows no component but listeners, and no setting, so that all programs end, refuse and log
// alike. Exit codes: 0 after a drain, 1 when something failed while running, 2 when it
// could not start.
package run

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// Exit codes of a program.
const (
	OK      = 0 // it ran and was told to end
	Failed  = 1 // something failed while it ran
	Refused = 2 // it did not start
)

// Signals are what the operating system tells the program. The kinds have channels
// of their own, so that no storm of SIGHUP makes a SIGTERM go lost. Never closed.
type Signals struct {
	Reload <-chan os.Signal // capacity 1: one that waits stands for all that come after
	End    <-chan os.Signal // capacity 3: the second ends at once, the third by force
}

// Main runs program as the process and ends it with the exit code that it returns.
func Main(program func(args, environ []string, sigs Signals, stdout, stderr io.Writer) int) {
	reload, end := make(chan os.Signal, 1), make(chan os.Signal, 3)
	signal.Notify(reload, syscall.SIGHUP)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	os.Exit(program(os.Args[1:], os.Environ(), Signals{reload, end}, os.Stdout, os.Stderr))
}

// Flags are the flags that every program has. A pointer tells a flag that is missing
// from one that is empty.
type Flags struct {
	Config      string   `help:"Read settings from this YAML file." placeholder:"FILE"`
	ClusterKey  []string `help:"The key that nodes sign with; a second one is accepted too." placeholder:"KEY" sep:"none"`
	LogLevel    *string  `help:"debug, info, warn or error." placeholder:"LEVEL"`
	LogFormat   *string  `help:"auto, text or json." placeholder:"FORMAT"`
	Set         []string `help:"Any setting of the file, such as --set drain.deadline=5s." placeholder:"KEY=VALUE" sep:"none"`
	CheckConfig bool     `help:"Check the settings and exit."`

	Version kong.VersionFlag `help:"Show the version and exit."`
}

// exited is how kong ends the program, caught by Parse.
type exited int

// Parse reads the command line of the program name into flags, a pointer to a struct
// as kong reads it. version is what the linker has set, or "". Unless ok, the program is
// to end with code: everything is said.
func Parse(name, about, version string, flags any, args []string, stdout, stderr io.Writer) (code int, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			e, is := p.(exited)
			if !is {
				panic(p)
			}
			code, ok = int(e), false
		}
	}()
	parser, err := kong.New(flags,
		kong.Name(name),
		kong.Description(about),
		kong.Vars{"version": "millrace " + name + " " + VersionLine(version)},
		kong.Writers(stdout, stderr),
		kong.Exit(func(c int) { panic(exited(c)) }),
	)
	if err == nil {
		_, err = parser.Parse(args)
	}
	if err != nil {
		return Refuse(name, stderr, err), false
	}
	return OK, true
}

// Checked says what --check-config has found, of a configuration from a file or none, and
// returns the exit code. good is what is to say of one without a fault.
func Checked(name, file, good string, err error, stdout, stderr io.Writer) int {
	if err != nil {
		return Refuse(name, stderr, err)
	}
	fmt.Fprintf(stdout, "%s: %s\n", cmp.Or(file, "no file"), good)
	return OK
}

// Refuse says why the program does not start, one line for each reason, and returns
// the exit code.
func Refuse(name string, w io.Writer, err error) int {
	for _, e := range Reasons(err) {
		fmt.Fprintf(w, "%s: %v\n", name, e)
	}
	return Refused
}

// Reasons takes errors apart that were joined.
func Reasons(err error) []error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	return []error{err}
}
