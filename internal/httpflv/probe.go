package httpflv

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"millrace/internal/auth"
)

// ErrDraining is returned by a [Prober] for a node that shuts down.
var ErrDraining = errors.New("the node is shutting down")

// Prober asks other nodes whether they live. Its connections stay open in between.
type Prober struct{ client http.Client }

// NewProber returns a Prober. conf is used for https and may be nil; dial opens the
// TCP connections.
func NewProber(conf *tls.Config, dial func(ctx context.Context, network, addr string) (net.Conn, error)) *Prober {
	return &Prober{http.Client{
		Transport: &http.Transport{
			TLSClientConfig: conf, DialContext: dial, MaxIdleConnsPerHost: 1, MaxConnsPerHost: 2,
			IdleConnTimeout: time.Minute, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes the connections that are not in use.
func (p *Prober) Close() { p.client.CloseIdleConnections() }

// Ask asks the node at base and returns what it says of itself, without the names of its
// streams. Its id is valid unless there is an error other than [ErrDraining].
func (p *Prober) Ask(ctx context.Context, base string, m auth.Mark, signature string) (Figures, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+probePath+"?"+streamsParam+"=0", nil)
	if err != nil {
		return Figures{}, err
	}
	for line := range strings.Lines(string(AppendMarks(nil, Marks{Mark: m, Signature: signature}))) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		req.Header.Set(name, value)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return Figures{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxFigures))
	if err != nil {
		return Figures{}, err
	}
	if resp.StatusCode != http.StatusOK {
		return Figures{}, fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(body)))
	}
	var said Figures
	if err := json.Unmarshal(body, &said); err != nil || !auth.ValidNodeID(said.Node) {
		return Figures{}, fmt.Errorf("%s%s is not a node: %.100q", base, probePath, body)
	}
	if said.Draining {
		return said, ErrDraining
	}
	return said, nil
}
