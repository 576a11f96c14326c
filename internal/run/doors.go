package run

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"time"

	"millrace/internal/listen"
)

// certificateEvery is how often the files of the certificate are looked at.
const certificateEvery = time.Minute

// Doors are the listeners of a program. They are opened while it is built, by one
// goroutine; after that the methods may be called from any.
type Doors struct {
	// Fixed at construction.
	cfg    listen.Config
	budget *listen.Budget // of all but the operators' listener; nil is no bound
	cert   *listen.Certificate
	log    *slog.Logger

	// Fixed when the program is built.
	opened []Opened
	guards []guard
}

// guard is a listener for which the limits of the settings are.
type guard struct {
	scheme   string
	listener *listen.Listener
}

// NewDoors returns Doors that are all closed. budget may be nil. So may cert, unless an
// address is opened that speaks TLS.
func NewDoors(cfg listen.Config, budget *listen.Budget, cert *listen.Certificate, log *slog.Logger) *Doors {
	return &Doors{cfg: cfg, budget: budget, cert: cert, log: log}
}

// Open listens at addr for connections of scheme, within the limits of the settings;
// those of rtmps and https speak TLS.
func (d *Doors) Open(scheme, addr string) (net.Listener, error) {
	ln, err := d.listen(scheme, addr)
	if err != nil {
		return nil, err
	}
	guarded, err := listen.New(d.cfg, ln, d.log)
	if err != nil {
		return nil, err
	}
	guarded.Share(d.budget)
	d.guards = append(d.guards, guard{scheme, guarded})
	if scheme == "rtmps" || scheme == "https" {
		return tls.NewListener(guarded, d.cert.Config()), nil
	}
	return guarded, nil
}

// OpenAdmin listens at addr for operators, who have limits of their own and a descriptor
// in reserve.
func (d *Doors) OpenAdmin(addr string) (net.Listener, error) {
	ln, err := d.listen("admin", addr)
	if err != nil {
		return nil, err
	}
	own := listen.DefaultConfig()
	own.MaxConnections = AdminConnections
	return listen.New(own, NewReserve(ln), d.log)
}

func (d *Doors) listen(scheme, addr string) (net.Listener, error) {
	ln, err := Listen(scheme, addr)
	if err != nil {
		return nil, err
	}
	d.Add(Opened{Scheme: scheme, Addr: ln.Addr(), Close: ln.Close})
	return ln, nil
}

// Add adds what was opened in another way.
func (d *Doors) Add(o Opened) { d.opened = append(d.opened, o) }

// Opened returns all that are open, in the order in which they were opened.
func (d *Doors) Opened() []Opened { return d.opened }

// Addr returns where the first listener of a scheme is, nil without one.
func (d *Doors) Addr(scheme string) net.Addr {
	for _, o := range d.opened {
		if o.Scheme == scheme {
			return o.Addr
		}
	}
	return nil
}

// Tell logs what listens where. "listening" with scheme and addr is what scripts wait
// for.
func (d *Doors) Tell() {
	for _, o := range d.opened {
		d.log.Info("listening", "scheme", o.Scheme, "addr", o.Addr.String())
	}
}

// Certificate returns the certificate, nil without one.
func (d *Doors) Certificate() *listen.Certificate { return d.cert }

// WatchCertificate puts the certificate in force anew whenever its files change, until
// ctx ends.
func (d *Doors) WatchCertificate(ctx context.Context) error {
	return d.cert.Run(ctx, certificateEvery, d.log)
}

// Reload puts cfg in force for the connections that come from now on, and reads the
// certificate again.
func (d *Doors) Reload(cfg listen.Config) error {
	var errs []error
	for _, g := range d.guards {
		errs = append(errs, g.listener.SetConfig(cfg))
	}
	if d.cert != nil {
		errs = append(errs, d.cert.Reload())
	}
	return errors.Join(errs...)
}

// DoorStats are the figures of the listener of a scheme.
type DoorStats struct {
	Scheme string
	listen.Stats
}

// Stats returns the figures of all listeners for which the limits of the settings are.
func (d *Doors) Stats() []DoorStats {
	out := make([]DoorStats, len(d.guards))
	for i, g := range d.guards {
		out[i] = DoorStats{g.scheme, g.listener.Stats()}
	}
	return out
}

// Close closes all listeners of a program that will not run.
func (d *Doors) Close() {
	for _, o := range d.opened {
		_ = o.Close()
	}
}
