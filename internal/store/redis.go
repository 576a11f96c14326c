package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// RedisConfig says where Redis is and how patiently it is asked. Redis 7.0 or newer is
// enough, alone, and set to keep what it has: maxmemory-policy noeviction.
type RedisConfig struct {
	// URL is redis://[user:password@]host:port[/database], rediss:// for TLS, or
	// unix:///path.
	URL string
	// Prefix stands before every key, so that several networks can share one Redis.
	Prefix string
	// Timeout of one command. Longer bears slower links; shorter notices sooner that
	// Redis is gone.
	Timeout time.Duration
	// Look is how often everything is compared, in case that a message was lost.
	Look time.Duration
}

// DefaultRedisConfig has no URL.
func DefaultRedisConfig() RedisConfig {
	return RedisConfig{Prefix: "millrace:", Timeout: 2 * time.Second, Look: time.Second}
}

// Validate checks every value. Its errors name the key and the accepted range.
func (c RedisConfig) Validate() error {
	var errs []error
	if _, err := c.options(); err != nil {
		errs = append(errs, err)
	}
	if len(c.Prefix) > maxName || strings.ContainsFunc(c.Prefix, func(r rune) bool { return r <= ' ' || r > '~' }) {
		errs = append(errs, fmt.Errorf("prefix is %q: use at most %d ASCII characters without blanks", c.Prefix, maxName))
	}
	if c.Timeout < 100*time.Millisecond || c.Timeout > time.Minute {
		errs = append(errs, fmt.Errorf("timeout is %v: use 100ms to 1m", c.Timeout))
	}
	if c.Look < 100*time.Millisecond || c.Look > time.Minute {
		errs = append(errs, fmt.Errorf("look is %v: use 100ms to 1m", c.Look))
	}
	return errors.Join(errs...)
}

// slowest is the link, in bytes a second, over which the greatest body still comes
// before the time of a command is over.
const slowest = 10 << 20

// options reads the URL. Its errors do not show it: it may have a password.
func (c RedisConfig) options() (*redis.Options, error) {
	o, err := redis.ParseURL(c.URL)
	if err != nil {
		return nil, errors.New("url is not one of Redis: use redis://[user:password@]host:port[/database], rediss:// for TLS, or unix:///path")
	}
	longest := c.Timeout + bodyTime(MaxBody)
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = c.Timeout, longest, longest, c.Timeout
	o.ContextTimeoutEnabled = true
	o.DialerRetries = 1
	o.MaxRetries = 1 // on a new connection: those in the pool die with Redis
	// Neither is of use here, and Redis 7.0 does not have them.
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return o, nil
}

func bodyTime(bytes int) time.Duration {
	return time.Duration(bytes) * time.Second / slowest
}

// Redis is what several routers share. It has what a [Cached] asks of it, which is the
// Store, and goes on without it.
type Redis struct {
	// Fixed at construction.
	cfg    RedisConfig
	log    *slog.Logger
	client *redis.Client
	name   string             // for messages: the address without the password
	end    context.Context    // over when it is closed
	endNow context.CancelFunc // closes it
}

// NewRedis returns a Redis. It connects when it is first used.
func NewRedis(cfg RedisConfig, log *slog.Logger) (*Redis, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	o, err := cfg.options()
	if err != nil {
		return nil, err
	}
	// The library writes to standard error on its own, line after line while Redis is
	// gone. Everything that it says there comes back as an error, too.
	logging.Disable()
	r := &Redis{cfg: cfg, log: log, client: redis.NewClient(o), name: o.Addr}
	r.end, r.endNow = context.WithCancel(context.Background())
	return r, nil
}

// key returns the name of a key in Redis.
func (r *Redis) key(parts ...string) string { return r.cfg.Prefix + strings.Join(parts, ":") }

// ask calls a script. bytes is the size of the bodies that go or come at most.
func (r *Redis) ask(ctx context.Context, bytes int, s *redis.Script, keys []string, args ...any) *redis.Cmd {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout+bodyTime(bytes))
	defer cancel()
	return s.Run(ctx, r.client, keys, args...)
}

// fault says what was being done when Redis failed, and what that means.
func (r *Redis) fault(what string, err error) error {
	if r.end.Err() != nil {
		return errClosed
	}
	switch {
	case redis.HasErrorPrefix(err, "TOOBIG"):
		return fmt.Errorf("%s: redis at %s has %w: %w", what, r.name, ErrTooBig, err)
	case strings.Contains(err.Error(), "WRONGTYPE"): // wherever in the message of a script
		err = fmt.Errorf("something else stands behind the prefix %q, use another one: %w", r.cfg.Prefix, err)
	}
	return fmt.Errorf("%s: %w: redis at %s: %w", what, ErrUnavailable, r.name, err)
}

// strange is the error for an answer that no script of ours gives.
func (r *Redis) strange(what string) error {
	return r.fault(what, fmt.Errorf("an answer that makes no sense: is something else behind the prefix %q?", r.cfg.Prefix))
}

// Origin is that of a [Store].
func (r *Redis) Origin(ctx context.Context) (string, error) { return r.join(ctx, newOrigin(), false) }

// join offers an origin, which is taken when there is none, or, with older, when it is
// the older one. It returns what is the origin then.
func (r *Redis) join(ctx context.Context, origin string, older bool) (string, error) {
	flag := "0"
	if older {
		flag = "1"
	}
	got, err := r.ask(ctx, 0, scriptOrigin, []string{r.key("state")}, origin, flag).Text()
	if err != nil {
		return "", r.fault("origin", err)
	}
	if checkName("origin", got) != nil {
		return "", r.strange("origin")
	}
	return got, nil
}

// Close ends what follows it and closes the connections. It may be called again.
func (r *Redis) Close() error {
	if r.end.Err() != nil {
		return nil
	}
	r.endNow()
	return r.client.Close()
}
