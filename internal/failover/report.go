package failover

// Kind is how a connection was joined to what was forwarded before.
type Kind uint8

// The kinds of joint.
const (
	First    Kind = iota // there was nothing before
	Overlap              // both had the same frames: none is missing, none repeated
	Keyframe             // nothing in common: from a keyframe, on the same clock
	kinds                // how many there are
)

// String returns the word used in logs, metrics and the API.
func (k Kind) String() string {
	if k >= kinds {
		return "unknown"
	}
	return [kinds]string{"first", "overlap", "keyframe"}[k]
}

// MarshalText returns the word of k, for JSON.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Report says how the newest connection was joined.
type Report struct {
	Kind           Kind  `json:"kind"`
	Duplicates     int   `json:"duplicates"`      // tags dropped because they had been forwarded
	Late           int   `json:"late"`            // tags dropped because newer ones of their track had been forwarded
	Missing        int   `json:"missing"`         // frames that fell between the two connections; -1: unknown
	Offset         int64 `json:"offset_ms"`       // what is added to the connection's clock
	Run            int   `json:"run"`             // tags that agreed when the overlap was found
	HeadersChanged bool  `json:"headers_changed"` // sequence headers had to be sent again
	Settled        bool  `json:"settled"`         // all tracks are past what was forwarded before: the figures are final
}
