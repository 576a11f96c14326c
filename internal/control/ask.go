package control

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// asked is an answer that can be believed.
type asked struct {
	token     string
	unchanged bool
	body      []byte // unpacked
}

// ask asks the server at base for target, a path with its query, which may wait for so
// long. The body may have limit bytes, and about as many packed. Every error has an outcome.
func (c *client) ask(ctx context.Context, base, target string, wait time.Duration, limit int64) (asked, error) {
	return c.exchange(ctx, base, target, nil, wait, limit)
}

// tell is likewise, with a body that says something.
func (c *client) tell(ctx context.Context, base, target string, said body, limit int64) (asked, error) {
	return c.exchange(ctx, base, target, &said, 0, limit)
}

func (c *client) exchange(ctx context.Context, base, target string, said *body, wait time.Duration, limit int64) (asked, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+answerTime+bodyTime)
	defer cancel()
	quiet := time.AfterFunc(wait+answerTime, cancel)
	defer quiet.Stop()

	req, signature, err := c.question(ctx, strings.TrimSuffix(base, "/")+target, said)
	if err != nil {
		return asked{}, fail(Unreachable, "%w", err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return asked{}, fail(Unreachable, "%w", withoutURL(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNotModified {
		return asked{}, refused(resp)
	}
	most := limit + limit/64 + 1<<10 // packing makes some things bigger
	if resp.ContentLength > most {
		return asked{}, fail(Damaged, "the answer has %d bytes, at most %d are read", resp.ContentLength, most)
	}
	packed, err := readAll(&lively{resp.Body, quiet}, most)
	if errors.Is(err, errTooBig) {
		return asked{}, fail(Damaged, "the answer has more than %d bytes", most)
	}
	if err != nil {
		return asked{}, fail(Unreachable, "the answer broke off: %w", err)
	}
	signed := resp.Header.Get(signatureField)
	if signed == "" && c.cluster.Enabled() {
		return asked{}, fail(Forged, "the answer is not signed: give that server the cluster key of this node")
	}
	a := answer{signature, resp.StatusCode, resp.Header.Get("Content-Encoding"), resp.Header.Get("Etag"), sha256.Sum256(packed)}
	if err := a.verify(c.cluster, c.now(), signed); err != nil {
		return asked{}, fail(Forged, "the answer is not believed: %w", err)
	}
	out := asked{token: strings.Trim(a.etag, `"`), unchanged: resp.StatusCode == http.StatusNotModified}
	if out.body, err = unpack(a.encoding, packed, limit); err != nil {
		return asked{}, fail(Damaged, "the answer cannot be unpacked: %w", err)
	}
	return out, nil
}

// question returns a request, signed, and its signature. said is nil for one without a
// body.
func (c *client) question(ctx context.Context, url string, said *body) (*http.Request, string, error) {
	method, content, encoding := http.MethodGet, io.Reader(nil), ""
	var sum *[sha256.Size]byte
	if said != nil {
		method, content, encoding, sum = http.MethodPost, bytes.NewReader(said.bytes), said.encoding.String(), &said.sum
	}
	req, err := http.NewRequestWithContext(ctx, method, url, content)
	if err != nil {
		return nil, "", err
	}
	q := question{node: c.node, nonce: rand.Text(), method: method, target: req.URL.RequestURI(), encoding: encoding, sum: sum}
	signature := q.sign(c.cluster, c.now())
	h := req.Header
	h.Set("Accept-Encoding", zstandard.String()+", "+gzipped.String())
	h.Set(nodeField, q.node)
	h.Set(nonceField, q.nonce)
	if signature != "" {
		h.Set(signatureField, signature)
	}
	if said != nil {
		h.Set("Content-Type", "application/json")
		h.Set(digestField, hex.EncodeToString(said.sum[:]))
	}
	if encoding != "" {
		h.Set("Content-Encoding", encoding)
	}
	return req, signature, nil
}

// withoutURL takes the URL off an error: whoever tells it names the server already.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// refused returns the error for an answer that is none.
func refused(resp *http.Response) error {
	after := time.Duration(0)
	if n, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 5); err == nil {
		after = time.Duration(n) * time.Second
	}
	return &failure{Refused, fmt.Errorf("%s: %s", resp.Status, refusalText(resp)), after}
}

// refusalText returns what a server says of a refusal.
func refusalText(resp *http.Response) string {
	var said struct{ Error, Reason string }
	b, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil || json.Unmarshal(b, &said) != nil || said.Error == "" {
		return fmt.Sprintf("%.100q", b)
	}
	return fmt.Sprintf("%.400s (%.40s)", said.Error, said.Reason)
}

// lively is a body that may take its time as long as something comes.
type lively struct {
	body  io.Reader
	quiet *time.Timer
}

// Read reads on and allows for the next silence.
func (l *lively) Read(b []byte) (int, error) {
	l.quiet.Reset(silence)
	return l.body.Read(b)
}
