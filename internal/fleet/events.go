package fleet

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"millrace/internal/control"
)

const (
	// maxEvents is how many events are remembered: some MB.
	maxEvents = 10_000
	// maxUntold is how many wait to be told to the other routers.
	maxUntold = 2000
	// maxRefusers is for how many who are refused it is remembered that there was an event.
	maxRefusers = 1024
	// refusalEvery is how often one who is refused makes an event.
	refusalEvery = 10 * time.Second
	// deniedFor is for how long a node is said to be refused after an event of it: who is
	// refused tries again.
	deniedFor = 3 * refusalEvery
	// maxStrangers is how many events those make together in that time who have not shown
	// that they are of the cluster: whoever reaches the port can be refused under any
	// name, and must not push out what happened.
	maxStrangers = 10
)

// eventLog remembers what happened.
type eventLog struct {
	router string

	mu      sync.Mutex
	list    []Event // the oldest first
	ids     map[string]bool
	last    uint64 // number
	ever    uint64
	untold  []Event
	refused map[string]time.Time // when there was an event of one who is refused
	denied  map[string]denial    // by name
	// Since when strangers are counted, and how many events they have made.
	counted   time.Time
	strangers int
}

// denial is the last refusal of who goes by some name.
type denial struct {
	at time.Time
	Denied
}

func newEventLog(router string) *eventLog {
	return &eventLog{router: router, ids: map[string]bool{}, refused: map[string]time.Time{}, denied: map[string]denial{}}
}

// add notes an event that this router learned of itself. Of what several routers notice
// there is one event: it has the same ID.
func (l *eventLog) add(now time.Time, e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Router == "" {
		e.Router = l.router
	}
	if e.At.IsZero() {
		e.At = now.UTC()
	}
	if l.put(now, e) && len(l.untold) < maxUntold {
		l.untold = append(l.untold, e)
	}
}

// put notes an event unless it is known.
func (l *eventLog) put(now time.Time, e Event) bool {
	if e.ID == "" || l.ids[e.ID] {
		return false
	}
	l.last = max(l.last+1, uint64(max(now.UnixMicro(), 0)))
	e.Number = l.last
	if len(l.list) >= maxEvents {
		// A quarter at once, so that this is rare.
		for i := range l.list[:maxEvents/4] {
			delete(l.ids, l.list[i].ID)
		}
		l.list = slices.Clone(l.list[maxEvents/4:])
	}
	l.list = append(l.list, e)
	l.ids[e.ID] = true
	l.ever++
	if e.Kind == KindRefused {
		l.denied[e.Node] = denial{now, Denied{e.Reason, cmp.Or(e.From, "an unknown address")}}
	}
	return true
}

// deniedNow returns who is refused, by name.
func (l *eventLog) deniedNow(now time.Time) map[string]*Denied {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.denied, func(_ string, d denial) bool { return now.Sub(d.at) > deniedFor })
	out := make(map[string]*Denied, len(l.denied))
	for name, d := range l.denied {
		out[name] = &d.Denied
	}
	return out
}

// fromNode notes what a node tells of.
func (l *eventLog) fromNode(now time.Time, node, boot string, list []control.Event) {
	for i := range list {
		e := &list[i]
		l.add(now, Event{
			ID: node + "/" + boot + "/" + strconv.FormatUint(e.Number, 10), At: e.At.UTC(), Node: node, Kind: e.Kind,
			Stream: e.Stream, From: e.From, To: e.To, Reason: e.Reason, Detail: e.Detail, Figures: e.Figures,
		})
	}
}

// fromRouter notes what another router tells of.
func (l *eventLog) fromRouter(now time.Time, list []Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range list {
		l.put(now, list[i])
	}
}

// refuse notes that somebody is refused, once in a while for each. A stranger may be
// anybody, under any name.
func (l *eventLog) refuse(now time.Time, who, from, reason, text string, stranger bool) {
	key := who + " " + reason
	l.mu.Lock()
	tell := l.tellsRefusedLocked(now, key, stranger)
	l.mu.Unlock()
	if !tell {
		return
	}
	l.add(now, Event{
		ID: l.router + "/refused/" + key + "/" + strconv.FormatInt(now.UnixMilli(), 10), Kind: KindRefused, Node: who, From: from,
		Reason: reason, Detail: text,
	})
}

// tellsRefusedLocked reports whether there is an event of a refusal.
func (l *eventLog) tellsRefusedLocked(now time.Time, key string, stranger bool) bool {
	if at, told := l.refused[key]; told && now.Sub(at) < refusalEvery {
		return false
	}
	if now.Sub(l.counted) >= refusalEvery {
		l.counted, l.strangers = now, 0
	}
	if stranger && l.strangers >= maxStrangers {
		return false
	}
	if len(l.refused) >= maxRefusers {
		maps.DeleteFunc(l.refused, func(_ string, at time.Time) bool { return now.Sub(at) >= refusalEvery })
		if len(l.refused) >= maxRefusers {
			return false
		}
	}
	l.refused[key] = now
	if stranger {
		l.strangers++
	}
	return true
}

// takeUntold returns what the other routers have not been told of, and takes it for told.
func (l *eventLog) takeUntold() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.untold
	l.untold = nil
	return out
}

// retell takes back what could not be told. An event that comes twice is known by its id.
func (l *eventLog) retell(list []Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list = slices.Concat(list, l.untold)
	l.untold = list[max(len(list)-maxUntold, 0):]
}

// keptUntold is how many events a router keeps for another one that may come.
const keptUntold = 200

// trimUntold drops what is too much to be told to a router that comes later.
func (l *eventLog) trimUntold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if more := len(l.untold) - keptUntold; more > 0 {
		l.untold = slices.Clone(l.untold[more:])
	}
}

// takes reports whether a filter takes e.
func (f *EventFilter) takes(e *Event) bool {
	return (f.Kind == "" || f.Kind == e.Kind) && (f.Reason == "" || f.Reason == e.Reason) && (f.Stream == "" || f.Stream == e.Stream) &&
		(f.Node == "" || f.Node == e.Node || f.Node == e.From || f.Node == e.To)
}

// find returns at most limit of the events after a number, the newest first.
func (l *eventLog) find(after uint64, limit int, takes func(*Event) bool) *Events {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := &Events{Events: []Event{}, Next: max(l.last, after), Total: len(l.list), Kinds: []string{}}
	for i := len(l.list) - 1; i >= 0; i-- {
		e := &l.list[i]
		if e.Number <= after || len(out.Events) >= limit {
			break
		}
		if takes(e) {
			out.Events = append(out.Events, *e)
		}
	}
	kinds := map[string]bool{}
	for i := range l.list {
		kinds[l.list[i].Kind] = true
	}
	out.Kinds = append(out.Kinds, slices.Sorted(maps.Keys(kinds))...)
	return out
}

// total is how many events there were.
func (l *eventLog) total() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ever
}

// newest returns the newest events that takes chooses.
func (l *eventLog) newest(limit int, takes func(*Event) bool) []Event {
	return l.find(0, limit, takes).Events
}

// maxFound is how many events are returned at once at most.
const maxFound = 1000

// Events returns at most limit of the events after a number that a filter takes.
func (f *Fleet) Events(filter EventFilter, after uint64, limit int) *Events {
	if limit <= 0 {
		limit = 100
	}
	return f.events.find(after, min(limit, maxFound), filter.takes)
}
