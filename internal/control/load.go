package control

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"time"

	"millrace/internal/document"
	"millrace/internal/geo"
	"millrace/internal/sched"
)

// nodesFile is what the file of nodes may say.
type nodesFile struct {
	Nodes   []sched.Node       `json:"nodes"`
	Regions []sched.Region     `json:"regions"`
	Quality []sched.Quality    `json:"quality"`
	Costs   sched.Costs        `json:"costs"`
	Health  sched.HealthConfig `json:"health"`
	Geo     GeoNames           `json:"geo"`
}

// domainsFile is what the file of domains may say.
type domainsFile struct {
	Zones     []sched.Zone     `json:"zones"`
	Domains   []sched.Domain   `json:"domains"`
	Overrides []sched.Override `json:"overrides"`
}

// maxYAML bounds a YAML file: 5,000 nodes are about 2 MiB, and reading takes ten times
// as much memory.
const maxYAML = 32 << 20

// all returns the names of the files.
func (c FilesConfig) all() []string {
	out := []string{c.Nodes, c.Domains}
	if c.Coverage != "" {
		out = append(out, c.Coverage)
	}
	return append(out, c.MMDB...)
}

// Load reads the files and checks what they say. The error joins everything that is
// wrong, each with its file and, where it can be told, its line.
func (c FilesConfig) Load() (Contents, error) {
	nodes := nodesFile{Costs: sched.DefaultCosts(), Health: sched.DefaultHealth()}
	var domains domainsFile
	nodeLines, err1 := decodeFile(c.Nodes, &nodes)
	domainLines, err2 := decodeFile(c.Domains, &domains)
	out := Contents{Geo: nodes.Geo, Snapshot: &sched.Snapshot{
		Nodes: nodes.Nodes, Regions: nodes.Regions, Quality: nodes.Quality, Costs: nodes.Costs, Health: nodes.Health,
		Zones: domains.Zones, Domains: domains.Domains, Overrides: domains.Overrides,
	}}
	errs := []error{err1, err2}
	if err1 == nil && err2 == nil { // else it would complain of what was not read
		errs = append(errs, located(out.Snapshot.Validate(), []place{{c.Nodes, nodeLines}, {c.Domains, domainLines}}))
	}
	var err error
	if c.Coverage != "" {
		if out.Coverage, err = loadBlob(c.Coverage, geo.MaxCoverageBytes); err == nil {
			text, _ := out.Coverage.Data() // it is in memory
			if _, err = geo.ParseCoverage(text); err != nil {
				err = &document.Fault{File: c.Coverage, Err: err}
			}
		}
		errs = append(errs, err)
	}
	for _, name := range c.MMDB {
		b, err := loadBlob(name, geo.MaxMMDBBytes)
		out.MMDB, errs = append(out.MMDB, b), append(errs, err)
	}
	return out, errors.Join(errs...)
}

// emptied tells what the files have none of any more. One that is being written in its
// place, or was cut off by a full disk, is often valid, and must not end the service.
func (c FilesConfig) emptied(before, after *sched.Snapshot) error {
	const meant = "taken for a mistake; if it is none, start the scheduler again"
	var errs []error
	if n := edges(before.Nodes); n > 0 && edges(after.Nodes) == 0 {
		errs = append(errs, fmt.Errorf("%s: none of %d edges is left: %s", c.Nodes, n, meant))
	}
	if n := len(before.Domains); n > 0 && len(after.Domains) == 0 {
		errs = append(errs, fmt.Errorf("%s: none of %d domains is left: %s", c.Domains, n, meant))
	}
	return errors.Join(errs...)
}

func edges(nodes []sched.Node) (n int) {
	for i := range nodes {
		if nodes[i].Role == "edge" {
			n++
		}
	}
	return n
}

func decodeFile(name string, into any) (document.Lines, error) {
	b, err := readFile(name, maxYAML)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, fmt.Errorf("%s is empty: was it cut off while it was written?", name)
	}
	return document.Decode(name, b, into)
}

func loadBlob(name string, limit int64) (*Blob, error) {
	b, err := readFile(name, limit)
	if err != nil {
		return nil, err
	}
	return NewBlob(b), nil
}

// readFile reads a file of at most limit bytes. Memory is taken for as much as there
// is, not for what somebody says there is.
func readFile(name string, limit int64) ([]byte, error) {
	info, err := os.Stat(name) // before it is opened: opening a pipe would wait for a writer
	if err != nil {
		return nil, pathError(err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file: name one, because it is read again", name)
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s has %d bytes, at most %d are read: is it the right file?", name, info.Size(), limit)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, pathError(err)
	}
	defer f.Close()
	var b bytes.Buffer
	b.Grow(int(info.Size()) + bytes.MinRead)
	n, err := io.Copy(&b, io.LimitReader(f, limit+1))
	if err != nil {
		return nil, pathError(err)
	}
	if n > limit {
		return nil, fmt.Errorf("%s has more than %d bytes: is it the right file?", name, limit)
	}
	return b.Bytes(), nil
}

// pathError shortens "open /x: reason" to "/x: reason".
func pathError(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", p.Path, p.Err)
	}
	return err
}

// place is a file and where its keys stand.
type place struct {
	file  string
	lines document.Lines
}

// faultPath is how a fault of a snapshot begins: "nodes[3] bj-1: capacity: …", or
// "costs: load: …".
var faultPath = regexp.MustCompile(`^([a-z_]+(?:\[\d+\])?)(?: [^:]*)?(?:: ([a-z0-9_]+):)?`)

// pathOf returns the path of what a fault is about, as [document.Lines] has them.
func pathOf(fault string) string {
	m := faultPath.FindStringSubmatch(fault)
	if m == nil {
		return ""
	}
	if m[2] == "" {
		return m[1]
	}
	return m[1] + "." + m[2]
}

// located puts the file and line in front of each of the faults in err.
func located(err error, places []place) error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		var out []error
		for _, e := range joined.Unwrap() {
			out = append(out, located(e, places))
		}
		return errors.Join(out...)
	}
	if err == nil {
		return nil
	}
	path := pathOf(err.Error())
	for _, p := range places {
		if line := p.lines.Of(path); line > 0 {
			return &document.Fault{File: p.file, Line: line, Err: err}
		}
	}
	return err
}

// stamp tells versions of a file apart.
type stamp struct {
	changed time.Time
	size    int64
}

// stamps returns those of files; that of one which cannot be looked at is zero.
func stamps(files []string) []stamp {
	out := make([]stamp, len(files))
	for i, name := range files {
		if info, err := os.Stat(name); err == nil {
			out[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return out
}

func same(a, b []stamp) bool { return slices.Equal(a, b) }

// LoadMMDB reads a file with places of addresses, for a bundle.
func LoadMMDB(name string) (*Blob, error) { return loadBlob(name, geo.MaxMMDBBytes) }
