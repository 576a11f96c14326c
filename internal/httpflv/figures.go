package httpflv

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/session"
	"millrace/internal/stream"
)

// Where a node says that it lives.
const (
	// healthPath is for everybody: load balancers, schedulers, and whoever wants to know
	// whether to connect. It says nothing that is not for everybody.
	healthPath = "/healthz"
	// probePath is for nodes and schedulers, which sign what they ask (RFC 8615:
	// well-known URIs).
	probePath = "/.well-known/millrace"
	// streamsParam of value 0 leaves the names of streams out of the answer of probePath.
	streamsParam = "streams"
)

// Bounds of what a node says of itself. A scheduler asks every few seconds.
const (
	maxStreams = 10_000
	maxNames   = maxFigures - 4<<10 // bytes of their names
	maxFigures = 1 << 20            // bytes of the answer
)

// figuresFor is for how long an answer is used again, so that many schedulers cost no
// more than one.
const figuresFor = time.Second

// Figures are what a node says of itself at /.well-known/millrace. Whether it takes
// viewers is for everybody, all else for who holds a key of the cluster.
type Figures struct {
	Node     string `json:"node"`
	Draining bool   `json:"draining"` // it shuts down
	Full     bool   `json:"full"`     // it has as many viewers as it may, or nearly

	Load     int64  `json:"load"`                 // bytes/s to viewers and nodes, over some seconds
	Capacity int64  `json:"capacity,omitempty"`   // bytes/s that it can send, where it was told
	Over     int64  `json:"over_since,omitempty"` // since when it is over its bound in its datacenter, Unix milliseconds
	Viewers  int    `json:"viewers"`              // over HTTP, those that wait for a stream too
	Refused  uint64 `json:"refused"`              // connections and requests since the start, see refusedOf
	Carried  int    `json:"carried"`              // how many streams are live here
	// Streams are the names of those, sorted: not all if there are very many.
	Streams []stream.Name `json:"streams,omitempty"`
}

// figuresCache keeps the answers of probePath.
type figuresCache struct {
	// Guarded by mu, which is held while an answer is made: who asks meanwhile gets it too.
	mu  sync.Mutex
	all [2]struct { // without names, and with
		until time.Time
		of    Figures
		text  []byte
	}
}

// figures returns the answer of probePath. It must not be changed.
func (s *Server) figures(now time.Time, names bool) []byte {
	self := s.standing()
	if !s.self.Cluster.Enabled() {
		return encode(self) // whoever asks has proven nothing
	}
	c := &s.told
	c.mu.Lock()
	defer c.mu.Unlock()
	i := 0
	if names {
		i = 1
	}
	a := &c.all[i]
	if a.text != nil && now.Before(a.until) && a.of.Draining == self.Draining && a.of.Full == self.Full {
		return a.text
	}
	a.until, a.of = now.Add(figuresFor), s.Figures(names)
	a.text = encode(a.of)
	return a.text
}

// Figures returns what the node says of itself to who may know all, with the names of
// its streams or without.
func (s *Server) Figures(names bool) Figures {
	f := s.standing()
	f.Load = int64(s.fan.Load())
	f.Over = s.over()
	f.Capacity, f.Viewers, f.Refused = s.self.Capacity, int(s.fan.admitted.Load()), s.refusedOf()
	f.Carried, f.Streams = carried(s.hub, names)
	return f
}

// standing is what everybody may know.
func (s *Server) standing() Figures {
	return Figures{Node: s.self.ID, Draining: s.draining.Load(), Full: s.fan.crowded()}
}

func encode(f Figures) []byte {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	_ = e.Encode(f) // plain fields: it cannot fail
	return text.Bytes()
}

// carried returns how many streams are live, and their names as far as there is room.
func carried(hub *stream.Hub, names bool) (count int, out []stream.Name) {
	room := maxNames
	for _, s := range hub.Streams() {
		if s.State() == stream.Idle {
			continue
		}
		count++
		// Quotation marks and the line separator of Unicode take twice their length.
		if size := 2*len(s.Name()) + 3; names && len(out) < maxStreams && size <= room {
			out, room = append(out, s.Name()), room-size
		}
	}
	return count, out
}

// refusedOf returns how many connections and requests were refused for reasons that
// lie with those who came. That a stream is missing, or that this node is full or
// leaves, is no attack, however many are told so.
func (s *Server) refusedOf() uint64 {
	var n uint64
	if s.self.Refused != nil {
		n = s.self.Refused()
	}
	for _, byReason := range s.table.Refusals() {
		for r, count := range byReason {
			switch r {
			case session.Elsewhere, session.Draining, session.OverLimit, session.OverBound, session.NotFound, session.NoKeyframe,
				session.UpstreamLost, session.Loop, session.PeerClosed, session.StreamEnded, session.Internal:
			default:
				n += count
			}
		}
	}
	return n
}

// answerHealth says whether new viewers are welcome.
func (s *Server) answerHealth(ctx *fasthttp.RequestCtx) {
	cors := s.settings.Load().cors(string(ctx.Request.Header.Peek("Origin")))
	switch {
	case ctx.IsOptions():
		preflight(ctx, cors, readOnly)
	case !ctx.IsGet() && !ctx.IsHead():
		r := notAllowed
		r.text = "this can be read with GET only"
		s.refuse(ctx, r, cors)
	case s.draining.Load():
		r := draining
		r.text = r.reason.String()
		s.refuse(ctx, r, cors)
	case s.fan.crowded():
		r := overLimit
		r.text = r.reason.String()
		s.refuse(ctx, r, cors)
	default:
		s.refuse(ctx, refusal{status: fasthttp.StatusOK, text: "ok"}, cors)
	}
}

// answerProbe tells another node, or a scheduler, how this one does.
func (s *Server) answerProbe(ctx *fasthttp.RequestCtx) {
	now := time.Now()
	marks, marked, err := ParseMarks("", ctx.Request.Header.PeekAll)
	if err == nil && !marked {
		err = badMarks("this is for other nodes: %s is missing", purposeField)
	}
	if err == nil {
		err = s.self.Cluster.Verify(now, marks.Mark, marks.Signature)
	}
	if err != nil {
		r := denied(err)
		s.refused(s.settings.Load().infoOf(ctx, now), r.reason, r.text)
		s.refuse(ctx, *r, "")
		return
	}
	names := string(ctx.QueryArgs().Peek(streamsParam)) != "0"
	ctx.SetContentType("application/json")
	ctx.Response.Header.Set("Cache-Control", "no-store")
	ctx.SetBody(s.figures(now, names))
}
