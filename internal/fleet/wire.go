package fleet

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"github.com/klauspost/compress/zstd"

	"millrace/internal/control"
	"millrace/internal/plan"
	"millrace/internal/store"
	"millrace/internal/stream"
)

// Kinds of what is kept in the store.
const (
	kindRouters    = "routers"    // entry of each router: that it is there
	kindNodes      = "nodes"      // entry of each router: the nodes that it hears, each second
	kindIdentities = "identities" // entry of each router: what they say of themselves
	kindStreams    = "streams"    // entries of each router: what they carry
	kindNews       = "news"       // entries of each router: samples, players and events of the last seconds
	kindPlan       = "plan"       // published
	kindBundle     = "bundle"     // published
	kindRoster     = "roster"     // published: all nodes that are known
)

// routerWire is what a router tells of itself.
type routerWire struct {
	ID      string    `json:"id"`
	Number  uint64    `json:"number"` // rises each time
	Started time.Time `json:"started"`
	Leader  bool      `json:"leader,omitempty"`
	Nodes   int       `json:"nodes"`
	Plan    uint64    `json:"plan"`
	Program string    `json:"program,omitempty"`
	URL     string    `json:"url,omitempty"`
}

// nodesWire are the nodes that a router hears.
type nodesWire struct {
	Nodes []nodeWire `json:"nodes"`
}

// nodeWire is a node in it. Keys are short: there are thousands, each second.
type nodeWire struct {
	ID       string     `json:"i"`
	Boot     string     `json:"b"`
	Started  time.Time  `json:"t"`
	Sequence uint64     `json:"s"`
	Silent   int64      `json:"a"` // ms since the last heartbeat
	From     netip.Addr `json:"f,omitzero"`
	Load     int64      `json:"l,omitempty"`
	Pulled   int64      `json:"p,omitempty"`
	Viewers  int        `json:"v,omitempty"`
	Refused  uint64     `json:"r,omitempty"`
	Draining bool       `json:"d,omitempty"`
	Full     bool       `json:"u,omitempty"`
	Orders   string     `json:"o,omitempty"`
}

// identitiesWire is what nodes say of themselves.
type identitiesWire struct {
	Nodes []control.Identity `json:"nodes"`
}

// streamsWire is what some of the nodes carry. Names stand once.
type streamsWire struct {
	Names []stream.Name `json:"names"`
	Nodes []carryWire   `json:"nodes"`
}

// carryWire is what one node carries.
type carryWire struct {
	ID      string     `json:"i"`
	Boot    string     `json:"b"`
	Changed uint64     `json:"c"` // sequence of the heartbeat that changed it last
	Items   []itemWire `json:"s"`
}

// itemWire is a stream that it carries.
type itemWire struct {
	Name    int     `json:"n"` // index
	Source  bool    `json:"o,omitempty"`
	Epoch   int64   `json:"e,omitempty"`
	From    string  `json:"f,omitempty"`
	Bitrate int64   `json:"b,omitempty"`
	Viewers int     `json:"v,omitempty"`
	Delay   float64 `json:"d,omitempty"`
}

// newsWire is what was new within a second.
type newsWire struct {
	Samples  []plan.Sample `json:"samples,omitempty"`
	Players  []groupTold   `json:"players,omitempty"`
	Events   []Event       `json:"events,omitempty"`
	Rechecks []recheckTold `json:"rechecks,omitempty"`
}

// recheckTold is what a node counts.
type recheckTold struct {
	Node   string              `json:"node"`
	Boot   string              `json:"boot"`
	Counts []control.Rechecked `json:"counts"`
}

// maxUnpacked bounds what an entry or a publication may become.
const maxUnpacked = 256 << 20

// packer turns values into bodies and back. It is safe from any goroutine.
type packer struct {
	out *zstd.Encoder
	in  *zstd.Decoder
}

func newPacker() (*packer, error) {
	out, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	in, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnpacked))
	if err != nil {
		return nil, err
	}
	return &packer{out, in}, nil
}

// pack returns v as it is kept in the store.
func (p *packer) pack(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	body := p.out.EncodeAll(b, nil)
	if len(body) > store.MaxBody {
		return nil, fmt.Errorf("%d bytes: %w", len(body), store.ErrTooBig)
	}
	return body, nil
}

// unpack fills v from what is kept in the store. Other programs wrote it: what it says
// is checked by whoever uses it.
func (p *packer) unpack(body []byte, v any) error {
	b, err := p.in.DecodeAll(body, nil)
	if err != nil {
		return fmt.Errorf("damaged: %w", err)
	}
	return json.Unmarshal(b, v)
}
