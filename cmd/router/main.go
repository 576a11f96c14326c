// Command router is the slow brain of the network: it hears how nodes and links do,
// plans where nodes pull from, and has the console that operators steer it by.
//
//	router --http ADDR --state FILE                 one router, with nothing else to install
//	router --http ADDR --redis URL --state FILE     one of several that share a Redis
//	router hash-password                            a password for the settings, read from a terminal or a pipe
//	router new-token                                a token for programs, and what to put in the settings
//	router --config FILE --check-config             0 if all of it is good, else 2 and why not
//	router --help                                   all flags
//
// It is never in the way of a stream or of a viewer: nodes and schedulers go on with
// what they have for as long as it is away.
//
// Signals: SIGHUP reads the configuration again, SIGTERM and SIGINT end it: who waits is
// answered, and another router plans at once; a second one ends without waiting for
// answers that are under way. Exit codes: 0 after an end as ordered, 1 when something
// failed while running, 2 when it could not start.
//
// The files: build.go makes components from a configuration, state.go opens what is
// kept, serve.go answers, run.go runs all of it, reload.go is what SIGHUP does,
// login.go and firstlogin.go have passwords, figures.go the metrics, limits.go the descriptors.
package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"millrace/internal/config"
	"millrace/internal/run"
)

// version is set by the linker: -ldflags '-X main.version=v1.2.3'.
var version = ""

func main() { run.Main(program) }

// flags are the command line.
type flags struct {
	HTTP  *string  `name:"http" help:"Where nodes, schedulers and operators connect (:8082)." placeholder:"ADDR"`
	HTTPS *string  `name:"https" help:"The same inside TLS; needs tls.cert_file." placeholder:"ADDR"`
	Admin *string  `help:"Where health, metrics and read-only figures are (127.0.0.1:9092)." placeholder:"ADDR"`
	ID    *string  `name:"id" help:"The name of this router." placeholder:"ID"`
	State *string  `help:"The file that keeps what operators edit and the last plan." placeholder:"FILE"`
	Redis *string  `help:"The Redis that several routers share." placeholder:"URL"`
	MMDB  []string `name:"mmdb" help:"Where clients are that the coverage does not name; may be given again." placeholder:"FILE"`
	run.Flags
}

// sources returns where the settings come from.
func (f *flags) sources(environ []string) (config.Sources, error) {
	src := config.From(f.Config, environ)
	src.Add("--http", "address.http", f.HTTP)
	src.Add("--https", "address.https", f.HTTPS)
	src.Add("--admin", "address.admin", f.Admin)
	src.Add("--id", "id", f.ID)
	src.Add("--state", "state_file", f.State)
	src.Add("--redis", "redis.url", f.Redis)
	src.AddList("--mmdb", "mmdb", f.MMDB)
	return src, src.AddCommon(&f.Flags)
}

// about is what the program is for, in one sentence.
const about = "Hears how nodes and links do, plans where nodes pull from, and has the console for operators. " +
	"router hash-password and router new-token make what its settings need for people and programs to log in."

// program is the router from its arguments to its exit code.
func program(args, environ []string, sigs run.Signals, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		switch args[0] {
		case "hash-password":
			return hashPassword(args[1:], os.Stdin, stdout, stderr)
		case "new-token":
			return newToken(args[1:], stdout, stderr)
		}
	}
	var f flags
	if code, ok := run.Parse("router", about, version, &f, args, stdout, stderr); !ok {
		return code
	}
	src, err := f.sources(environ)
	if err != nil {
		return run.Refuse("router", stderr, err)
	}
	loaded, err := config.Load(config.DefaultRouter(), src)
	if err != nil {
		code := run.Refuse("router", stderr, err)
		if errors.Is(err, config.ErrNoState) {
			fmt.Fprint(stderr, shortest)
		}
		return code
	}
	if f.CheckConfig {
		err := check(loaded.Config)
		if err == nil {
			_, _, err = fitDescriptors(loaded, run.RaiseDescriptors(slog.New(slog.DiscardHandler)))
		}
		return run.Checked("router", src.File, "the configuration is good, and so are the files that it names", err, stdout, stderr)
	}
	return run.Start(loaded.Config.Log.Level, loaded.Config.Log.Format, stderr, sigs, func(out run.Output) (run.Program, error) {
		return build(loaded, src, out)
	})
}

// shortest shows somebody who starts the router with nothing what it needs.
const shortest = `
The shortest that does something:

  router --http :8082 --state router.state
  node --role edge --id edge-1 --router http://127.0.0.1:8082
`
