package control

import (
	"fmt"
	"maps"
	"slices"

	"millrace/internal/geo"
	"millrace/internal/sched"
)

// Compiled is a bundle made ready for placing.
type Compiled struct {
	Plan  *sched.Plan
	Table *geo.Table
}

// Compile makes b ready. It is done once and takes up to a second or two; later calls
// return the same. Of before, the bundle in use, the geo table is taken over if it is
// made of the same files; before may be nil.
func (b *Bundle) Compile(before *Bundle) (Compiled, error) {
	b.compile.Do(func() { b.compiled, b.fault = b.compileOnce(before) })
	return b.compiled, b.fault
}

func (b *Bundle) compileOnce(before *Bundle) (Compiled, error) {
	var c Compiled
	if before != nil && before.compiled.Table != nil && b.samePlaces(before) {
		c.Table = before.compiled.Table
	} else {
		table, err := b.places()
		if err != nil {
			return c, err
		}
		c.Table = table
	}
	plan, err := sched.Compile(b.Snapshot, c.Table.Pairs())
	if err != nil {
		return Compiled{}, fmt.Errorf("the snapshot %v: %w", b.Version, err)
	}
	c.Plan = plan
	return c, nil
}

// samePlaces reports whether the geo tables of b and o are the same.
func (b *Bundle) samePlaces(o *Bundle) bool {
	return slices.EqualFunc(b.blobs(), o.blobs(), func(x, y *Blob) bool { return x.Sum == y.Sum }) &&
		(b.Coverage == nil) == (o.Coverage == nil) &&
		maps.Equal(b.Geo.Regions, o.Geo.Regions) && maps.Equal(b.Geo.ISPs, o.Geo.ISPs) &&
		slices.Equal(b.Geo.RegionFields, o.Geo.RegionFields) && slices.Equal(b.Geo.ISPFields, o.Geo.ISPFields)
}

// places makes the geo table.
func (b *Bundle) places() (*geo.Table, error) {
	var coverage geo.Coverage
	if b.Coverage != nil {
		text, err := b.Coverage.Data()
		if err == nil {
			coverage, err = geo.ParseCoverage(text)
		}
		if err != nil {
			return nil, err
		}
	}
	files := make([][]byte, len(b.MMDB))
	for i, blob := range b.MMDB {
		data, err := blob.Data()
		if err != nil {
			return nil, err
		}
		files[i] = data
	}
	opt := geo.Options{
		Regions: b.Geo.Regions, ISPs: b.Geo.ISPs, RegionFields: b.Geo.RegionFields, ISPFields: b.Geo.ISPFields,
	}
	var first []byte
	if len(files) > 0 {
		first, opt.More = files[0], files[1:]
	}
	return geo.NewTable(coverage, first, opt)
}
