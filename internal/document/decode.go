package document

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

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
	case isNull(n):
		d.fault(n.Line, path, "has no value")
	case isText(v.Type()):
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

// isText reports whether a value of type t reads itself from a word.
func isText(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
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
		if isNull(val) && path == "" {
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
	if err := setScalar(v, n.Value); err != nil {
		d.fault(n.Line, path, "%w", err)
	}
}

func setScalar(v reflect.Value, text string) error {
	if t, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return t.UnmarshalText([]byte(text))
	}
	if v.Type() == reflect.TypeFor[time.Duration]() {
		dur, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q is not a duration; write for example 500ms, 5s or 1m30s", text)
		}
		v.SetInt(int64(dur))
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		v.SetBool(text == "true")
	case reflect.Int64:
		n, err := ParseSize(text)
		if err != nil {
			return err
		}
		v.SetInt(n)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32:
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return wholeNumber(text, err)
		}
		v.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, err := strconv.ParseUint(text, 10, v.Type().Bits())
		if err != nil {
			return wholeNumber(text, err)
		}
		v.SetUint(n)
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(text, v.Type().Bits())
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("%q is not a number", text)
		}
		v.SetFloat(f)
	default:
		return fmt.Errorf("values of type %v cannot be read", v.Type())
	}
	return nil
}

// wholeNumber says in plain words why text is none.
func wholeNumber(text string, err error) error {
	if errors.Is(err, strconv.ErrRange) || strings.HasPrefix(text, "-") {
		return fmt.Errorf("%s is out of range", text)
	}
	return fmt.Errorf("%q is not a whole number", text)
}
