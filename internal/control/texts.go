package control

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"millrace/internal/document"
	"millrace/internal/geo"
	"millrace/internal/sched"
)

// Texts are the documents that operators of routers write, as [FilesConfig] names files:
// all but the nodes, which tell of themselves.
type Texts struct {
	Network  []byte // YAML: regions, quality, costs, health, geo
	Domains  []byte // YAML: zones, domains, overrides
	Coverage []byte // lines of CIDR REGION ISP
}

// Parse reads the texts and checks what they say, each for itself and all together. An
// empty one says nothing. Whether the nodes exist that overrides name is not asked: they
// come and go. The error joins everything that is wrong, each with the name of the text
// and, where it can be told, the line. It keeps Coverage.
func (t Texts) Parse() (Contents, error) {
	nodes := nodesFile{Costs: sched.DefaultCosts(), Health: sched.DefaultHealth()}
	var domains domainsFile
	nodeLines, err1 := decodeText("network", t.Network, &nodes)
	domainLines, err2 := decodeText("domains", t.Domains, &domains)
	if err1 == nil && len(nodes.Nodes) > 0 {
		err1 = &document.Fault{File: "network", Line: nodeLines.Of("nodes"), Err: errors.New("nodes: nodes tell of themselves: remove the list")}
	}
	out := Contents{Geo: nodes.Geo, Snapshot: &sched.Snapshot{
		Regions: nodes.Regions, Quality: nodes.Quality, Costs: nodes.Costs, Health: nodes.Health,
		Zones: domains.Zones, Domains: domains.Domains, Overrides: domains.Overrides,
	}}
	errs := []error{err1, err2}
	if err1 == nil && err2 == nil { // else it would complain of what was not read
		tried := *out.Snapshot
		tried.Nodes = standIns(&tried)
		errs = append(errs, located(tried.Validate(), []place{{"network", nodeLines}, {"domains", domainLines}}))
	}
	if len(bytes.TrimSpace(t.Coverage)) > 0 {
		if len(t.Coverage) > geo.MaxCoverageBytes {
			errs = append(errs, fmt.Errorf("coverage has %d bytes, at most %d are read", len(t.Coverage), geo.MaxCoverageBytes))
		} else if _, err := geo.ParseCoverage(t.Coverage); err != nil {
			errs = append(errs, &document.Fault{File: "coverage", Err: err})
		}
		out.Coverage = NewBlob(t.Coverage)
	}
	if err := errors.Join(errs...); err != nil {
		return Contents{}, err
	}
	return out, nil
}

func decodeText(name string, b []byte, into any) (document.Lines, error) {
	if len(b) > maxYAML {
		return nil, fmt.Errorf("%s has %d bytes, at most %d are read", name, len(b), maxYAML)
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return document.Lines{}, nil
	}
	return document.Decode(name, b, into)
}

// standIns returns a node for each that the overrides of s name, so that all else in
// them can be checked.
func standIns(s *sched.Snapshot) []sched.Node {
	region := "any"
	if len(s.Regions) > 0 {
		region = s.Regions[0].Name
	}
	seen := map[string]bool{}
	var out []sched.Node
	for i := range s.Overrides {
		for _, list := range [][]string{s.Overrides[i].Pin, s.Overrides[i].Ban} {
			for _, target := range list {
				if seen[target] || len(out) == sched.MaxNodes {
					continue
				}
				seen[target] = true
				n := sched.Node{ID: target, Role: "center", Region: region, Capacity: 1}
				if dc, ok := strings.CutPrefix(target, "dc:"); ok {
					n.ID, n.Datacenter = fmt.Sprintf("any-%d", len(out)), dc
				}
				out = append(out, n)
			}
		}
	}
	return out
}
