package console

import (
	"bytes"
	"encoding/json"
	"io"
	"net/netip"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"

	"millrace/internal/plan"
	"millrace/internal/stream"
)

// Bounds of bodies.
const (
	maxSmall = 16 << 10 // log-ins
	maxEdits = 2 * plan.MaxEditBytes
	maxText  = 48 << 20 // documents, in JSON; as it is sent, the limit of the server counts
)

// read takes the body of a call into v, strictly.
func (a *call) read(v any, limit int) error {
	if kind, _, _ := strings.Cut(string(a.Request.Header.ContentType()), ";"); strings.TrimSpace(strings.ToLower(kind)) != "application/json" {
		return refuse(BadRequest, "send the body with Content-Type: application/json")
	}
	b, err := a.body(limit)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return refuse(BadRequest, "the body: %v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return refuse(BadRequest, "the body: more follows the JSON value")
	}
	return nil
}

// body returns the body of a call, unpacked.
func (a *call) body(limit int) ([]byte, error) {
	b := a.PostBody()
	switch encoding := strings.ToLower(string(a.Request.Header.ContentEncoding())); encoding {
	case "", "identity":
	case "gzip":
		r, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, refuse(BadRequest, "the body is no gzip: %v", err)
		}
		if b, err = io.ReadAll(io.LimitReader(r, int64(limit)+1)); err != nil {
			return nil, refuse(BadRequest, "the body: %v", err)
		}
	default:
		return nil, refuse(BadRequest, "the body is in %.20q: send it plain, or by gzip", encoding)
	}
	if len(b) > limit {
		return nil, refuse(TooBig, "the body is larger than %d bytes", limit)
	}
	return b, nil
}

// text returns a parameter of the query.
func (a *call) text(name string) string { return string(a.QueryArgs().Peek(name)) }

// number returns a parameter that is a number, or what stands for a missing one.
func (a *call) number(name string, missing, most uint64) (uint64, error) {
	s := a.text(name)
	if s == "" {
		return missing, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n > most {
		return 0, refuse(BadRequest, "%s is %.40q: use a number from 0 to %d", name, s, most)
	}
	return n, nil
}

// stream returns a parameter that is the name of a stream.
func (a *call) stream(name string) (stream.Name, error) {
	n, err := stream.ParsePath("/" + strings.TrimPrefix(a.text(name), "/"))
	if err != nil {
		return "", refuse(BadRequest, "%s: %v", name, err)
	}
	return n, nil
}

func (a *call) peer() netip.Addr {
	p, err := netip.ParseAddrPort(a.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return p.Addr()
}
