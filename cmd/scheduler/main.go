// Command scheduler sends every player to the right edge: as an authoritative DNS
// server, by 302, and by HTTP-DNS.
//
//	scheduler --nodes FILE --domains FILE --coverage FILE    works alone, from files
//	scheduler --router URL                                   works from what routers know
//	scheduler --config FILE --check-config                   0 if all of it is good, else 2 and why not
//	scheduler --help                                         all flags
//
// Signals: SIGHUP reads the configuration again and the files that it names, SIGTERM
// and SIGINT drain, a second one ends at once, a third without waiting for anything.
// Exit codes: 0 after a drain, 1 when something failed while running, 2 when it could
// not start.
//
// The files: build.go makes components from a configuration, knowledge.go those that
// know of edges and domains, faces.go those that answer, run.go runs them, reload.go is what SIGHUP does, figures.go the metrics,
// limits.go the descriptors.
package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"millrace/internal/config"
	"millrace/internal/run"
)

// version is set by the linker: -ldflags '-X main.version=v1.2.3'.
var version = ""

func main() { run.Main(program) }

// flags are the command line.
type flags struct {
	DNS      *string  `name:"dns" help:"Where resolvers ask, over UDP and TCP (:8053)." placeholder:"ADDR"`
	HTTP     *string  `name:"http" help:"Where players are redirected and apps ask for edges (:8081)." placeholder:"ADDR"`
	HTTPS    *string  `name:"https" help:"The same inside TLS; needs tls.cert_file." placeholder:"ADDR"`
	Internal *string  `help:"Where edges follow this scheduler, signed; needs a cluster key." placeholder:"ADDR"`
	Admin    *string  `help:"Where operators connect (127.0.0.1:9091)." placeholder:"ADDR"`
	ID       *string  `name:"id" help:"The name of this scheduler." placeholder:"ID"`
	Nodes    *string  `help:"The nodes and regions, YAML." placeholder:"FILE"`
	Domains  *string  `help:"The zones, domains and overrides, YAML." placeholder:"FILE"`
	Coverage *string  `help:"Where clients are: lines of CIDR REGION ISP." placeholder:"FILE"`
	MMDB     []string `name:"mmdb" help:"Where clients are that no line of the coverage names; may be given again." placeholder:"FILE"`
	Router   []string `help:"A router that nodes and domains come from, instead of files; may be given again: http://HOST:PORT." placeholder:"URL"`
	run.Flags
}

// sources returns where the settings come from.
func (f *flags) sources(environ []string) (config.Sources, error) {
	src := config.From(f.Config, environ)
	src.Add("--dns", "address.dns", f.DNS)
	src.Add("--http", "address.http", f.HTTP)
	src.Add("--https", "address.https", f.HTTPS)
	src.Add("--internal", "address.internal", f.Internal)
	src.Add("--admin", "address.admin", f.Admin)
	src.Add("--id", "id", f.ID)
	src.Add("--nodes", "files.nodes", f.Nodes)
	src.Add("--domains", "files.domains", f.Domains)
	src.Add("--coverage", "files.coverage", f.Coverage)
	src.AddList("--mmdb", "files.mmdb", f.MMDB)
	src.AddList("--router", "router.servers", f.Router)
	return src, src.AddCommon(&f.Flags)
}

// program is the scheduler from its arguments to its exit code.
func program(args, environ []string, sigs run.Signals, stdout, stderr io.Writer) int {
	var f flags
	if code, ok := run.Parse("scheduler", "Sends every player to the right edge, by DNS, 302 and HTTP-DNS.", version, &f, args, stdout, stderr); !ok {
		return code
	}
	src, err := f.sources(environ)
	if err != nil {
		return run.Refuse("scheduler", stderr, err)
	}
	loaded, err := config.Load(config.DefaultScheduler(), src)
	if err != nil {
		code := run.Refuse("scheduler", stderr, err)
		if errors.Is(err, config.ErrNoFiles) {
			fmt.Fprint(stderr, shortestFiles)
		}
		return code
	}
	if f.CheckConfig {
		err := check(loaded)
		if err == nil {
			_, _, err = fitDescriptors(loaded, run.RaiseDescriptors(slog.New(slog.DiscardHandler)))
		}
		good := "the configuration is good, and so are the files that it names"
		if len(loaded.Config.Router.Servers) > 0 {
			good = "the configuration is good"
		}
		return run.Checked("scheduler", src.File, good, err, stdout, stderr)
	}
	return run.Start(loaded.Config.Log.Level, loaded.Config.Log.Format, stderr, sigs, func(out run.Output) (run.Program, error) {
		return build(loaded, src, out)
	})
}

// shortestFiles shows somebody who starts the scheduler with nothing what it needs.
const shortestFiles = `
The shortest files that do something, to begin with:

  nodes.yaml
    nodes:
      - {id: edge-1, role: edge, region: here, isps: ["*"], addresses: [127.0.0.1], http_port: 8080, capacity: 125MB}

  domains.yaml
    zones:
      - {name: live.test, ns: [{host: ns1.live.test, addresses: [127.0.0.1]}]}
    domains:
      - {name: play.live.test, zone: live.test, ecs: true, redirect: true, httpdns: true}

  coverage.txt (optional)
    127.0.0.0/8 here *

  scheduler --nodes nodes.yaml --domains domains.yaml --coverage coverage.txt
  dig @127.0.0.1 -p 8053 play.live.test
  curl -i -H 'Host: play.live.test' http://127.0.0.1:8081/live/demo.flv

configs/ has longer ones, with every key explained.
`
