package document

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxDepth is how deep values may be nested; none of ours needs more than five.
const maxDepth = 16

// decoder fills a value from nodes and gathers what is wrong.
type decoder struct {
	file   string
	lines  Lines
	faults []*Fault
	depth  int
	fields map[reflect.Type]fields
}

// target returns what a pointer points to.
func target(into any) reflect.Value { return reflect.ValueOf(into).Elem() }

func (d *decoder) fault(line int, path, format string, args ...any) {
	err := fmt.Errorf(format, args...)
	if path != "" {
		err = fmt.Errorf("%s: %w", path, err)
	}
	d.faults = append(d.faults, &Fault{d.file, line, err})
}

// value fills v from n, which stands at path.
func (d *decoder) value(path string, n *yaml.Node, v reflect.Value) {
	if d.depth++; d.depth > maxDepth {
		d.fault(n.Line, path, "nested too deep")
		d.depth--
		return
	}
	defer func() { d.depth-- }()
	d.lines[path] = n.Line
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		d.fault(n.Line, path, "YAML anchors and aliases are not supported")
	case IsNull(n):
		d.fault(n.Line, path, "has no value")
	case IsText(v.Type()):
		d.scalar(path, n, v)
	case v.Kind() == reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		d.value(path, n, p.Elem())
		v.Set(p)
	case v.Kind() == reflect.Struct:
		d.section(path, n, v)
	case v.Kind() == reflect.Slice:
		d.list(path, n, v)
	case v.Kind() == reflect.Map:
		d.table(path, n, v)
	default:
		d.scalar(path, n, v)
	}
}

// pairs calls f for each key of a mapping that stands there for the first time.
func (d *decoder) pairs(path string, n *yaml.Node, f func(key, val *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.fault(n.Line, path, "want keys and values below it")
		return
	}
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch line, dup := seen[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			d.fault(key.Line, path, "a key must be one word")
		case dup:
			d.fault(key.Line, path, "%s is already set on line %d", key.Value, line)
		default:
			seen[key.Value] = key.Line
			f(key, n.Content[i+1])
		}
	}
}

func (d *decoder) section(path string, n *yaml.Node, v reflect.Value) {
	known, ok := d.fields[v.Type()]
	if !ok {
		known = fieldsOf(v.Type())
		d.fields[v.Type()] = known
	}
	d.pairs(path, n, func(key, val *yaml.Node) {
		index, ok := known.index[key.Value]
		if !ok {
			d.fault(key.Line, path, "%w", Unknown("key", key.Value, known.names))
			return
		}
		if IsNull(val) && path == "" {
			return // every line of the section is commented out
		}
		where := join(path, key.Value)
		d.value(where, val, v.FieldByIndex(index))
		d.lines[where] = key.Line
	})
}

// join returns the path of a key in what stands at path.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// fields are those of a struct by key, those of embedded structs among them, and the keys
// in order.
type fields struct {
	index map[string][]int
	names []string
}

// fieldsOf finds the fields of a struct. It takes longer than to fill one.
func fieldsOf(t reflect.Type) fields {
	out := fields{index: map[string][]int{}}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || f.Anonymous {
			continue
		}
		if name == "" {
			name = f.Name
		}
		out.index[name] = f.Index
		out.names = append(out.names, name)
	}
	return out
}

func (d *decoder) list(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.fault(n.Line, path, "want a list: - one item a line, or [one, two]")
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		d.value(path+"["+strconv.Itoa(i)+"]", item, out.Index(i))
	}
	v.Set(out)
}

func (d *decoder) table(path string, n *yaml.Node, v reflect.Value) {
	out := reflect.MakeMapWithSize(v.Type(), len(n.Content)/2)
	d.pairs(path, n, func(key, val *yaml.Node) {
		k, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		d.scalar(path, key, k)
		d.value(join(path, key.Value), val, elem)
		out.SetMapIndex(k, elem)
	})
	v.Set(out)
}

func (d *decoder) scalar(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.ScalarNode {
		d.fault(n.Line, path, "want one value, not a list or a section")
		return
	}
	if err := SetScalar(v, n.Value, v.Kind() == reflect.Int64); err != nil {
		d.fault(n.Line, path, "%w", err)
	}
}
