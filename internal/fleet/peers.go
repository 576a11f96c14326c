package fleet

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"time"

	"millrace/internal/control"
	"millrace/internal/store"
)

// peer is another router.
type peer struct {
	row   routerWire
	fresh time.Time         // when it said something new
	seen  map[string][]byte // what was read of it last, by kind and key
	known bool              // it has been told of as up
}

// readRouters finds out which routers are at work.
func (f *Fleet) readRouters(ctx context.Context, now time.Time) error {
	list, err := f.store.Entries(ctx, kindRouters)
	if err != nil {
		return err
	}
	s := &f.share
	for i := range list {
		var row routerWire
		if list[i].Key == f.cfg.Router || f.packer.unpack(list[i].Body, &row) != nil || row.ID != list[i].Key {
			continue
		}
		p := s.peers[row.ID]
		if p == nil {
			p = &peer{seen: map[string][]byte{}}
			s.peers[row.ID] = p
		}
		if p.row.Number != row.Number || !p.row.Started.Equal(row.Started) {
			p.row, p.fresh = row, now
		}
	}
	f.minePeers(now)
	return nil
}

// minePeers notes who is there, and tells of those who come and go.
func (f *Fleet) minePeers(now time.Time) {
	s := &f.share
	up := map[string]bool{}
	rows := []RouterRow{}
	for id, p := range s.peers {
		there := now.Sub(p.fresh) <= routerGone
		if there != p.known {
			p.known = there
			e, what := Event{Kind: KindRouterUp, From: id}, "another router is up"
			if !there {
				e.Kind, what = KindRouterDown, "another router is down: it does not announce itself any more"
			}
			e.ID = id + "/" + e.Kind + "/" + strconv.FormatInt(p.row.Started.UnixMilli(), 10) + "/" + strconv.FormatUint(p.row.Number, 10)
			f.events.add(now, e)
			f.log.Info(what, "router", id)
		}
		if there {
			up[id] = true
			s.lonely, s.ever = now, true
		} else if now.Sub(p.fresh) > f.cfg.Forget {
			delete(s.peers, id)
			continue
		}
		rows = append(rows, RouterRow{
			ID: id, Leader: there && p.row.Leader, Up: there, Seen: p.fresh.UTC(), Started: p.row.Started, Nodes: p.row.Nodes,
			Plan: p.row.Plan, Program: p.row.Program, URL: p.row.URL,
		})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = rows
	s.now = routers{alone: !s.together(now), up: up, away: s.now.away}
}

// readOthers takes in what the others tell: identities before nodes, and nodes before
// what they carry.
func (f *Fleet) readOthers(ctx context.Context, now time.Time) error {
	for _, kind := range []string{kindIdentities, kindNodes, kindStreams, kindNews} {
		list, err := f.store.Entries(ctx, kind)
		if err != nil {
			return err
		}
		for i := range list {
			e := &list[i]
			// The id of a router may have dots itself.
			p, id := f.share.peers[e.Key], e.Key
			if at := strings.LastIndexByte(e.Key, '.'); p == nil && at > 0 {
				id = e.Key[:at]
				p = f.share.peers[id]
			}
			if p == nil || id == f.cfg.Router || bytes.Equal(p.seen[kind+e.Key], e.Body) {
				continue
			}
			if f.read(now, id, e) {
				p.seen[kind+e.Key] = e.Body
			}
		}
	}
	return nil
}

// read takes in one entry of another router. It reports false if it should be read again.
// One that cannot be read is of another version of this program, or damaged: the next one
// may be better.
func (f *Fleet) read(now time.Time, router string, e *store.Entry) bool {
	var err error
	whole := true
	switch e.Kind {
	case kindIdentities:
		var w identitiesWire
		if err = f.packer.unpack(e.Body, &w); err == nil {
			f.nodes.mergeIdentities(now, router, w.Nodes)
		}
	case kindNodes:
		var w nodesWire
		if err = f.packer.unpack(e.Body, &w); err == nil {
			for _, b := range f.nodes.merge(now, router, w.Nodes) {
				f.nodeBack(now, b)
			}
		}
	case kindStreams:
		var w streamsWire
		if err = f.packer.unpack(e.Body, &w); err == nil {
			whole = f.nodes.mergeStreams(router, &w)
		}
	case kindNews:
		var w newsWire
		if err = f.packer.unpack(e.Body, &w); err == nil {
			f.scores.queue("", w.Samples, &control.Ack{}, false)
			f.players.fromRouter(now, w.Players)
			f.events.fromRouter(now, w.Events)
			f.nodes.mergeRechecks(w.Rechecks)
		}
	}
	if err != nil {
		f.log.Debug("what another router announced cannot be read", "router", router, "kind", e.Kind, "err", err)
	}
	return whole
}
