// Package control carries what placing works from between programs, and keeps it at
// work: a Source gives bundles, a Keeper compiles them and makes views, a Server tells
// others.
//
//	Files ────┐
//	          ├─ Source ─▶ Keeper ─▶ sched.Scheduler
//	Follower ─┘              │ ▲
//	   ▲                     ▼ └── observations: probe, Peers
//	   └──────────────── Server
//
// A [Bundle] is one version of the snapshot (nodes, regions, zones, domains, overrides,
// quality) with the coverage and mmdb files that it is used with. [Files] reads one from
// files, [Follower] takes one from the [Server] of a scheduler or a router and keeps it
// on disk. The [Keeper] owns all that changes: it takes bundles and observations and
// swaps a new view in at most once a second, or at once when a node falls or drains.
// What has a fault is refused with one line in the log and what was there stays.
//
// # Messages
//
//	GET /v1/snapshot?have=TOKEN&wait=25s   the bundle, when its token is not the one given; else 304 after the wait
//	GET /v1/blob/SUM                       a coverage or mmdb file that a bundle names
//	GET /v1/state?have=TOKEN&wait=25s      what this program has itself observed of the nodes;
//	                                       with streams=1 also what streams they carry
//	POST /v1/heartbeat                     what a node says of itself each second; an Ack
//	GET /v1/orders?have=TOKEN&wait=25s     what the node that asks is to follow
//	GET /v1/path?node=ID&stream=APP/NAME   where the node that asks should pull a stream from
//
// With a cluster key both ways are signed. A question carries Millrace-Node,
// Millrace-Nonce and Millrace-Signature over them, the method and the target, and over
// the encoding and the bytes of its body if it has one. The signature of the answer covers that of the question, the status, the encoding, the
// ETag and the bytes of the body as sent: it is verified before anything is unpacked,
// and an overheard answer answers nobody else. Refusals are JSON, {"error": "sentence",
// "reason": "word"}; they are not signed, because whoever can forge one can as well
// close the connection.
//
// # Nodes
//
// The last three are answered by a router, whose Server has a [Backend]. A node runs a
// [Beat], which tells one router at a time what has changed since that router took a
// heartbeat; an [OrdersFollower], which keeps the last orders on disk; and a
// [Pathfinder], which nobody waits for long. None of them ever gives up, and the node goes on
// without a router with what it has.
//
// A heartbeat is refused as a whole, with a word and a sentence, and then changes
// nothing: when it is not signed by its node, when it cannot be read, when it says what
// cannot be, and when the backend knows better. Samples are judged one by one.
//
// # Order
//
// A [Version] has an origin, a number that rises within it, and a token that stands for
// the content. A follower goes to another server when one is silent, wrong or late, and
// takes an older number of the same origin from none but the server that it already
// follows: that one was set back on purpose, another one may just lag.
//
// Clocks and files are used here; the policy is in sched.
package control

import "context"

// Source gives bundles, one after the other.
type Source interface {
	// Next blocks until there is a bundle with another token than have, the one in use;
	// have is nil at first. What it returns has been compiled. It returns an error when
	// ctx ends, and when there is nothing to begin with and waiting will not help.
	Next(ctx context.Context, have *Bundle) (*Bundle, error)
	// Status says where bundles come from and what is wrong. It may be called from any
	// goroutine.
	Status() SourceStatus
}
