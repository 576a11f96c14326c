package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// FilesConfig names the files of a scheduler that has no router. Whoever edits them
// replaces them: write a new file and rename it over the old one.
type FilesConfig struct {
	Nodes    string   // YAML: nodes, regions, quality, costs, health, geo
	Domains  string   // YAML: zones, domains, overrides
	Coverage string   // lines of CIDR REGION ISP; empty: none
	MMDB     []string // city and ISP files, asked in this order for what the coverage does not say
}

// Validate checks that the files that must be there are named.
func (c FilesConfig) Validate() error {
	var errs []error
	if c.Nodes == "" {
		errs = append(errs, errors.New("nodes is missing: name the YAML file that lists the nodes"))
	}
	if c.Domains == "" {
		errs = append(errs, errors.New("domains is missing: name the YAML file that lists zones and domains"))
	}
	if len(c.MMDB) > MaxMMDB {
		errs = append(errs, fmt.Errorf("mmdb names %d files: at most %d are read", len(c.MMDB), MaxMMDB))
	}
	return errors.Join(errs...)
}

// Files is a Source that reads files and notices when they change.
type Files struct {
	// Fixed at construction.
	cfg    FilesConfig
	origin string
	log    *slog.Logger

	wake chan struct{} // capacity 1, never closed: Reload

	// Owned by the caller of Next.
	seen   []stamp // of the files that were last read, well or not
	number uint64  // of the last bundle

	// Safe from any goroutine.
	status atomic.Pointer[SourceStatus]
}

// fileCheck is how often the files are looked at. A change is read when a second look
// finds nothing more changed, so that a file is not read half written.
const fileCheck = time.Second

// NewFiles returns a Files. origin names this scheduler in the versions of its bundles.
// Nothing is read yet.
func NewFiles(cfg FilesConfig, origin string, log *slog.Logger) (*Files, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	f := &Files{cfg: cfg, origin: origin, log: log, wake: make(chan struct{}, 1)}
	f.status.Store(&SourceStatus{Kind: "files", From: cfg.Nodes})
	return f, nil
}

// Reload makes Next read the files now, changed or not.
func (f *Files) Reload() {
	select {
	case f.wake <- struct{}{}:
	default: // it will
	}
}

// Status says what became of the files when they were last read.
func (f *Files) Status() SourceStatus { return *f.status.Load() }

// Next returns what the files say, at first at once: an error is then final. Later it
// waits for a change; files with a fault are refused, with one line in the log, and
// what they said before stays.
func (f *Files) Next(ctx context.Context, have *Bundle) (*Bundle, error) {
	if have == nil {
		b, err := f.read(nil)
		f.report(b, err)
		return b, err
	}
	tick := time.NewTicker(fileCheck)
	defer tick.Stop()
	changing := stamps(f.cfg.all())
	for {
		asked := false
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-f.wake:
			asked = true
		case <-tick.C:
			now := stamps(f.cfg.all())
			settled := same(now, changing)
			changing = now
			if same(now, f.seen) || !settled {
				continue
			}
		}
		b, err := f.read(have)
		if err == nil && b.Version.Token == have.Version.Token {
			f.report(have, nil)
			if asked {
				f.log.Info("files read again, nothing has changed", "version", have.Version)
			}
			continue
		}
		f.report(b, err)
		if err != nil {
			f.log.Error("new files refused, the old ones stay in use", "err", err, "version", have.Version)
			continue
		}
		return b, nil
	}
}

func (f *Files) report(b *Bundle, err error) {
	s := SourceStatus{Kind: "files", From: f.cfg.Nodes, At: time.Now()}
	if b != nil {
		s.Version = b.Version
	} else {
		s.Version = f.Status().Version
	}
	if err != nil {
		s.Error = err.Error()
	}
	f.status.Store(&s)
}

// read makes a bundle of the files as they are and compiles it.
func (f *Files) read(have *Bundle) (*Bundle, error) {
	before := stamps(f.cfg.all())
	f.seen = before
	contents, err := f.cfg.Load()
	if err != nil {
		return nil, err
	}
	if !same(stamps(f.cfg.all()), before) {
		f.seen = nil // they are looked at again
		return nil, errors.New("the files changed while they were read")
	}
	if have != nil {
		if err := f.cfg.emptied(have.Snapshot, contents.Snapshot); err != nil {
			return nil, err
		}
	}
	now := time.Now()
	// The time serves as number, so that it also rises from one start to the next.
	number := max(uint64(max(now.Unix(), 1)), f.number+1)
	b, err := NewBundle(f.origin, number, now, contents)
	if err != nil {
		return nil, err
	}
	if _, err := b.Compile(have); err != nil {
		return nil, err
	}
	f.number = number
	return b, nil
}
