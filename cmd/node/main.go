// Command node takes streams in over RTMP and serves them over HTTP-FLV. One
// binary is center, relay or edge, by configuration.
//
//	node                                  a stand-alone center
//	node --config FILE --check-config     0 if the file is good, else 2 and why not
//	node --help                           all flags
//
// Signals: SIGHUP reads the configuration again, SIGTERM and SIGINT drain, a second
// one ends at once, a third without waiting for anything. Exit codes: 0 after a drain, 1 when something failed while
// running, 2 when it could not start.
//
// The files: build.go makes components from a configuration, servers.go those that
// listen, placing.go those that send players to other edges, routing.go those that work
// with routers, gather.go what routers are told, whereabouts.go and reach.go where nodes
// reach one another, run.go runs them, drain.go and reload.go are what the signals do,
// limits.go the descriptors, figures.go and routingfigures.go the metrics.
package main

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"millrace/internal/config"
	"millrace/internal/run"
)

// version is set by the linker: -ldflags '-X main.version=v1.2.3'.
var version = ""

func main() { run.Main(program) }

// flags are the command line.
type flags struct {
	Role       *string  `help:"What the node is for: center, relay or edge." placeholder:"ROLE"`
	RTMP       *string  `name:"rtmp" help:"Where encoders connect (:1935)." placeholder:"ADDR"`
	RTMPS      *string  `name:"rtmps" help:"The same inside TLS; needs tls.cert_file." placeholder:"ADDR"`
	HTTP       *string  `name:"http" help:"Where players connect (:8080)." placeholder:"ADDR"`
	HTTPS      *string  `name:"https" help:"The same inside TLS; needs tls.cert_file." placeholder:"ADDR"`
	Internal   *string  `help:"Where other nodes connect, signed; needs a cluster key." placeholder:"ADDR"`
	Admin      *string  `help:"Where operators connect (127.0.0.1:9090)." placeholder:"ADDR"`
	ID         *string  `name:"id" help:"The name of this node." placeholder:"ID"`
	Datacenter *string  `help:"Where the node stands." placeholder:"NAME"`
	Upstream   []string `help:"Where missing streams come from, the best first: http://HOST:PORT or rtmp://HOST:PORT." placeholder:"URL"`
	Peer       []string `help:"Another node of the datacenter." placeholder:"ID=URL"`
	Center     []string `help:"Where publishes of this node are pushed to: rtmp://HOST:PORT." placeholder:"URL"`
	Router     []string `help:"A router to work with: http://HOST:PORT; may be given again." placeholder:"URL"`
	run.Flags
}

// sources returns where the settings come from.
func (f *flags) sources(environ []string) (config.Sources, error) {
	src := config.From(f.Config, environ)
	src.Add("--role", "role", f.Role)
	src.Add("--rtmp", "address.rtmp", f.RTMP)
	src.Add("--rtmps", "address.rtmps", f.RTMPS)
	src.Add("--http", "address.http", f.HTTP)
	src.Add("--https", "address.https", f.HTTPS)
	src.Add("--internal", "address.internal", f.Internal)
	src.Add("--admin", "address.admin", f.Admin)
	src.Add("--id", "id", f.ID)
	src.Add("--datacenter", "datacenter", f.Datacenter)
	src.AddList("--upstream", "upstream.pool", f.Upstream)
	src.AddList("--center", "upstream.centers", f.Center)
	src.AddList("--router", "router.servers", f.Router)
	if len(f.Peer) > 0 {
		text, err := peerMap(f.Peer)
		if err != nil {
			return src, err
		}
		src.Add("--peer", "upstream.peers", &text)
	}
	return src, src.AddCommon(&f.Flags)
}

// peerMap makes YAML's short form of a map from ID=URL.
func peerMap(items []string) (string, error) {
	parts := make([]string, 0, len(items))
	for _, item := range items {
		id, url, ok := strings.Cut(item, "=")
		if !ok {
			return "", fmt.Errorf("--peer: %q must be ID=URL, such as edge-2=http://10.0.0.2:8080", item)
		}
		parts = append(parts, fmt.Sprintf("%q: %q", id, url))
	}
	return "{" + strings.Join(parts, ", ") + "}", nil
}

// program is the node from its arguments to its exit code.
func program(args, environ []string, sigs run.Signals, stdout, stderr io.Writer) int {
	var f flags
	if code, ok := run.Parse("node", "Takes live streams in over RTMP and serves them over HTTP-FLV.", version, &f, args, stdout, stderr); !ok {
		return code
	}
	src, err := f.sources(environ)
	if err != nil {
		return run.Refuse("node", stderr, err)
	}
	loaded, err := config.Load(config.DefaultNode(), src)
	if err != nil {
		return run.Refuse("node", stderr, err)
	}
	if f.CheckConfig {
		err := check(loaded)
		if err == nil {
			_, _, err = fitDescriptors(loaded, run.RaiseDescriptors(slog.New(slog.DiscardHandler)))
		}
		return run.Checked("node", src.File, "the configuration is good", err, stdout, stderr)
	}
	return run.Start(loaded.Config.Log.Level, loaded.Config.Log.Format, stderr, sigs, func(out run.Output) (run.Program, error) {
		return build(loaded, src, out)
	})
}
