package control

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"millrace/internal/auth"
)

// FollowerConfig says whom to follow.
type FollowerConfig struct {
	// Servers are the http:// or https:// URLs of schedulers or routers. They are asked
	// in turn, beginning with another one on each node, so that they share the followers.
	Servers []string
	// File is where the last good snapshot is kept, with its coverage and mmdb files
	// beside it. Empty keeps none: after a start there is nothing until a server answers.
	File string
	// Wait is how long a question may wait for news. Long saves questions, short finds a
	// server that went silently sooner.
	Wait time.Duration
	// RetryMin and RetryMax are the pauses after all servers have failed: from the first,
	// twice as long each time, to the last, each shortened by chance by up to a half, so
	// that ten thousand followers do not come back as one.
	RetryMin time.Duration
	RetryMax time.Duration
}

// DefaultFollowerConfig follows nobody.
func DefaultFollowerConfig() FollowerConfig {
	return FollowerConfig{Wait: 25 * time.Second, RetryMin: 500 * time.Millisecond, RetryMax: 15 * time.Second}
}

// maxServers is how many servers one follower may know.
const maxServers = 16

// Validate checks every value. Its errors name the key and the accepted range.
func (c FollowerConfig) Validate() error {
	errs := []error{checkServers(c.Servers)}
	if c.Wait < time.Second || c.Wait > 5*time.Minute {
		errs = append(errs, fmt.Errorf("wait is %v: use 1s to 5m", c.Wait))
	}
	return errors.Join(append(errs, checkRetry(c.RetryMin, c.RetryMax))...)
}

// checkRetry checks the pauses after all servers have failed.
func checkRetry(low, high time.Duration) error {
	var errs []error
	if low < 50*time.Millisecond || low > time.Minute {
		errs = append(errs, fmt.Errorf("retry_min is %v: use 50ms to 1m", low))
	}
	if high < low || high > 10*time.Minute {
		errs = append(errs, fmt.Errorf("retry_max is %v: use retry_min, %v, to 10m", high, low))
	}
	return errors.Join(errs...)
}

func checkServers(servers []string) error {
	var errs []error
	if len(servers) > maxServers {
		errs = append(errs, fmt.Errorf("servers has %d URLs, must have at most %d", len(servers), maxServers))
	}
	for _, s := range servers {
		if err := checkServer(s); err != nil {
			errs = append(errs, fmt.Errorf("servers: %w", err))
		}
	}
	return errors.Join(errs...)
}

func checkServer(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.User != nil ||
		strings.Trim(u.Path, "/") != "" || len(s) > maxURL {
		return fmt.Errorf("%.100q is not the URL of a server: write http://HOST:PORT or https://HOST:PORT", s)
	}
	return CheckPort(u)
}

// CheckPort refuses the port of a URL that no server can have.
func CheckPort(u *url.URL) error {
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return fmt.Errorf("%.100q has the port %.20s: use 1 to 65535", u, port)
		}
	}
	return nil
}

// Follower is a Source that takes bundles from servers and never gives up.
type Follower struct {
	*asker

	// Fixed at construction.
	shelf *shelf // nil: nothing is kept

	// Owned by the caller of Next.
	from  string // the URL that the bundle in use came from
	began bool
}

// NewFollower returns a Follower for the node of that id. dial opens the connections,
// nil as net does; conf is for https and may be nil.
func NewFollower(cfg FollowerConfig, node string, cluster *auth.Cluster, dial Dial, conf *tls.Config, log *slog.Logger) (*Follower, error) {
	a, err := newAsker("follower", "snapshots", "scheduler or router", cfg, node, cluster, dial, conf, log)
	if err != nil {
		return nil, err
	}
	f := &Follower{asker: a}
	if cfg.File != "" {
		f.shelf = &shelf{cfg.File}
	}
	return f, nil
}

// Next returns at first what is kept on disk, if that is good, so that a program that
// starts while no server answers has something to work from. After that it asks the
// servers until one of them has something newer, for ever if need be: its only error
// is that of ctx.
func (f *Follower) Next(ctx context.Context, have *Bundle) (*Bundle, error) {
	defer f.client.close()
	if !f.began {
		f.began = true
		if b := f.kept(); b != nil {
			return b, nil
		}
	}
	for {
		b := f.once(ctx, have)
		if b != nil {
			return b, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// once asks the server whose turn it is, and rests when that failed. The result is nil
// when there is nothing new, and when ctx is over.
func (f *Follower) once(ctx context.Context, have *Bundle) *Bundle {
	question, done := f.turn(ctx)
	defer done()
	url := f.rota.server()
	b, err := f.fetch(question, url, have)
	if err != nil && question.Err() != nil {
		return nil
	}
	f.judge(url, b, err)
	if err != nil {
		_ = f.rest(question) // it is over when somebody else is to be asked
	}
	return b
}

// kept returns the bundle on disk, nil when there is none that is good.
func (f *Follower) kept() *Bundle {
	if f.shelf == nil {
		return nil
	}
	b, from, err := f.shelf.load()
	if err == nil {
		_, err = b.Compile(nil)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		f.log.Error("the snapshot on disk is of no use", "err", err)
		return nil
	}
	f.from = from
	f.log.Info("beginning with the snapshot on disk", "version", b.Version, "made", b.Made)
	f.uses(b.Version)
	return b
}

// judge notes what came of a question, and logs a failure that is new.
func (f *Follower) judge(url string, b *Bundle, err error) {
	v := f.Status().Version
	if b != nil {
		v, f.from = b.Version, url
	}
	if level, tell := f.note(url, v, b != nil, err); tell {
		msg := "no newer snapshot, the old one stays in use"
		if v.Token == "" {
			msg = "no snapshot yet, there is nothing to place players by"
		}
		f.log.Log(context.Background(), level, msg, "server", url, "reason", outcomeOf(err), "err", err)
	}
}
