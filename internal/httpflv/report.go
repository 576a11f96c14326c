package httpflv

import (
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/quality"
)

// reportPath is where players say how they fare. Pages send that as they are closed,
// with sendBeacon, which can say neither what type it is nor read what comes back.
const reportPath = "/v1/report"

// takeReport takes in what a player says of itself.
func (s *Server) takeReport(ctx *fasthttp.RequestCtx) {
	st, now := s.settings.Load(), time.Now()
	origin := string(ctx.Request.Header.Peek("Origin"))
	cors := st.cors(origin)
	switch {
	case ctx.IsOptions():
		preflight(ctx, cors, "POST, OPTIONS")
		return
	case !ctx.IsPost():
		r := notAllowed
		r.header, r.text = "Allow: POST, OPTIONS\r\n", "reports of players are sent with POST"
		s.refuse(ctx, r, cors)
		return
	case !st.allowsOrigin(origin):
		r := badOrigin
		r.text = "this web page may not report here: add its origin to origins in the configuration"
		s.refuse(ctx, r, cors)
		return
	}
	peer := st.peer(ctx)
	report, err := s.self.Quality.Report(now, peer.Addr(), ctx.PostBody())
	if err != nil {
		s.refuse(ctx, unreported(err), cors)
		s.log.Debug("report refused", "peer", peer, "reason", string(ctx.Response.Header.Peek(reasonField)), "detail", err)
		return
	}
	s.log.Debug("player reports", "stream", report.Stream, "peer", peer, "play", report.Session, "first_frame", report.FirstFrame,
		"stalls", report.Stalls, "stalled", report.Stalled, "played", report.Played, "delay", report.Delay)
	ctx.SetStatusCode(fasthttp.StatusNoContent)
	ctx.Response.Header.Set("Cache-Control", "no-store")
	setLines(ctx, cors)
}

// unreported makes an answer of why a report was not taken.
func unreported(err error) refusal {
	r := refusal{status: fasthttp.StatusBadRequest, text: err.Error()}
	var why *quality.Refused
	if !errors.As(err, &why) {
		return r
	}
	r.header = reasonField + ": " + why.Reason.String() + crlf
	switch why.Reason {
	case quality.TooBig:
		r.status = fasthttp.StatusRequestEntityTooLarge
	case quality.TooMany:
		r.status = fasthttp.StatusTooManyRequests
		r.header += "Retry-After: 10\r\n"
	}
	return r
}
