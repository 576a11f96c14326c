package geo

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oschwald/maxminddb-golang/v2"
)

const (
	// MaxMMDBBytes bounds an mmdb file; the largest sold are about a third of it.
	MaxMMDBBytes = 1 << 30
	// maxTerm bounds a name in an mmdb file; longer ones are not names.
	maxTerm = 256
)

// Options says how the names of mmdb files become ours.
type Options struct {
	// Regions and ISPs map what an mmdb file says to our names; what they do not list
	// is unknown. A nil map takes the names as they are.
	//
	// The names of a region are, the most precise first, the country with its
	// subdivision as in ISO 3166-2 ("CN-BJ"), the country ("CN") and the continent
	// ("AS"). Those of an ISP are its name, the organisation of its AS, and the AS
	// number ("AS4134"). The first one that the map lists counts.
	Regions, ISPs map[string]string
	// RegionFields and ISPFields are where the names stand in a record, nil for
	// those of the GeoIP2 and GeoLite2 files. A field is a path of keys and indexes
	// separated by dots; several, joined by "+", make one name with "-" between:
	// "country.iso_code+subdivisions.0.iso_code". A number in ISPFields is an AS.
	RegionFields, ISPFields []string
	// More are further mmdb files, each for what those before it do not say: a city
	// and an ASN file are two.
	More [][]byte
}

// Where the names stand in GeoIP2 and GeoLite2 files, and those that imitate them.
var (
	regionFields = []string{"country.iso_code+subdivisions.0.iso_code", "country.iso_code", "continent.code"}
	ispFields    = []string{
		"isp", "traits.isp",
		"autonomous_system_organization", "traits.autonomous_system_organization",
		"autonomous_system_number", "traits.autonomous_system_number",
	}
)

// Database is an mmdb file in a table.
type Database struct {
	Type     string    `json:"type"` // as it calls itself
	Built    time.Time `json:"built"`
	Networks int       `json:"networks"`
}

// databases reads mmdb files.
func (b *builder) databases(files [][]byte, opt Options) (families, error) {
	out := families{flatten(nil), flatten(nil)}
	regions, err := newTerms("region", regionFields, opt.RegionFields, opt.Regions)
	if err != nil {
		return out, err
	}
	isps, err := newTerms("ISP", ispFields, opt.ISPFields, opt.ISPs)
	if err != nil {
		return out, err
	}
	for i, file := range files {
		found, err := b.database(file, regions, isps)
		if err != nil {
			return out, fmt.Errorf("mmdb file %d: %w", i+1, err)
		}
		for f := range out {
			out[f] = overlay(out[f], found[f], b.fill)
		}
	}
	return out, nil
}

func (b *builder) database(file []byte, regions, isps *terms) (families, error) {
	if len(file) > MaxMMDBBytes {
		return families{}, fmt.Errorf("has %d bytes, at most %d are read", len(file), MaxMMDBBytes)
	}
	r, err := maxminddb.OpenBytes(file)
	if err != nil {
		return families{}, fmt.Errorf("not an mmdb file, or a damaged one: %w", err)
	}
	t, err := newTree(file, r.Metadata)
	if err != nil {
		return families{}, fmt.Errorf("%s: %w", clip(r.Metadata.DatabaseType), err)
	}
	values := map[uint32]uint32{} // of the records by their offsets
	t.value = func(offset uint32) (uint32, error) {
		v, ok := values[offset]
		if ok {
			return v, nil
		}
		record := r.LookupOffset(uintptr(offset))
		var pair Pair
		if pair.Region, err = regions.name(record); err == nil {
			pair.ISP, err = isps.name(record)
		}
		if err != nil {
			return 0, fmt.Errorf("a record is damaged, fetch the file again: %w", err)
		}
		if pair != (Pair{}) {
			v = b.value(pair, SourceMMDB)
		}
		values[offset] = v
		return v, nil
	}
	out, err := t.families(r.Metadata.IPVersion)
	if err != nil {
		return families{}, fmt.Errorf("%s: %w", clip(r.Metadata.DatabaseType), err)
	}
	if len(out[0]) == 1 && len(out[1]) == 1 && out[0][0].value == unknown && out[1][0].value == unknown {
		return families{}, fmt.Errorf("%s: none of its %d networks has a region or an ISP that is listed: look at a record of it (mmdblookup --file FILE --ip ADDRESS) and correct the names or the fields",
			clip(r.Metadata.DatabaseType), t.networks)
	}
	b.stats.Databases = append(b.stats.Databases, Database{
		Type: strings.Clone(clip(r.Metadata.DatabaseType)), Built: r.Metadata.BuildTime().UTC(), Networks: t.networks,
	})
	return out, nil
}

// terms finds the name of a region or an ISP in a record.
type terms struct {
	fields [][][]any         // each a list of paths
	names  map[string]string // nil: as they are
	as     bool              // numbers are those of autonomous systems
}

func newTerms(what string, usual, fields []string, names map[string]string) (*terms, error) {
	if fields == nil {
		fields = usual
	}
	t := &terms{names: names, as: what == "ISP"}
	for from, to := range names {
		if err := checkName(what, to); err != nil {
			return nil, fmt.Errorf("name %q of the mmdb: %w", clip(from), err)
		}
	}
	for _, f := range fields {
		var paths [][]any
		for part := range strings.SplitSeq(f, "+") {
			var path []any
			for step := range strings.SplitSeq(strings.TrimSpace(part), ".") {
				if step == "" {
					return nil, fmt.Errorf("%s field %q has an empty key: write a path such as country.iso_code", what, f)
				}
				if n, err := strconv.Atoi(step); err == nil {
					path = append(path, n)
				} else {
					path = append(path, step)
				}
			}
			paths = append(paths, path)
		}
		t.fields = append(t.fields, paths)
	}
	return t, nil
}

// name returns our name for what the record says, empty if it says nothing of use.
func (t *terms) name(record maxminddb.Result) (string, error) {
	for _, paths := range t.fields {
		term, err := t.term(record, paths)
		if err != nil {
			return "", err
		}
		if term == "" {
			continue
		}
		if t.names == nil {
			return term, nil
		}
		if name, ok := t.names[term]; ok {
			return name, nil
		}
	}
	return "", nil
}

// term returns what the record has at the paths, empty if it lacks one of them.
func (t *terms) term(record maxminddb.Result, paths [][]any) (string, error) {
	var joined string
	for i, path := range paths {
		var v any
		err := record.DecodePath(&v, path...)
		if _, damaged := errors.AsType[maxminddb.InvalidDatabaseError](err); damaged {
			return "", err
		}
		s := "" // a path through something else than a map or an array is not there either
		if err == nil {
			s = t.text(v)
		}
		if s == "" {
			return "", nil
		}
		if i > 0 {
			joined += "-"
		}
		joined += s
	}
	if len(joined) > maxTerm || !utf8.ValidString(joined) {
		return "", nil
	}
	return joined, nil
}

func (t *terms) text(v any) string {
	var n uint64
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(v)
	case uint64: // and the narrower ones
		n = v
	case int32:
		if v < 0 {
			return ""
		}
		n = uint64(v)
	default:
		return ""
	}
	if t.as {
		return "AS" + strconv.FormatUint(n, 10)
	}
	return strconv.FormatUint(n, 10)
}
