package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"millrace/internal/config"
	"millrace/internal/control"
	"millrace/internal/fleet"
	"millrace/internal/store"
)

// state is what a router keeps, or shares with others.
type state interface {
	store.Store
	// Run keeps it up until ctx ends.
	Run(ctx context.Context) error
}

// openState opens the state file, and with a URL the Redis that it is a copy of then.
func openState(cfg config.Router, log *slog.Logger) (state, error) {
	local, err := store.NewMemory(store.MemoryConfig{File: cfg.StateFile}, log)
	if err != nil {
		return nil, fmt.Errorf("state_file: %w", err)
	}
	if cfg.Redis.URL == "" {
		return local, nil
	}
	remote, err := store.NewRedis(cfg.Redis, log)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("redis: %w", err), local.Close())
	}
	return store.NewCached(remote, local, log), nil
}

// loadMMDB reads the files with places of addresses.
func loadMMDB(names []string) (out []*control.Blob, err error) {
	var errs []error
	for _, name := range names {
		b, err := control.LoadMMDB(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("mmdb: %w", err))
			continue
		}
		out = append(out, b)
	}
	return out, errors.Join(errs...)
}

// seed is a file that becomes a document.
type seed struct {
	key, file string
	body      []byte
}

// maxSeed bounds such a file.
const maxSeed = store.MaxBody

// loadSeeds reads the files that the settings name, in the order in which documents
// refer to one another.
func loadSeeds(cfg config.Seed) (out []seed, err error) {
	var errs []error
	for _, s := range []seed{
		{key: fleet.KeyNetwork, file: cfg.Network}, {key: fleet.KeyDomains, file: cfg.Domains}, {key: fleet.KeyCoverage, file: cfg.Coverage},
	} {
		if s.file == "" {
			continue
		}
		if s.body, err = readAll(s.file); err != nil {
			errs = append(errs, fmt.Errorf("seed: %s: %w", s.key, err))
			continue
		}
		out = append(out, s)
	}
	return out, errors.Join(errs...)
}

func readAll(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSeed+1))
	if err == nil && len(b) > maxSeed {
		err = fmt.Errorf("%s has more than %d bytes: is it the right file?", name, maxSeed)
	}
	return b, err
}

// seedAgain is how long it is waited for a store that cannot be reached.
const seedAgain = time.Second

// sow makes documents of seeds where there are none, once the store can be reached.
func (r *router) sow(ctx context.Context, seeds []seed) error {
	for _, s := range seeds {
		for !r.sown(ctx, s) {
			select {
			case <-time.After(seedAgain):
			case <-ctx.Done():
				return nil
			}
		}
	}
	<-ctx.Done()
	return nil
}

// sown makes a document of one seed, and reports whether nothing is left to do.
func (r *router) sown(ctx context.Context, s seed) bool {
	d, err := r.fleet.Document(ctx, s.key, 0)
	if err == nil && d.Version > 0 {
		return true
	}
	if err == nil {
		_, err = r.fleet.Edit(ctx, s.key, 0, s.body, r.id, "from "+s.file)
	}
	_, faster := errors.AsType[*store.ConflictError](err)
	switch {
	case err == nil:
		r.log.Info("document begun from a file: from now on it is edited in the console", "document", s.key, "file", s.file)
	case faster:
	case errors.Is(err, store.ErrUnavailable), ctx.Err() != nil:
		return false
	default:
		r.log.Error("document not begun from a file: mend it and start the router again", "document", s.key, "file", s.file, "err", err)
	}
	return true
}

// checkSeeds tells what is wrong with the files that would become documents.
func checkSeeds(cfg config.Router) error {
	seeds, err := loadSeeds(cfg.Seed)
	if err != nil || len(seeds) == 0 {
		return err
	}
	mute := slog.New(slog.DiscardHandler)
	memory, err := store.NewMemory(store.MemoryConfig{}, mute)
	if err != nil {
		return err
	}
	defer memory.Close()
	f, err := fleet.New(cfg.Mind("check", ""), memory, mute)
	if err != nil {
		return fmt.Errorf("fleet: %w", err)
	}
	var errs []error
	for _, s := range seeds {
		if _, err := f.Edit(context.Background(), s.key, 0, s.body, "check", ""); err != nil {
			errs = append(errs, fmt.Errorf("seed: %s: %w", s.file, err))
		}
	}
	return errors.Join(errs...)
}
