package admin

import (
	"cmp"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"millrace/internal/stream"
)

// Figure is one number of a component, for /metrics.
type Figure struct {
	Name    string // millrace_<package>_<what>_<unit>
	Help    string
	Counter bool     // it only grows; its name ends in _total
	Labels  []string // name, value, name, value, …
	Value   float64
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

// collector reads the node at each scrape. It keeps nothing.
type collector struct{ s *Server }

// Describe sends nothing: what there is depends on the components of the node.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect reads the live figures.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	send := func(kind prometheus.ValueType, name, help string, v float64, labels ...string) {
		var names, values []string
		for i := 0; i < len(labels); i += 2 {
			names, values = append(names, labels[i]), append(values, labels[i+1])
		}
		m, err := prometheus.NewConstMetric(prometheus.NewDesc(name, help, names, nil), kind, v, values...)
		if err != nil {
			m = prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
		}
		ch <- m
	}
	gauge := func(name, help string, v float64, labels ...string) {
		send(prometheus.GaugeValue, name, help, v, labels...)
	}
	counter := func(name, help string, v uint64, labels ...string) {
		send(prometheus.CounterValue, name, help, float64(v), labels...)
	}
	c.node(gauge)
	c.sessions(gauge, counter)
	c.streams(gauge, counter)
	if c.s.node.Figures == nil {
		return
	}
	for _, f := range c.s.node.Figures() {
		kind := prometheus.GaugeValue
		if f.Counter {
			kind = prometheus.CounterValue
		}
		send(kind, f.Name, f.Help, f.Value, f.Labels...)
	}
}

type (
	gaugeFunc   = func(name, help string, v float64, labels ...string)
	counterFunc = func(name, help string, v uint64, labels ...string)
)

func (c *collector) node(gauge gaugeFunc) {
	n := c.s.node
	gauge("millrace_node_info", "What runs here; always 1.", 1, "version", n.Version, "revision", n.Revision, "role", n.Role)
	gauge("millrace_node_draining", "1 while the node is on its way out.", boolFloat(n.Draining()))
	gauge("millrace_node_uptime_seconds", "Time since the start.", time.Since(n.Started).Seconds())
}

func boolFloat(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (c *collector) sessions(gauge gaugeFunc, counter counterFunc) {
	t := c.s.node.Table
	for _, n := range t.Counts() {
		l := []string{"protocol", n.Protocol.String(), "action", n.Action.String()}
		gauge("millrace_session_open", "Connections that publish or play now.", float64(n.Open), l...)
		counter("millrace_session_opened_total", "Connections that began to publish or play.", n.Opened, l...)
		counter("millrace_session_media_bytes_total", "Media bytes taken in or given to sockets.", n.Bytes, l...)
		for r, v := range n.Ended {
			counter("millrace_session_ended_total", "Connections that ended, by reason.", v, append(l, "reason", r.String())...)
		}
	}
	for p, reasons := range t.Refusals() {
		for r, v := range reasons {
			counter("millrace_session_refused_total", "Peers turned away before they published or played, by reason.", v,
				"protocol", p.String(), "reason", r.String())
		}
	}
	for r, v := range t.Skips() {
		counter("millrace_session_skipped_tags_total", "Tags that slow players did not get, by reason.", v, "reason", r.String())
	}
}

// row is one stream with the figures that it is ranked by.
type row struct {
	stats   stream.Stats
	viewers int
}

func (c *collector) streams(gauge gaugeFunc, counter counterFunc) {
	now := time.Now()
	all := c.s.node.Hub.Streams()
	plays, _ := audiences(c.s.node.Table.List())
	states := map[stream.State]int{stream.Idle: 0, stream.Live: 0, stream.Grace: 0}
	rows := make([]row, len(all))
	for i, st := range all {
		rows[i] = row{c.s.node.Hub.Stats(st, now), plays[string(st.Name())].viewers}
		states[rows[i].stats.State]++
	}
	for st, n := range states {
		gauge("millrace_stream_streams", "Streams that the node has, by state.", float64(n), "state", st.String())
	}
	limit := c.s.cfg.Load().MetricStreams
	gauge("millrace_stream_unlisted_streams", "Streams without metrics of their own: those beyond admin.metric_streams.", float64(max(0, len(rows)-limit)))
	seen := map[string]bool{}
	for _, r := range top(rows, limit) {
		label := labelValue(string(r.stats.Name))
		if seen[label] {
			continue
		}
		seen[label] = true
		l := []string{"stream", label}
		gauge("millrace_stream_viewers", "Players of the stream now.", float64(r.viewers), l...)
		gauge("millrace_stream_live", "1 while somebody publishes the stream.", boolFloat(r.stats.State == stream.Live), l...)
		gauge("millrace_stream_bitrate_bits_per_second", "What the publisher sends.", float64(r.stats.Bitrate), l...)
		gauge("millrace_stream_frame_rate_hertz", "Pictures per second of media time over the newest whole GOP.", r.stats.FPS, l...)
		gauge("millrace_stream_gop_seconds", "Length of the newest whole GOP.", r.stats.GOP.Seconds(), l...)
		gauge("millrace_stream_silent_seconds", "Time since the publisher's newest tag.", r.stats.Silent.Seconds(), l...)
		gauge("millrace_stream_log_bytes", "What the log of the stream holds.", float64(r.stats.LogBytes), l...)
		counter("millrace_stream_in_bytes_total", "Taken in; begins anew with each publish.", r.stats.BytesIn, l...)
		for reason, n := range r.stats.Drops {
			counter("millrace_stream_dropped_tags_total", "Tags of publishers that were dropped or repaired, by reason.", n, append(l, "reason", reason.String())...)
		}
	}
}

// top returns the limit rows with the most viewers, then the highest bitrate.
func top(rows []row, limit int) []row {
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.viewers, a.viewers), cmp.Compare(b.stats.Bitrate, a.stats.Bitrate), cmp.Compare(a.stats.Name, b.stats.Name))
	})
	return rows[:min(limit, len(rows))]
}

// labelValue makes a name fit to be a label: Prometheus refuses the whole scrape
// for a label that is not UTF-8.
func labelValue(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strconv.QuoteToASCII(s)
}
