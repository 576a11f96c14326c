package admin

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/session"
	"millrace/internal/stream"
)

// Stream is one stream in the API.
type Stream struct {
	Name        string            `json:"name"`
	State       string            `json:"state"` // idle, live or grace
	Epoch       uint64            `json:"epoch"` // how many publishes there were
	Publisher   *Session          `json:"publisher,omitempty"`
	Since       time.Time         `json:"since,omitzero"` // begin of the newest publish
	SilentMS    int64             `json:"silent_ms"`      // since the publisher's newest tag
	Video       *Video            `json:"video,omitempty"`
	Audio       *Audio            `json:"audio,omitempty"`
	Bitrate     int64             `json:"bitrate_bps"`
	BytesIn     uint64            `json:"bytes_in"` // of the newest publish
	TagsIn      uint64            `json:"tags_in"`  // of the newest publish
	Viewers     int               `json:"viewers"`
	Nodes       int               `json:"nodes"`        // that read it here
	BytesOut    uint64            `json:"bytes_out"`    // to the viewers of now
	SkippedTags uint64            `json:"skipped_tags"` // by the viewers of now, too slow for them
	LogBytes    int64             `json:"log_bytes"`
	LogTags     uint64            `json:"log_tags"`
	DTSms       int64             `json:"dts_ms"` // newest time on the stream's clock
	Drops       map[string]uint64 `json:"drops"`  // tags of publishers, by reason
}

// Video is the picture track.
type Video struct {
	Codec   string  `json:"codec"`
	Profile string  `json:"profile,omitempty"` // left out while unknown, as level and size
	Level   string  `json:"level,omitempty"`
	Width   int     `json:"width,omitempty"`
	Height  int     `json:"height,omitempty"`
	FPS     float64 `json:"fps"`    // 0 before the first whole GOP
	GOPms   int64   `json:"gop_ms"` // the same
}

// Audio is the sound track.
type Audio struct {
	Codec      string `json:"codec"`
	Profile    string `json:"profile,omitempty"` // left out while unknown, as all below
	SampleRate int    `json:"sample_rate,omitempty"`
	Channels   int    `json:"channels,omitempty"`
}

// Streams is the answer of /v1/streams, sorted by name.
type Streams struct {
	Streams []Stream `json:"streams"`
	Total   int      `json:"total"`
	Next    string   `json:"next,omitempty"` // pass it as after for more
}

// audience is what the viewers of one stream add up to.
type audience struct {
	viewers, nodes int
	bytes, skipped uint64
}

// audiences adds up who plays what, and returns the publishers by session id.
func audiences(list []session.Snapshot) (map[string]audience, map[uint64]session.Snapshot) {
	plays, publishes := map[string]audience{}, map[uint64]session.Snapshot{}
	for _, snap := range list {
		if snap.Info.Action == session.Publish {
			publishes[snap.ID] = snap
			continue
		}
		a := plays[snap.Info.Stream]
		if snap.Info.Node == "" {
			a.viewers++
		} else {
			a.nodes++
		}
		a.bytes += snap.Bytes
		a.skipped += snap.Skipped
		plays[snap.Info.Stream] = a
	}
	return plays, publishes
}

func streamOf(st stream.Stats, a audience, publishes map[uint64]session.Snapshot, now time.Time) Stream {
	out := Stream{
		Name: string(st.Name), State: st.State.String(), Epoch: st.Epoch, Since: st.Since.UTC(),
		SilentMS: st.Silent.Milliseconds(), Bitrate: st.Bitrate, BytesIn: st.BytesIn, TagsIn: st.TagsIn,
		Viewers: a.viewers, Nodes: a.nodes, BytesOut: a.bytes, SkippedTags: a.skipped,
		LogBytes: st.LogBytes, LogTags: st.LogTags, DTSms: st.DTS.Milliseconds(), Drops: map[string]uint64{},
	}
	for r, n := range st.Drops {
		out.Drops[r.String()] = n
	}
	out.Video, out.Audio = videoOf(st), audioOf(st)
	if snap, ok := publishes[st.Publisher]; ok {
		by := sessionOf(snap, now)
		out.Publisher = &by
	}
	return out
}

func (n *Node) listStreams(ctx *fasthttp.RequestCtx) {
	limit, wrong := readLimit(ctx.QueryArgs())
	if wrong != "" {
		fail(ctx, fasthttp.StatusBadRequest, "bad_request", wrong)
		return
	}
	after, now := stream.Name(ctx.QueryArgs().Peek("after")), time.Now()
	all := n.hub.Streams()
	plays, publishes := audiences(n.table.List())
	out := Streams{Streams: []Stream{}, Total: len(all)}
	first, found := slices.BinarySearchFunc(all, after, func(st *stream.Stream, n stream.Name) int { return cmp.Compare(st.Name(), n) })
	if found && after != "" {
		first++
	}
	for _, st := range all[first:] {
		if len(out.Streams) == limit {
			out.Next = out.Streams[limit-1].Name
			break
		}
		out.Streams = append(out.Streams, streamOf(n.hub.Stats(st, now), plays[string(st.Name())], publishes, now))
	}
	answer(ctx, out)
}

// oneStream answers for a stream, or for APP/NAME/kick.
func (n *Node) oneStream(ctx *fasthttp.RequestCtx, path string) {
	if ctx.IsPost() {
		name, ok := strings.CutSuffix(path, "/kick")
		if !ok {
			fail(ctx, fasthttp.StatusNotFound, "not_found", "POST goes to /v1/streams/APP/NAME/kick")
			return
		}
		n.kickStream(ctx, name)
		return
	}
	if !ctx.IsGet() && !ctx.IsHead() {
		wrongMethod(ctx, "GET, POST")
		return
	}
	if name, ok := cutPath(path); ok {
		n.streamPath(ctx, stream.Name(name))
		return
	}
	st, ok := n.hub.Lookup(stream.Name(path))
	if !ok {
		fail(ctx, fasthttp.StatusNotFound, "not_found", "no such stream")
		return
	}
	now := time.Now()
	plays, publishes := audiences(n.table.List())
	answer(ctx, streamOf(n.hub.Stats(st, now), plays[path], publishes, now))
}

func (n *Node) kickStream(ctx *fasthttp.RequestCtx, name string) {
	who := string(ctx.QueryArgs().Peek("who"))
	var publisher, viewers bool
	switch who {
	case "publisher":
		publisher = true
	case "viewers":
		viewers = true
	case "all":
		publisher, viewers = true, true
	default:
		fail(ctx, fasthttp.StatusBadRequest, "bad_request", "who must be publisher, viewers or all")
		return
	}
	var kicked, matching int
	for _, snap := range n.table.List() {
		if snap.Info.Stream != name {
			continue
		}
		matching++
		pub := snap.Info.Action == session.Publish
		if (pub && publisher || !pub && viewers) && n.table.Kick(snap.ID, session.Kicked) {
			kicked++
		}
	}
	if _, ok := n.hub.Lookup(stream.Name(name)); !ok && matching == 0 {
		fail(ctx, fasthttp.StatusNotFound, "not_found", "no such stream")
		return
	}
	n.log.Info("stream kicked", "stream", name, "who", who, "sessions", kicked, "by", ctx.RemoteAddr().String(), "reason", session.Kicked.String())
	answer(ctx, Kicked{kicked})
}
