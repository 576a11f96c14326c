package main

import "millrace/internal/admin"

// figures are the metrics of the faces and their listeners, read at each scrape.
func (s *scheduler) figures() []admin.Figure {
	f := &admin.Figures{}
	s.dnsFigures(f)
	s.httpFigures(f)
	for _, l := range s.doors.Stats() {
		f.Listener(l.Scheme, l.Stats)
	}
	return *f
}

func (s *scheduler) dnsFigures(f *admin.Figures) {
	if s.dns == nil {
		return
	}
	st := s.dns.Stats()
	by := func(name, help, label string, counts map[string]uint64) { admin.ByWord(f, name, help, label, counts) }
	f.Counter("millrace_dns_messages_total", "Messages that came in.", st.UDP, "transport", "udp")
	f.Counter("millrace_dns_messages_total", "Messages that came in.", st.TCP, "transport", "tcp")
	by("millrace_dns_questions_total", "Questions by the type asked for.", "type", st.Types)
	by("millrace_dns_replies_total", "Replies by code.", "code", st.Codes)
	by("millrace_dns_client_subnets_total", "Questions by what became of the client subnet.", "use", st.ECS)
	by("millrace_dns_cookies_total", "Questions by what their cookie was worth.", "cookie", st.Cookies)
	by("millrace_dns_decisions_total", "Decisions for DNS by reason.", "reason", st.Reasons)
	by("millrace_dns_places_total", "Decisions for DNS by who knew the place of the client.", "source", st.Sources)
	by("millrace_dns_dropped_total", "Messages without a reply, by reason.", "reason", st.Dropped)
	f.Counter("millrace_dns_slipped_total", "Replies over the rate that were hints to ask over TCP.", st.Slipped)
	f.Counter("millrace_dns_truncated_total", "Replies that did not fit.", st.Truncated)
	f.Gauge("millrace_dns_connections", "Open connections over TCP.", float64(st.Connections))
	by("millrace_dns_ended_total", "Connections over TCP that ended or were refused, by reason.", "reason", st.Ended)
	f.Gauge("millrace_dns_zones", "Zones that are served.", float64(st.Zones))
	f.Gauge("millrace_dns_names", "Names in these zones.", float64(st.Names))
}

// httpFigures adds up the HTTP faces; over TLS or not makes no difference here.
func (s *scheduler) httpFigures(f *admin.Figures) {
	type key struct{ face, reason string }
	sum := map[key]uint64{}
	var order []key
	for _, h := range s.http {
		for _, c := range h.Stats() {
			k := key{c.Face, c.Reason}
			if _, known := sum[k]; !known {
				order = append(order, k)
			}
			sum[k] += c.Count
		}
	}
	for _, k := range order {
		f.Counter("millrace_http_requests_total", "Requests by face and by how they ended: the reason of the decision, or of the refusal.",
			sum[k], "face", k.face, "reason", k.reason)
	}
}
