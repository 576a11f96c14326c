package control

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"
)

// Run asks on behalf of Route until ctx ends, and then returns nil.
func (p *Pathfinder) Run(ctx context.Context) error {
	defer p.client.close()
	var wg sync.WaitGroup
	for range askers {
		wg.Go(func() {
			for {
				select {
				case r := <-p.asks:
					p.ask(ctx, r)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	wg.Wait()
	return nil
}

// ask asks one router after the other while the reader waits. The last answer may come
// later.
func (p *Pathfinder) ask(ctx context.Context, r *route) {
	defer close(r.done)
	err := fmt.Errorf("%w: too many are asked for", ErrNoRoute)
	p.mu.Lock()
	tries := len(p.rota.servers)
	p.mu.Unlock()
	for range tries {
		now := time.Now()
		if !now.Before(r.late) {
			break
		}
		p.mu.Lock()
		server := p.rota.server()
		p.status.Asked++
		p.mu.Unlock()
		if r.answer, err = p.question(ctx, server, r); err == nil {
			p.answered(r)
			return
		}
		if ctx.Err() != nil {
			break
		}
		p.failed(server, err)
	}
	if _, failed := errors.AsType[*failure](err); failed && ctx.Err() == nil {
		p.mu.Lock()
		p.tripLocked(time.Now(), err)
		p.mu.Unlock()
	}
	r.answer, r.err = Route{}, fmt.Errorf("%w: %w", ErrNoRoute, err)
}

func (p *Pathfinder) question(ctx context.Context, server string, r *route) (Route, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLate)
	defer cancel()
	q := url.Values{"node": {p.client.node}, "stream": {string(r.name)}}
	said, err := p.client.ask(ctx, server, routePath+"?"+q.Encode(), 0, MaxRoute)
	if err != nil {
		return Route{}, err
	}
	answer, err := ParseRoute(said.body, p.client.node, r.name)
	if err != nil {
		return Route{}, fail(Faulty, "%w", err)
	}
	return answer, nil
}

// answered notes an answer. One that came too late for its reader is kept for the next
// one, but readers are not let wait for such.
func (p *Pathfinder) answered(r *route) {
	now := time.Now()
	r.until = now.Add(p.cfg.Keep)
	if len(r.answer.Choices) == 0 {
		r.until = now.Add(min(p.cfg.Keep, keepNothing))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[Answered]++
	if now.After(r.late) {
		return
	}
	if p.failing {
		p.log.Info("a router tells where to pull streams from again", "server", p.rota.server())
	}
	p.rota.answered()
	p.failing, p.status.Error = false, ""
}

// failed notes that a server failed. The next one is asked from now on.
func (p *Pathfinder) failed(server string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[outcomeOf(err)]++
	if p.rota.server() == server { // else another question has found that out
		p.rota.failed(time.Now(), outcomeOf(err))
	}
}

// PathStatus is what a Pathfinder has done, for the admin port.
type PathStatus struct {
	Server  string            `json:"server"` // that is asked
	Asked   uint64            `json:"asked"`  // questions to routers
	Kept    uint64            `json:"kept"`   // readers that were told what was known, or waited with another
	Spared  uint64            `json:"spared"` // readers that were not let wait, because no router answers
	Late    uint64            `json:"late"`   // readers that waited for nothing
	Counts  map[string]uint64 `json:"counts"` // questions by outcome
	Error   string            `json:"error,omitempty"`
	Resting bool              `json:"resting,omitempty"` // no router answers, and readers are not let wait
}

// Status says how it goes.
func (p *Pathfinder) Status() PathStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.status
	s.Server, s.Resting, s.Counts = p.rota.server(), p.failing, make(map[string]uint64, outcomes)
	for i, n := range p.counts {
		s.Counts[Outcome(i).String()] = n
	}
	return s
}
