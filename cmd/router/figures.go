package main

import "millrace/internal/admin"

// figures are the metrics of the listeners and of the console, read at each scrape.
func (r *router) figures() []admin.Figure {
	f := &admin.Figures{}
	for _, l := range r.doors.Stats() {
		f.Listener(l.Scheme, l.Stats)
	}
	st := r.console.Stats()
	f.Counter("millrace_console_answered_total", "Requests to the console that were granted.", st.Answered)
	f.Counter("millrace_console_logins_total", "Log-ins.", st.Logins)
	f.Counter("millrace_console_edits_total", "Edits of documents.", st.Edits)
	admin.ByWord(f, "millrace_console_refused_total", "Requests to the console that were refused.", "reason", st.Refused)
	f.Gauge("millrace_console_listeners", "Pages that follow live.", float64(st.Listeners))
	admin.ByWord(f, "millrace_console_left_total", "Pages that followed live and left, by why.", "reason", st.Left)
	return *f
}
