package control

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"sync"
	"time"

	"millrace/internal/auth"
	"millrace/internal/sched"
)

// Bounds of what is taken from files and from servers, each checked before memory is
// given to it.
const (
	// MaxSnapshot bounds a bundle without its blobs. 5,000 nodes and as many domains
	// are about 5 MiB.
	MaxSnapshot = 64 << 20
	// MaxMMDB is how many mmdb files there may be: a city file, an ISP file and one for
	// the networks of the operator are three.
	MaxMMDB = 8
	// maxObjects bounds the objects in a bundle: an empty one is two bytes of JSON and
	// some hundred of memory.
	maxObjects = 1 << 20
)

// Version names a bundle.
type Version struct {
	// Origin is who made it: the store of routers, or the files of a scheduler.
	// Numbers are compared within an origin alone.
	Origin string `json:"origin"`
	// Number rises with every change.
	Number uint64 `json:"number"`
	// Token is the same for equal contents, whoever made them, and for no others: 32
	// hexadecimal digits.
	Token string `json:"token"`
}

// String returns the version for logs.
func (v Version) String() string {
	if v.Token == "" {
		return "none"
	}
	return v.Origin + "/" + strconv.FormatUint(v.Number, 10) + "/" + v.Token[:min(8, len(v.Token))]
}

// GeoNames says how the names of mmdb files become those of regions and ISPs; see
// [geo.Options].
type GeoNames struct {
	Regions      map[string]string `json:"regions,omitempty"`
	ISPs         map[string]string `json:"isps,omitempty"`
	RegionFields []string          `json:"region_fields,omitempty"`
	ISPFields    []string          `json:"isp_fields,omitempty"`
}

// Bundle is one version of all that placing needs, apart from how the nodes fare. It
// is immutable and may be shared.
type Bundle struct {
	Version  Version
	Made     time.Time
	Snapshot *sched.Snapshot
	Geo      GeoNames
	Coverage *Blob   // nil: none
	MMDB     []*Blob // in the order in which they are asked

	document []byte // as it is sent

	compile  sync.Once
	compiled Compiled
	fault    error
}

// format is how a bundle is written; a reader refuses others. It changes only when an
// old reader would misread what a new one writes.
const format = 1

// wire is a bundle as it is sent and kept. The snapshot stays as its maker wrote it,
// so that the token is the same for a reader that does not know all of its keys.
type wire struct {
	Format   int             `json:"format"`
	Version  Version         `json:"version"`
	Made     time.Time       `json:"made"`
	Snapshot json.RawMessage `json:"snapshot"`
	Geo      json.RawMessage `json:"geo"`
	Coverage *Blob           `json:"coverage,omitempty"`
	MMDB     []*Blob         `json:"mmdb,omitempty"`
}

