package control

import (
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"log/slog"
	"net/url"
	"time"

	"millrace/internal/auth"
)

// OrdersFollower takes orders from routers, keeps the last on disk, and never gives up.
type OrdersFollower struct {
	*asker

	// Fixed at construction.
	shelf *ordersShelf // nil: nothing is kept
	apply func(*Orders)

	// Owned by Run.
	have Version // of the orders in force; zero for none
	from string  // the URL that they came from
}

// NewOrdersFollower returns an OrdersFollower for the node of that id. apply is called
// by Run, at first with what is kept on disk and then with each change; what it is given
// is its own. dial opens the connections, nil as net does; conf is for https and may be
// nil.
func NewOrdersFollower(cfg FollowerConfig, node string, cluster *auth.Cluster, dial Dial, conf *tls.Config, apply func(*Orders), log *slog.Logger) (*OrdersFollower, error) {
	a, err := newAsker("orders", "orders", "router", cfg, node, cluster, dial, conf, log)
	if err != nil {
		return nil, err
	}
	f := &OrdersFollower{asker: a, apply: apply}
	if cfg.File != "" {
		f.shelf = &ordersShelf{cfg.File, node}
	}
	return f, nil
}

// Token stands for the orders in force, "" for none: what a heartbeat tells.
func (f *OrdersFollower) Token() string { return f.Status().Version.Token }

// Run applies what is kept on disk and then follows the routers until ctx ends, and then
// returns nil. Orders stay in force for as long as no router gives others.
func (f *OrdersFollower) Run(ctx context.Context) error {
	defer f.client.close()
	f.begin()
	for ctx.Err() == nil {
		f.once(ctx)
	}
	return nil
}

// once asks the router whose turn it is, and rests when that failed.
func (f *OrdersFollower) once(ctx context.Context) {
	question, done := f.turn(ctx)
	defer done()
	server := f.rota.server()
	o, err := f.fetch(question, server)
	if err != nil && question.Err() != nil {
		return
	}
	f.judge(server, err, o != nil)
	if o != nil {
		f.apply(o)
	}
	if err != nil {
		_ = f.rest(question) // it is over when somebody else is to be asked
	}
}

// begin applies what is kept on disk.
func (f *OrdersFollower) begin() {
	if f.shelf == nil {
		return
	}
	o, from, token, err := f.shelf.load()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		f.log.Error("the orders on disk are of no use", "err", err)
		return
	}
	f.from, f.have = from, Version{Origin: o.Origin, Number: o.Version, Token: token}
	f.log.Info("beginning with the orders on disk", "version", f.have)
	f.uses(f.have)
	f.apply(o)
}

// firstWait is how long a router is waited for that has no orders for this node yet: it
// plans every second or two. Another one may have some.
const firstWait = 3 * time.Second

// fetch asks the server for orders other than those in force. The result is nil when
// there are none. Every error has an outcome.
func (f *OrdersFollower) fetch(ctx context.Context, server string) (*Orders, error) {
	q, wait := url.Values{}, f.cfg.Wait
	switch {
	case f.have.Token == "":
		wait = min(wait, firstWait)
	case f.answered != server:
		wait = 0
	}
	if f.have.Token != "" {
		q.Set("have", f.have.Token)
	}
	q.Set("wait", wait.String())
	begun := time.Now()
	said, err := f.client.ask(ctx, server, ordersPath+"?"+q.Encode(), wait, MaxOrders)
	if err != nil {
		return nil, err
	}
	if said.unchanged || said.token == f.have.Token {
		if wait > 0 && time.Since(begun) < early {
			return nil, fail(Early, "the server answers at once, without news")
		}
		return nil, nil
	}
	o, err := ParseOrders(said.body, f.client.node)
	if err != nil {
		return nil, fail(Faulty, "%w", err)
	}
	next := Version{Origin: o.Origin, Number: o.Version, Token: said.token}
	if len(next.Token) > maxToken || next.Token == "" {
		return nil, fail(Faulty, "the orders have the token %.80q", next.Token)
	}
	if next.Origin == f.have.Origin && next.Number < f.have.Number && server != f.from {
		return nil, fail(Older, "the server has %v, older than %v, which is in force", next, f.have)
	}
	f.have, f.from = next, server
	if f.shelf != nil {
		if err := f.shelf.save(said.body, server, said.token); err != nil {
			f.log.Error("the new orders are in force but not on disk", "version", next, "err", err)
		}
	}
	return o, nil
}

// judge notes what came of a question, and logs a failure that is new.
func (f *OrdersFollower) judge(server string, err error, news bool) {
	if level, tell := f.note(server, f.have, news, err); tell {
		msg := "no newer orders, the old ones stay in force"
		if f.have.Token == "" {
			msg = "no orders yet, the settings alone count"
		}
		f.log.Log(context.Background(), level, msg, "server", server, "version", f.have, "reason", outcomeOf(err), "err", err)
	}
}
