package admin

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"millrace/internal/listen"
)

// Figure is one number of a component, for /metrics.
type Figure struct {
	Name    string // millrace_<package>_<what>_<unit>
	Help    string
	Counter bool     // it only grows; its name ends in _total
	Labels  []string // name, value, name, value, …
	Value   float64
}

// Figures are the numbers of one scrape.
type Figures []Figure

// Gauge adds a number that goes up and down. labels are name, value, name, value, ….
func (f *Figures) Gauge(name, help string, v float64, labels ...string) {
	*f = append(*f, Figure{Name: name, Help: help, Value: v, Labels: labels})
}

// Counter adds a number that only grows.
func (f *Figures) Counter(name, help string, v uint64, labels ...string) {
	*f = append(*f, Figure{Name: name, Help: help, Value: float64(v), Labels: labels, Counter: true})
}

// Sum adds an amount that only grows, such as seconds.
func (f *Figures) Sum(name, help string, v float64, labels ...string) {
	*f = append(*f, Figure{Name: name, Help: help, Value: v, Labels: labels, Counter: true})
}

// reason is an enumerated word.
type reason interface {
	~uint8
	String() string
}

// ByReason adds a counter for each reason that there is a count of, in the order of
// the reasons.
func ByReason[R reason](f *Figures, name, help string, counts map[R]uint64, labels ...string) {
	for _, r := range slices.Sorted(maps.Keys(counts)) {
		f.Counter(name, help, counts[r], append(slices.Clip(labels), "reason", r.String())...)
	}
}

// ByWord adds a counter for each word that there is a count of, in their order.
func ByWord(f *Figures, name, help, label string, counts map[string]uint64) {
	for _, w := range slices.Sorted(maps.Keys(counts)) {
		f.Counter(name, help, counts[w], label, w)
	}
}

// Listener adds the figures of the listener of a scheme.
func (f *Figures) Listener(scheme string, st listen.Stats) {
	f.Gauge("millrace_listen_connections", "Open connections by listener.", float64(st.Open), "listener", scheme)
	f.Counter("millrace_listen_accepted_total", "Connections handed to a server.", st.Accepted, "listener", scheme)
	f.Counter("millrace_listen_accept_errors_total", "Times that the system refused to accept.", st.AcceptErrors, "listener", scheme)
	ByReason(f, "millrace_listen_refused_total", "Connections closed before a server saw them.", st.Refused, "listener", scheme)
}

// metricsHandler returns the handler of /metrics, with a registry of its own so
// that two nodes can live in one process.
func (s *Server) metricsHandler() fasthttp.RequestHandler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&collector{s},
	)
	// A figure that cannot be told must not hide the others.
	return fasthttpadaptor.NewFastHTTPHandler(promhttp.HandlerFor(reg, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
}

// collector reads the program at each scrape. It keeps nothing.
type collector struct{ s *Server }

// Describe sends nothing: what there is depends on the components of the program.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect reads the live figures.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	p, f := &c.s.program, &Figures{}
	f.Gauge("millrace_"+p.Kind+"_info", "What runs here; always 1.", 1, "version", p.Version, "revision", p.Revision, "role", p.Role)
	f.Gauge("millrace_"+p.Kind+"_draining", "1 while the program is on its way out.", boolFloat(p.Draining()))
	f.Gauge("millrace_"+p.Kind+"_uptime_seconds", "Time since the start.", time.Since(p.Started).Seconds())
	p.API.Figures(f)
	if p.Figures != nil {
		*f = append(*f, p.Figures()...)
	}
	for _, x := range *f {
		ch <- metric(x)
	}
}

// metric returns x as Prometheus has it.
func metric(x Figure) prometheus.Metric {
	var names, values []string
	for i := 0; i < len(x.Labels); i += 2 {
		names, values = append(names, x.Labels[i]), append(values, x.Labels[i+1])
	}
	kind := prometheus.GaugeValue
	if x.Counter {
		kind = prometheus.CounterValue
	}
	m, err := prometheus.NewConstMetric(prometheus.NewDesc(x.Name, x.Help, names, nil), kind, x.Value, values...)
	if err != nil {
		return prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
	}
	return m
}

func boolFloat(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
