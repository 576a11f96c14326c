package listen

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Certificate is a TLS certificate in two PEM files that can be exchanged while in
// use. A new pair that cannot be read leaves the old one in place.
type Certificate struct {
	// Fixed at construction.
	certFile, keyFile string

	// Safe from any goroutine.
	current atomic.Pointer[tls.Certificate]

	// Guarded by mu.
	mu   sync.Mutex
	seen [2]stamp // of the files when they were last read, well or not
}

// stamp tells versions of a file apart.
type stamp struct {
	changed time.Time
	size    int64
}

// LoadCertificate reads a certificate, with its chain, and its key from PEM files.
func LoadCertificate(certFile, keyFile string) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile}
	return c, c.Reload()
}

// Name returns the first host name that the certificate is for, but for wildcards, ""
// without any.
func (c *Certificate) Name() string {
	leaf := c.current.Load().Leaf
	for _, name := range leaf.DNSNames {
		if !strings.Contains(name, "*") {
			return name
		}
	}
	return ""
}

// Reload reads the files again. On an error the old certificate stays.
func (c *Certificate) Reload() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = c.stamps()
	return c.loadLocked()
}

// Refresh reads the files again if they have changed, and reports whether they had.
func (c *Certificate) Refresh() (changed bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.stamps()
	if now == c.seen {
		return false, nil
	}
	c.seen = now
	return true, c.loadLocked()
}

// Run refreshes the certificate until ctx ends, so that a renewed one is used
// within the given time without a signal. Faults are logged once per change.
func (c *Certificate) Run(ctx context.Context, every time.Duration, log *slog.Logger) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		switch changed, err := c.Refresh(); {
		case err != nil:
			log.Error("new certificate refused, the old one stays", "err", err)
		case changed:
			log.Info("new certificate in use", "file", c.certFile, "expires", c.Expires())
		}
	}
}

func (c *Certificate) loadLocked() error {
	cert, err := os.ReadFile(c.certFile)
	if err != nil {
		return fmt.Errorf("cert_file: %w", pathError(err))
	}
	key, err := os.ReadFile(c.keyFile)
	if err != nil {
		return fmt.Errorf("key_file: %w", pathError(err))
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("cert_file %s with key_file %s: %w", c.certFile, c.keyFile, err)
	}
	if pair.Leaf == nil {
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return fmt.Errorf("cert_file %s: %w", c.certFile, err)
		}
	}
	c.current.Store(&pair)
	return nil
}

// pathError shortens "open /x: reason" to "/x: reason".
func pathError(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", p.Path, p.Err)
	}
	return err
}

func (c *Certificate) stamps() (out [2]stamp) {
	for i, name := range [2]string{c.certFile, c.keyFile} {
		if fi, err := os.Stat(name); err == nil {
			out[i] = stamp{fi.ModTime(), fi.Size()}
		}
	}
	return out
}

// GetCertificate is for [tls.Config].
func (c *Certificate) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.current.Load(), nil
}

// Expires returns the last moment at which clients accept the certificate.
func (c *Certificate) Expires() time.Time { return c.current.Load().Leaf.NotAfter }

// Config returns a configuration for servers that always uses the current
// certificate.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.GetCertificate}
}
