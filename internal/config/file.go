package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"millrace/internal/document"
)

// Origin is where a value came from.
type Origin struct {
	Name string // a file, an environment variable or a flag; "" for a default
	Line int    // in a file, else 0
}

// String returns the origin as errors show it.
func (o Origin) String() string {
	if o.Line > 0 {
		return fmt.Sprintf("%s:%d", o.Name, o.Line)
	}
	return o.Name
}

// value is what koanf merges: the raw value of one setting and its origin. To
// koanf it is one leaf, so a later source replaces the whole setting, also
// when that is a list or a map.
type value struct {
	Raw any
	Origin
}

// yamlFile is a koanf parser for one YAML file. It keeps scalars as written and
// remembers lines; unknown keys are errors.
type yamlFile struct {
	file     string
	settings []Setting
	problems []fault
}

// Marshal is there because koanf asks for it; files are never written.
func (d *yamlFile) Marshal(map[string]any) ([]byte, error) {
	return nil, errors.New("configuration files are not written")
}

// Unmarshal returns sections of values. Errors of YAML itself end it; those of
// single keys are collected in problems, so that all are told at once.
func (d *yamlFile) Unmarshal(b []byte) (map[string]any, error) {
	dec := yaml.NewDecoder(bytes.NewReader(b))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return map[string]any{}, nil // nothing but comments
		}
		at := document.Syntax(d.file, b, err)
		return nil, fault{Origin{at.File, at.Line}, "", at.Err}
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: more than one document in the file", d.file)
	}
	root := doc.Content[0]
	if document.IsNull(root) {
		return map[string]any{}, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: want keys and values at the top", d.file, root.Line)
	}
	return d.section("", root), nil
}

// fault is something that is wrong with a setting, or with where one should be.
type fault struct {
	Origin
	section string // at the top of the file; "" for none, and where that cannot be known
	err     error
}

// Error returns what is wrong, and where.
func (f fault) Error() string {
	if f.Name == "" {
		return document.Clip(f.err.Error())
	}
	return f.Origin.String() + ": " + document.Clip(f.err.Error())
}

// Unwrap returns what is wrong.
func (f fault) Unwrap() error { return f.err }

func (d *yamlFile) problem(n *yaml.Node, section string, err error) {
	top, _, _ := strings.Cut(section, ".")
	d.problems = append(d.problems, fault{Origin{d.file, n.Line}, top, err})
}

// section reads the keys of one section, or of the top of the file.
func (d *yamlFile) section(section string, n *yaml.Node) map[string]any {
	out := map[string]any{}
	settings, sections := d.names(section)
	seen := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		name := key.Value
		where := strings.TrimPrefix(section+"."+name, ".")
		if line, dup := seen[name]; dup {
			d.problem(key, section, fmt.Errorf("%s is already set on line %d", where, line))
			continue
		}
		seen[name] = key.Line
		switch {
		case slices.Contains(sections, name):
			if document.IsNull(val) {
				continue // every line of the section is commented out
			}
			if val.Kind != yaml.MappingNode {
				d.problem(key, section, fmt.Errorf("%s is a section: want keys and values below it", where))
				continue
			}
			out[name] = d.section(where, val)
		case slices.Contains(settings, name):
			if document.IsNull(val) {
				d.problem(key, section, fmt.Errorf("%s has no value", where))
				continue
			}
			raw, err := plain(val, 0)
			if err != nil {
				d.problem(key, section, fmt.Errorf("%s: %w", where, err))
				continue
			}
			out[name] = value{raw, Origin{d.file, key.Line}}
		default:
			err := document.Unknown("key", name, append(settings, sections...))
			if section != "" {
				err = fmt.Errorf("%s: %w", section, err)
			}
			d.problem(key, section, err)
		}
	}
	return out
}

// names returns what may stand in a section, or at the top of the file.
func (d *yamlFile) names(section string) (settings, sections []string) {
	for _, s := range d.settings {
		rest := s.Key
		if section != "" {
			var ok bool
			if rest, ok = strings.CutPrefix(s.Key, section+"."); !ok {
				continue
			}
		}
		name, _, deeper := strings.Cut(rest, ".")
		if !deeper {
			settings = append(settings, name)
		} else if !slices.Contains(sections, name) {
			sections = append(sections, name)
		}
	}
	return settings, sections
}

// maxDepth is how deep lists and maps may be nested in one setting; none of
// ours needs more than three, and an alias may not refer to itself.
const maxDepth = 8

// plain returns the value of n with scalars as written.
func plain(n *yaml.Node, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errors.New("nested too deep")
	}
	switch n.Kind {
	case yaml.ScalarNode:
		if document.IsNull(n) {
			return nil, fmt.Errorf("a value is missing on line %d", n.Line)
		}
		return n.Value, nil
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			v, err := plain(c, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			name := n.Content[i].Value
			if _, dup := out[name]; dup {
				return nil, fmt.Errorf("%s is set twice", name)
			}
			v, err := plain(n.Content[i+1], depth+1)
			if err != nil {
				return nil, err
			}
			out[name] = v
		}
		return out, nil
	}
	return nil, errors.New("YAML anchors and aliases are not supported")
}

// flow reads a setting that stands alone, in an environment variable or a flag:
// text as it is, or a list or map in YAML's short form when it begins so. [::1]:53 is
// no list.
func flow(text string) (any, error) {
	if !strings.HasPrefix(text, "[") && !strings.HasPrefix(text, "{") {
		return text, nil
	}
	if host, _, err := net.SplitHostPort(text); err == nil {
		if _, err := netip.ParseAddr(host); err == nil {
			return text, nil
		}
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, err
	}
	return plain(doc.Content[0], 0)
}
