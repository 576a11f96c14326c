package admin

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"millrace/internal/session"
)

// scrape returns our metrics by "name{label=value,…}".
func (b *bench) scrape() map[string]float64 {
	b.t.Helper()
	status, body := b.ask("GET", "/metrics")
	if status != 200 {
		b.t.Fatalf("%d %s", status, body)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		b.t.Fatalf("%v in\n%s", err, body)
	}
	out := map[string]float64{}
	for name, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			key := name + "{" + strings.Join(labels, ",") + "}"
			if _, dup := out[key]; dup {
				b.t.Errorf("%s is there twice", key)
			}
			out[key] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return out
}

func (b *bench) want(got map[string]float64, want map[string]float64) {
	b.t.Helper()
	for k, v := range want {
		if g, ok := got[k]; !ok || g != v {
			b.t.Errorf("%s = %v (there: %v), want %v", k, g, ok, v)
		}
	}
}

func TestMetrics(t *testing.T) {
	b := start(t, DefaultNodeConfig())
	b.publish("live/a")
	v1 := b.open(session.Play, "live/a", nil)
	b.open(session.Play, "live/a", nil)
	v1.Bytes.Add(100)
	v1.Skip(3, session.SlowBytes)
	b.table.Refuse(session.RTMP, session.HandshakeFailed)

	b.want(b.scrape(), map[string]float64{
		"millrace_node_info{revision=abc,role=center,version=1.2.3}":            1,
		"millrace_node_draining{}":                                              0,
		"millrace_session_open{action=play,protocol=http-flv}":                  2,
		"millrace_session_open{action=publish,protocol=rtmp}":                   1,
		"millrace_session_open{action=play,protocol=rtmp}":                      0,
		"millrace_session_opened_total{action=play,protocol=http-flv}":          2,
		"millrace_session_media_bytes_total{action=play,protocol=http-flv}":     100,
		"millrace_session_skipped_tags_total{reason=slow_bytes}":                3,
		"millrace_session_refused_total{protocol=rtmp,reason=handshake_failed}": 1,
		"millrace_stream_streams{state=live}":                                   1,
		"millrace_stream_streams{state=grace}":                                  0,
		"millrace_stream_unlisted_streams{}":                                    0,
		"millrace_stream_viewers{stream=live/a}":                                2,
		"millrace_stream_live{stream=live/a}":                                   1,
		"millrace_stream_frame_rate_hertz{stream=live/a}":                       25,
		"millrace_stream_gop_seconds{stream=live/a}":                            1.2,
		"millrace_test_things_total{kind=odd}":                                  7,
		"millrace_test_level{}":                                                 1,
	})

	for series := range b.scrape() {
		if strings.Contains(series, "action=publish") && !strings.Contains(series, "protocol=rtmp") {
			t.Errorf("%s: nobody publishes so", series)
		}
	}

	// The gauges follow the sessions: they cannot stick.
	v1.Close(session.PeerClosed)
	got := b.scrape()
	b.want(got, map[string]float64{
		"millrace_session_open{action=play,protocol=http-flv}":                           1,
		"millrace_session_ended_total{action=play,protocol=http-flv,reason=peer_closed}": 1,
		"millrace_session_media_bytes_total{action=play,protocol=http-flv}":              100,
		"millrace_stream_viewers{stream=live/a}":                                         1,
	})
	if got["go_goroutines{}"] == 0 || got["process_open_fds{}"] == 0 {
		t.Error("the figures of the process are missing")
	}
	form := regexp.MustCompile(`^(go|process|promhttp|millrace_[a-z]+)_[a-z0-9_]+\{`)
	for name := range got {
		if !form.MatchString(name) {
			t.Errorf("%s is not named millrace_<package>_<what>_<unit>", name)
		}
	}
}

func TestMetricsOfManyStreamsAreBounded(t *testing.T) {
	cfg := DefaultNodeConfig()
	cfg.MetricStreams = 3
	b := start(t, cfg)
	for i := range 10 {
		b.publish(fmt.Sprintf("live/%d", i))
	}
	for range 2 {
		b.open(session.Play, "live/7", nil)
	}
	b.open(session.Play, "live/4", nil)
	got := b.scrape()
	b.want(got, map[string]float64{
		"millrace_stream_viewers{stream=live/7}": 2,
		"millrace_stream_viewers{stream=live/4}": 1,
		"millrace_stream_unlisted_streams{}":     7,
		"millrace_stream_streams{state=live}":    10,
	})
	n := 0
	for name := range got {
		if strings.HasPrefix(name, "millrace_stream_viewers{") {
			n++
		}
	}
	if n != 3 {
		t.Errorf("%d streams have metrics, want 3", n)
	}
}

// TestMetricsWithOddNames has names that would break the text format, were they
// not escaped, and one that is no text at all.
func TestMetricsWithOddNames(t *testing.T) {
	b := start(t, DefaultNodeConfig())
	names := []string{`live/"quoted"`, `live/a,b="c"}`, "live/back`tick", "live/ünïcode", "live/\xff\xfe", "live/\xff\xfe\xfd"}
	for _, n := range names {
		b.publish(n)
	}
	got := b.scrape()
	n := 0
	for k := range got {
		if strings.HasPrefix(k, "millrace_stream_live{") {
			n++
		}
	}
	if n != len(names) {
		t.Errorf("%d of %d streams have metrics", n, len(names))
	}
	if _, ok := got[`millrace_stream_live{stream=live/"quoted"}`]; !ok {
		t.Error("a name with quotes does not read back")
	}
}

func TestSilenceShows(t *testing.T) {
	b := start(t, DefaultNodeConfig())
	_, p := b.publish("live/a")
	p.Close(time.Now())
	b.want(b.scrape(), map[string]float64{"millrace_stream_live{stream=live/a}": 0, "millrace_stream_streams{state=grace}": 1})
}
