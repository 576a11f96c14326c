// Package sched decides which edges a player should use.
//
// It computes on values: a [Snapshot] (what operators and the router say, changes
// slowly), a geo.Table (where addresses are) and a [State] (load and health, changes
// each second). [Compile] makes a [Plan] of the first, [NewView] a [View] of all
// three, and [View.Decide] answers from it, without a lock or an allocation. It opens
// nothing, reads no clock and draws no random number: the same input gives the same
// answer on every scheduler and every edge. README.md has the formulas.
//
// # Inputs
//
// A [Query]: the client's address or a prefix of it, its region, ISP and kind of access
// if the caller knows them, a domain, a stream if it is known, the families that the
// client can use; and the time.
//
// # Decision
//
//  1. Overrides of operators, the most specific first, pin or ban edges.
//  2. Edges that are not eligible are left out: no edge, of other groups, without the
//     family or HTTPS, not well, draining, under attack, full. No more than a share of a
//     group is left out for its health.
//  3. Coverage: ms for the way from the client's region and for crossing ISPs.
//  4. Quality: ms by which players of the same place measured more or less than that.
//  5. Stream: edges that carry it gain some ms.
//  6. Load: ms that grow without bound towards capacity.
//  7. Spreading: the edges within a margin of the best share the clients by weighted
//     rendezvous on the client's first bits and the stream.
//
// # Invariants
//
// The order of rows in the input does not count. An answer has candidates wherever an
// edge of the domain's groups has an address of the family: when none is eligible, the
// least bad are given, for a short time. An edge that leaves moves its own clients
// only. All clients that share the first [Answer.Bits] bits get the same answer. Each
// answer, and each node that is not in it, has a [Reason].
package sched

import (
	"sync/atomic"
	"time"
)

// Scheduler answers from the newest View. It is safe from any goroutine.
type Scheduler struct{ view atomic.Pointer[View] }

// New returns a Scheduler that knows no domain until the first Swap.
func New() *Scheduler {
	s := &Scheduler{}
	s.view.Store(empty())
	return s
}

// Swap makes v what the answers come from. Answers under way finish from the old one.
func (s *Scheduler) Swap(v *View) { s.view.Store(v) }

// View returns the View that the answers come from; it is never nil.
func (s *Scheduler) View() *View { return s.view.Load() }

// Decide answers q into a; see [View.Decide].
func (s *Scheduler) Decide(now time.Time, q *Query, a *Answer) { s.View().Decide(now, q, a) }

// Explain tells how q is answered; see [View.Explain].
func (s *Scheduler) Explain(now time.Time, q *Query) Explanation { return s.View().Explain(now, q) }
