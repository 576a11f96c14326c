package control

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"millrace/internal/auth"
)

// Dial opens a connection, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// client asks servers. It may be used from any goroutine.
type client struct {
	node    string
	cluster *auth.Cluster
	http    http.Client
	now     func() time.Time
}

// Bounds of an answer in time.
const (
	// answerTime is how long an answer may be in coming, beyond what it was allowed to wait.
	answerTime = 10 * time.Second
	// silence is how long a body may stand still.
	silence = 10 * time.Second
	// bodyTime is how long a body may take in all: MaxBlob at 15 Mbit/s.
	bodyTime = 10 * time.Minute
)

// maxHeader is far more than our own header has.
const maxHeader = 8 << 10

func newClient(node string, cluster *auth.Cluster, dial Dial, conf *tls.Config) *client {
	return &client{node: node, cluster: cluster, now: time.Now, http: http.Client{
		Transport: &http.Transport{
			DialContext: orNet(dial), TLSClientConfig: conf, TLSHandshakeTimeout: answerTime / 2, DisableCompression: true,
			MaxResponseHeaderBytes: maxHeader, MaxIdleConnsPerHost: askers, IdleConnTimeout: time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// orNet returns dial, or what net does.
func orNet(dial Dial) Dial {
	if dial == nil {
		dial = (&net.Dialer{Timeout: answerTime / 2, KeepAlive: 15 * time.Second}).DialContext
	}
	return dial
}

func (c *client) close() { c.http.CloseIdleConnections() }
