package fleet

import (
	"time"

	"millrace/internal/stream"
)

// Streams is an answer to a search.
type Streams struct {
	Total   int         `json:"total"`   // that there are
	Matched int         `json:"matched"` // of them, by the query
	Streams []StreamRow `json:"streams"` // the most viewed first
}

// StreamRow sums up a stream.
type StreamRow struct {
	Name    stream.Name `json:"name"`
	Source  string      `json:"source"`           // the node where others find it; empty: nobody knows
	Ingest  string      `json:"ingest,omitempty"` // the node where its encoder is, if that pushes it to the source
	Epoch   int64       `json:"epoch"`
	Since   time.Time   `json:"since,omitzero"` // of the publish, by its epoch
	Bitrate int64       `json:"bitrate"`        // bytes/s
	Viewers int         `json:"viewers"`
	Nodes   int         `json:"nodes"`  // that carry it
	Copies  int         `json:"copies"` // links that carry it
}

// Stream is the tree of a stream.
type Stream struct {
	StreamRow
	Known   bool         `json:"known"`
	Crosses int          `json:"crosses"` // copies between regions or ISPs
	Deepest int          `json:"deepest"` // hops from where its encoder is
	Tree    []StreamNode `json:"tree"`    // by hops and id
	Events  []Event      `json:"events"`  // of the stream, the newest first
}

// StreamNode is a node that carries a stream.
type StreamNode struct {
	Node       string    `json:"node"`
	Role       string    `json:"role"`
	Datacenter string    `json:"datacenter"`
	Region     string    `json:"region"`
	State      NodeState `json:"state"`
	Upstream   string    `json:"upstream"` // that it pulls it from, or that pushes it there; empty: an encoder, or not known
	Source     bool      `json:"source"`
	Ingest     bool      `json:"ingest,omitempty"` // its encoder is here, and the node pushes it on
	Hops       int       `json:"hops"`             // from where its encoder is; -1: it does not hang on that
	HopDelay   float64   `json:"hop_delay"`        // ms that media take over the last hop, as the node measured it; 0 of a push
	Delay      float64   `json:"delay"`            // ms of all hops, pushes left out
	Viewers    int       `json:"viewers"`
	Downstream int       `json:"downstream"` // nodes that pull it from here
	Bitrate    int64     `json:"bitrate"`    // bytes/s
	Cost       float64   `json:"cost"`       // ms of the link, for its quality
	Grade      Grade     `json:"grade"`      // of the link
	Crosses    bool      `json:"crosses"`
	Play       string    `json:"play,omitempty"` // URL to play it from, of an edge
}