// token returns the token of what w holds.
func (w *wire) token() string {
	h := sha256.New()
	part(h, []byte("millrace-bundle-"+strconv.Itoa(w.Format)))
	part(h, w.Snapshot)
	part(h, w.Geo)
	for _, b := range append([]*Blob{w.Coverage}, w.MMDB...) {
		if b == nil {
			b = &Blob{}
		}
		part(h, []byte(b.Sum))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// part adds b with its length before it, so that no two lists of parts are the same.
func part(h hash.Hash, b []byte) {
	h.Write(strconv.AppendInt(nil, int64(len(b)), 10))
	h.Write([]byte{':'})
	h.Write(b)
}

// Contents is what a bundle is made of.
type Contents struct {
	Snapshot *sched.Snapshot
	Geo      GeoNames
	Coverage *Blob
	MMDB     []*Blob
}

// NewBundle makes the bundle of that number of an origin. It keeps c and sets the
// version of its snapshot.
func NewBundle(origin string, number uint64, made time.Time, c Contents) (*Bundle, error) {
	c.Snapshot.Version = 0 // it is no part of the content
	w := wire{Format: format, Version: Version{Origin: origin, Number: number}, Made: made.UTC(), Coverage: c.Coverage, MMDB: c.MMDB}
	var err error
	if w.Snapshot, err = json.Marshal(c.Snapshot); err != nil {
		return nil, err
	}
	if w.Geo, err = json.Marshal(c.Geo); err != nil {
		return nil, err
	}
	w.Version.Token = w.token()
	if err := w.check(); err != nil {
		return nil, err
	}
	document, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	if len(document) > MaxSnapshot {
		return nil, fmt.Errorf("the snapshot is %d bytes as JSON, at most %d are allowed: have fewer nodes or domains", len(document), MaxSnapshot)
	}
	c.Snapshot.Version = number
	return &Bundle{
		Version: w.Version, Made: w.Made, Snapshot: c.Snapshot, Geo: c.Geo, Coverage: c.Coverage, MMDB: c.MMDB, document: document,
	}, nil
}

// ParseBundle reads a bundle as it was sent or kept. Its blobs are not here yet. The
// error says what is wrong; the bundle is then nil. It does not keep document.
func ParseBundle(document []byte) (*Bundle, error) {
	if len(document) > MaxSnapshot {
		return nil, fmt.Errorf("the snapshot has %d bytes, at most %d are read", len(document), MaxSnapshot)
	}
	if n := bytes.Count(document, []byte("{")); n > maxObjects {
		return nil, fmt.Errorf("the snapshot has %d objects, at most %d are read", n, maxObjects)
	}
	document = bytes.Clone(document)
	var w wire
	if err := json.Unmarshal(document, &w); err != nil {
		return nil, fmt.Errorf("not a snapshot: %w", err)
	}
	if err := w.check(); err != nil {
		return nil, err
	}
	if token := w.token(); token != w.Version.Token {
		return nil, fmt.Errorf("the snapshot is damaged: its content is %s, its token %s", token, w.Version.Token)
	}
	b := &Bundle{Version: w.Version, Made: w.Made, Coverage: w.Coverage, MMDB: w.MMDB, Snapshot: &sched.Snapshot{}, document: document}
	if err := json.Unmarshal(w.Snapshot, b.Snapshot); err != nil {
		return nil, fmt.Errorf("the snapshot: %w", err)
	}
	if err := json.Unmarshal(w.Geo, &b.Geo); err != nil {
		return nil, fmt.Errorf("the names of places: %w", err)
	}
	b.Snapshot.Version = w.Version.Number
	if err := b.Snapshot.Validate(); err != nil {
		return nil, fmt.Errorf("the snapshot %v: %w", b.Version, err)
	}
	return b, nil
}

// check looks at all but the snapshot.
func (w *wire) check() error {
	if w.Format != format {
		return fmt.Errorf("the snapshot has format %d and this program reads %d: run the same version everywhere", w.Format, format)
	}
	if !auth.ValidNodeID(w.Version.Origin) {
		return fmt.Errorf("the origin of a snapshot is %.80q: want letters, digits, dots, underscores and hyphens, at most %d", w.Version.Origin, auth.MaxNodeID)
	}
	if !bytes.HasPrefix(w.Snapshot, []byte("{")) || !bytes.HasPrefix(w.Geo, []byte("{")) {
		return errors.New("the snapshot is missing, or the names of places are")
	}
	if len(w.MMDB) > MaxMMDB {
		return fmt.Errorf("the snapshot has %d mmdb files, at most %d are read", len(w.MMDB), MaxMMDB)
	}
	if slices.Contains(w.MMDB, nil) {
		return errors.New("the snapshot has an mmdb file without a sum")
	}
	for _, b := range append([]*Blob{w.Coverage}, w.MMDB...) {
		if err := b.check(); err != nil {
			return err
		}
	}
	return nil
}

// blobs returns the blobs of b.
func (b *Bundle) blobs() []*Blob {
	if b.Coverage == nil {
		return b.MMDB
	}
	return append([]*Blob{b.Coverage}, b.MMDB...)
}
