package store

import (
	"context"
	"maps"
	"strings"
	"time"
)

// retry is how often Redis is tried while it is gone: often, since routers stand by.
const retry = 250 * time.Millisecond

// maxState is how many fields a state may have: two for each document and kind, and
// more than that is not ours.
const maxState = 10_000

// follow calls f with the state in Redis when it has changed, and each Look, until ctx
// ends or r is closed. It calls f with the error while Redis cannot be reached.
func (r *Redis) follow(ctx context.Context, f func(state map[string]string, err error)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.end, cancel)()
	sub := r.client.Subscribe(ctx) // to nothing yet: that would wait for Redis
	closeSub := context.AfterFunc(ctx, func() { _ = sub.Close() })
	defer func() {
		if closeSub() {
			_ = sub.Close()
		}
	}()
	subscribed := false
	for ctx.Err() == nil {
		state, err := r.state(ctx)
		if ctx.Err() != nil {
			return
		}
		f(state, err)
		if err == nil && !subscribed {
			err = sub.Subscribe(ctx, r.key("changed"))
			subscribed = err == nil
		}
		if err == nil { // the first message says that it is subscribed, also after a break: look again
			if _, err = sub.ReceiveTimeout(ctx, r.cfg.Look); isTimeout(err) {
				continue
			}
		}
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(retry):
			}
		}
	}
}

func isTimeout(err error) bool {
	timeout, ok := err.(interface{ Timeout() bool })
	return ok && timeout.Timeout()
}

// state returns what scripts.go shows under that name.
func (r *Redis) state(ctx context.Context) (map[string]string, error) {
	out, err := r.ask(ctx, 0, scriptState, []string{r.key("state")}, maxState).StringSlice()
	if err != nil {
		return nil, r.fault("look", err)
	}
	if len(out)%2 != 0 {
		return nil, r.strange("look")
	}
	state := make(map[string]string, len(out)/2)
	for i := 0; i < len(out); i += 2 {
		state[out[i]] = out[i+1]
	}
	return state, nil
}

// changes hands what differs between two states to tell.
func changes(before, now map[string]string, tell func(Change)) {
	all := maps.Clone(now)
	for field, value := range before {
		if now[field] == value {
			delete(all, field)
		} else {
			all[field] = value
		}
	}
	for field := range all {
		switch what, name, _ := strings.Cut(field, ":"); what {
		case "d":
			tell(Change{Kind: Documents, Key: name})
		case "p", "e":
			tell(Change{Kind: name})
		}
	}
}
