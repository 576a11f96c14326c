package auth

import (
	"strconv"
	"strings"

	"millrace/internal/session"
	"millrace/internal/stream"
)

// The parameters of a push, in the query of its stream key.
const (
	pushVia   = "millrace_via"
	pushOwner = "millrace_owner"
	pushEpoch = "millrace_epoch"
	pushSign  = "millrace_sign"
)

// PushQuery returns the query of a stream key with which a node pushes what m says.
// The ids in m must be valid; so must the owner, which is a digest.
func PushQuery(m Mark, signature string) string {
	q := pushVia + "=" + strings.Join(m.Via, ",") + "&" + pushOwner + "=" + m.Owner +
		"&" + pushEpoch + "=" + strconv.FormatInt(m.Epoch, 10)
	if signature != "" {
		q += "&" + pushSign + "=" + signature
	}
	return q
}

// ParsePush reads what PushQuery made. ok is false if the query is not that of a
// node. The error is a [*Denied].
func ParsePush(n stream.Name, query string) (m Mark, signature string, ok bool, err error) {
	if len(query) > maxQuery {
		return Mark{}, "", false, nil
	}
	m = Mark{Stream: n, Purpose: Push}
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		switch name {
		case pushVia:
			m.Via = strings.SplitN(value, ",", MaxHops+2)
		case pushOwner:
			if m.Owner = value; !ValidNodeID(value) {
				return Mark{}, "", false, deny(session.BadRequest, pushOwner+" is not a digest")
			}
		case pushEpoch:
			if m.Epoch, err = strconv.ParseInt(value, 10, 64); err != nil || m.Epoch < 0 || m.Epoch > MaxEpoch {
				return Mark{}, "", false, deny(session.BadRequest, pushEpoch+" is not a number of milliseconds")
			}
		case pushSign:
			signature = value
		}
	}
	for _, id := range m.Via {
		if !ValidNodeID(id) {
			return Mark{}, "", false, deny(session.BadRequest, pushVia+" has a node without a usable id")
		}
	}
	if len(m.Via) == 0 {
		return Mark{}, "", false, nil
	}
	if m.Owner == "" {
		return Mark{}, "", false, deny(session.BadRequest, pushOwner+" is missing")
	}
	m.Node = m.Via[len(m.Via)-1]
	return m, signature, true, nil
}
