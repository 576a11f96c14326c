package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// askTime is how long a node may take to an answer about itself. A frozen one takes
// for ever.
const askTime = 700 * time.Millisecond

// answers is what one node says of itself.
type answers struct {
	streams []adminStream
	paths   map[string]adminPath // by stream
	events  []Event
}

// adminStream is the part of /v1/streams that is of use here.
type adminStream struct {
	Name      string    `json:"name"`
	State     string    `json:"state"`
	Publisher *struct{} `json:"publisher"`
	Bitrate   int64     `json:"bitrate_bps"`
	Viewers   int       `json:"viewers"`
	Nodes     int       `json:"nodes"`
	DTSms     int64     `json:"dts_ms"`
}

// adminPath is the part of /v1/streams/NAME/path that is of use here.
type adminPath struct {
	Hops []struct { // the nearest first
		Node  string        `json:"node"`
		Delay time.Duration `json:"delay_ns"`
	} `json:"hops"`
	Feeds []struct { // connections to upstreams
		Upstream string `json:"upstream"` // as configured
		Node     string `json:"node"`     // as it says itself
		Current  bool   `json:"current"`
		Tags     uint64 `json:"tags"`
	} `json:"feeds"`
}

// Event is one of /v1/events: a decision of a node about an upstream.
type Event struct {
	At      time.Time       `json:"at"`
	Node    string          `json:"node"` // that decided
	Stream  string          `json:"stream,omitempty"`
	Kind    string          `json:"kind"`
	From    string          `json:"from,omitempty"`
	To      string          `json:"to,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Detail  string          `json:"detail,omitempty"`
	Figures json.RawMessage `json:"figures,omitempty"`
}

// ask asks a node about itself.
func ask(ctx context.Context, admin string) (answers, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	base := "http://" + admin + "/v1/"
	out := answers{paths: map[string]adminPath{}}
	var streams struct {
		Streams []adminStream `json:"streams"`
	}
	if err := get(ctx, base+"streams?limit=1000", &streams); err != nil {
		return out, err
	}
	out.streams = streams.Streams
	for _, s := range out.streams {
		var path adminPath
		if err := get(ctx, base+"streams/"+s.Name+"/path", &path); err != nil {
			continue // it may have ended between the two questions
		}
		out.paths[s.Name] = path
	}
	var events struct {
		Events []Event `json:"events"`
	}
	if err := get(ctx, base+"events?limit=1000", &events); err != nil {
		return out, err
	}
	out.events = events.Events
	return out, nil
}

// get asks for a URL and decodes the answer into v, unless that is nil.
func get(ctx context.Context, url string, v any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	if v == nil {
		return nil
	}
	return json.NewDecoder(res.Body).Decode(v)
}
