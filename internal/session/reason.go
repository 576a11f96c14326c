package session

import "fmt"

// Reason says why a connection ended, a peer was refused, or tags were skipped.
// Its word is the same in logs, metrics, the API and tests.
type Reason uint8

// Reasons of an end.
const (
	None         Reason = iota
	PeerClosed          // the peer closed or reset the connection
	Unpublished         // the publisher said that it is done
	Displaced           // another connection with the same key or address took the stream over
	Kicked              // an operator ended it
	Draining            // this node is shutting down
	StreamEnded         // the stream is over, its grace time too
	Stalled             // a player took nothing for the stall time
	Idle                // a publisher sent nothing for the idle time
	TokenExpired        // the signed URL ended in mid-play, as configured
	WriteFailed         // the socket refused a write for another reason
	Internal            // a fault of ours; the log has more
	UpstreamLost        // the upstream is gone, and no other one has the stream

	// Refusals.
	NotFound     // no such stream, or it did not appear in the waiting time
	NoKeyframe   // the stream is live, but showed nothing to begin with in the waiting time
	Unauthorized // no key or token, or a wrong one
	Expired      // the key or token is over
	Forbidden    // the address or the referer is not allowed
	Busy         // another publisher has the stream
	BadName      // the name of the stream is not usable
	OverLimit    // the node is at a configured limit
	AddressLimit // too many connections from this address
	Storm        // too many refused attempts from this address
	BadRequest   // the request makes no sense
	Elsewhere    // another edge suits the player better, and it was told which

	// Refusals between nodes.
	Unsigned     // no signature, where the cluster has a key
	BadSignature // a signature by no key of the cluster, or of something else
	ClockSkew    // signed at a time too far from this node's clock
	Loop         // the request has passed this node before
	TooManyHops  // the request has passed too many nodes
	OverBound    // the node sends more than its share: another one of its datacenter has the stream

	// Faults of a protocol.
	HandshakeFailed  // garbage instead of a handshake
	HandshakeTimeout // the handshake was not done in time
	CommandTimeout   // no publish or play in time
	ProtocolError    // bytes that the protocol does not allow
	MessageTooBig    // one message is over the limit
	PartialTooBig    // unfinished messages are over the limit together
	TooManyChunks    // too many chunk streams
	BadCommand       // a command that fails validation
	BadProxyHeader   // no valid PROXY header from a trusted proxy

	// Skips and drops of tags.
	SlowTime       // the player was further behind than the time limit
	SlowBytes      // the player was further behind than the byte limit
	OffLog         // the player's next tag had left the log
	NotPublishing  // media before the publish was accepted
	BeforeKeyframe // a picture that needs one the publisher has not sent
	BadTag         // a tag too short to mean anything
	ClockRepaired  // a time that went back a little was held
	ClockJump      // a time that jumped was joined to the clock

	reasons // how many there are
)

var reasonWords = [reasons]string{
	None: "none", PeerClosed: "peer_closed", Unpublished: "unpublished", Displaced: "displaced",
	Kicked: "kicked", Draining: "draining", StreamEnded: "stream_ended", Stalled: "stalled",
	Idle: "idle", TokenExpired: "token_expired", WriteFailed: "write_failed", Internal: "internal",
	UpstreamLost: "upstream_lost",

	NotFound: "not_found", NoKeyframe: "no_keyframe", Unauthorized: "unauthorized", Expired: "expired", Forbidden: "forbidden",
	Busy: "busy", BadName: "bad_name", OverLimit: "over_limit", AddressLimit: "address_limit",
	Storm: "refusal_storm", BadRequest: "bad_request", Elsewhere: "elsewhere",

	Unsigned: "unsigned", BadSignature: "bad_signature", ClockSkew: "clock_skew", Loop: "loop",
	TooManyHops: "too_many_hops", OverBound: "over_bound",

	HandshakeFailed: "handshake_failed", HandshakeTimeout: "handshake_timeout",
	CommandTimeout: "command_timeout", ProtocolError: "protocol_error", MessageTooBig: "message_too_big",
	PartialTooBig: "partial_too_big", TooManyChunks: "too_many_chunk_streams", BadCommand: "bad_command",
	BadProxyHeader: "bad_proxy_header",

	SlowTime: "slow_time", SlowBytes: "slow_bytes", OffLog: "off_log", NotPublishing: "not_publishing",
	BeforeKeyframe: "before_keyframe",
	BadTag:         "bad_tag", ClockRepaired: "clock_repaired", ClockJump: "clock_jump",
}

// String returns the word of r.
func (r Reason) String() string {
	if r >= reasons {
		return fmt.Sprintf("reason(%d)", uint8(r))
	}
	return reasonWords[r]
}

// MarshalText returns the word of r, for JSON.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Reasons returns every reason, for documentation and metrics.
func Reasons() []Reason {
	out := make([]Reason, reasons)
	for i := range out {
		out[i] = Reason(i)
	}
	return out
}
