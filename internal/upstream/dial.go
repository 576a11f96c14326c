package upstream

import (
	"context"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"millrace/internal/auth"
	"millrace/internal/httpflv"
	"millrace/internal/rtmp"
)

// agent is what upstreams see in their logs.
const agent = "Millrace"

// dial connects to the upstream of f and asks for the stream.
func (o *Origin) dial(ctx context.Context, f *feed) (conn, error) {
	cfg := o.cfg.Load()
	dial := o.dialer(cfg.DialTime)
	tcp := func(ctx context.Context, network, addr string) (net.Conn, error) {
		began := time.Now()
		c, err := dial(ctx, network, addr)
		if err == nil {
			f.connected(c, time.Since(began))
		}
		return c, err
	}
	at := f.to.url + "/" + escape(string(f.s.stream.Name()))
	if strings.HasPrefix(f.to.url, "rtmp") {
		c := rtmp.DefaultClientConfig()
		c.Timeout, c.MessageBytes, c.TLS, c.Dial = cfg.LocateTime, cfg.MessageBytes, o.opt.TLS, tcp
		return playRTMP(ctx, at, c)
	}
	m := auth.Mark{
		Stream: f.s.stream.Name(), Node: o.opt.Self, Purpose: f.purpose,
		Via: append(slices.Clone(f.behalf), o.opt.Self),
	}
	began := time.Now()
	p, err := httpflv.Pull(ctx, httpflv.PullRequest{
		URL: at + ".flv", Mark: m, Signature: o.opt.Cluster.Sign(time.Now(), m), Marked: true, Back: f.back, Patient: f.move,
		OnPath:  func(path []string) { f.s.passing(f, path) },
		OnTrunk: f.carried,
	}, httpflv.PullConfig{
		Timeout: cfg.LocateTime, Idle: idleTime, MessageBytes: cfg.MessageBytes, TLS: o.opt.TLS, Dial: tcp, Agent: agent, Trunks: o.trunks,
	})
	if err != nil {
		return nil, err
	}
	f.answered(time.Since(began))
	return p, nil
}

// askTrunk returns what a trunk is asked for with.
func (o *Origin) askTrunk() httpflv.Marks {
	m := auth.Mark{Node: o.opt.Self, Via: []string{o.opt.Self}, Purpose: auth.Trunk}
	return httpflv.Marks{Mark: m, Signature: o.opt.Cluster.Sign(time.Now(), m)}
}

// dialer returns what opens TCP connections, in limit at most.
func (o *Origin) dialer(limit time.Duration) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return o.opt.Dial(ctx, network, addr)
	}
}

// idleTime is how long a connection may be silent before it is closed, if the policy
// has not left it long before.
const idleTime = 30 * time.Second

func playRTMP(ctx context.Context, at string, cfg rtmp.ClientConfig) (conn, error) {
	c, err := rtmp.Dial(ctx, at, cfg)
	if err != nil {
		return nil, err
	}
	if err := c.Play(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// escape makes a path of a name.
func escape(name string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

// answered notes how long it took to connect and to be answered, two round trips, or one
// on a trunk, if the upstream had the stream at hand.
func (f *feed) answered(d time.Duration) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	switch {
	case f.waited:
	case f.onTrunk:
		f.hop.trip = d
	default:
		f.hop.trip = d / 2
	}
}
