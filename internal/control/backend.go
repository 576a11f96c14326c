package control

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"time"

	"millrace/internal/stream"
)

// Backend is who knows the nodes: a Server reads what they say, checks it, and asks it.
// All methods are called from many goroutines at once, and must not block.
type Backend interface {
	// Heartbeat takes what a node says. h has been read, validated, and is of the node
	// that signed it; the backend may keep it. from is where it came from, the zero Addr
	// when that is no address. A Refusal other than NotRefused comes with an error whose
	// text tells the operator of the node what to do, and then nothing was taken.
	//
	// An Ack that says Resend means that the node lives, and that nothing else was taken:
	// all of it comes again. The server may double the Interval of the Ack while it has
	// much to do: a node is late only after that.
	Heartbeat(now time.Time, h *Heartbeat, from netip.Addr) (Ack, Refusal, error)
	// Refused is told of a heartbeat that was refused before the backend saw it. node is
	// who it claims to be from, "" if that is no id: where there is no key, or a wrong one,
	// anybody can claim that.
	Refused(now time.Time, node string, from netip.Addr, why Refusal, text string)
	// Orders returns what the node is to follow now, nil when there is nothing yet. It is
	// asked again after each [Server.OrdersChanged].
	Orders(node string) *OrdersPaper
	// Placeless says why there is nothing yet that players are placed by: NoSnapshot, or
	// LeftOut when the node that asks is an edge that cannot be offered to players, and what
	// to do, for its operator.
	Placeless(node string) (Refusal, string)
	// Path tells where the node should pull the stream from. Its answer always has a
	// reason, also when nobody knows the stream or the node.
	Path(node string, s stream.Name) Route
}

// OrdersPaper is orders as they are sent, once made and handed to whoever asks.
type OrdersPaper struct {
	payload *payload
}

// NewOrdersPaper writes o out. Its token stands for what o tells to do: two versions of
// a plan that tell a node the same have the same token.
func NewOrdersPaper(o *Orders) *OrdersPaper {
	still := *o
	still.Version = 0
	sum := sha256.Sum256(mustJSON(&still))
	return &OrdersPaper{newPayload(hex.EncodeToString(sum[:8]), bytesOf(mustJSON(o)))}
}

// Token stands for the content.
func (p *OrdersPaper) Token() string { return p.payload.token }

// mustJSON writes out what is made of text and finite numbers.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("control: " + err.Error())
	}
	return b
}

// Fleet lets f answer what nodes say and ask. Until then this server is none of theirs.
func (s *Server) Fleet(f Backend) { s.fleet.Store(&f) }

// OrdersChanged wakes those of the nodes that wait for orders.
func (s *Server) OrdersChanged(nodes []string) { s.orders.wake(nodes) }
