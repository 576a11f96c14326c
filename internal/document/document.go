// Package document reads YAML files into Go values and takes nothing on trust: a key
// that does not exist, a key that is set twice, a value of the wrong kind, an anchor
// or a second document is an error. Everything that is wrong is told at once, each
// with its file and line, and with the nearest name for one that was mistyped.
//
// Keys are those of JSON: the json tag of a field. Scalars stay as written, so that a
// name such as 0123 keeps its zero and no stays no. A whole number that is an int64
// may be a size ("1.5GiB"), durations are words ("5s"), and whatever reads itself from
// text does so. Nothing is opened here; the caller brings the bytes.
package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Fault is something that is wrong in a file.
type Fault struct {
	File string
	Line int // 0 where it cannot be known
	Err  error
}

// Error returns where and what.
func (f *Fault) Error() string {
	if f.Line == 0 {
		return f.File + ": " + Clip(f.Err.Error())
	}
	return f.File + ":" + strconv.Itoa(f.Line) + ": " + Clip(f.Err.Error())
}

// Unwrap returns what is wrong.
func (f *Fault) Unwrap() error { return f.Err }

// maxText is how long the text of an error may be: it may hold a value, and that may
// be a file that somebody took for another one.
const maxText = 500

// Clip leaves out the middle of a long text.
func Clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	const tail = maxText / 5
	return strings.ToValidUTF8(fmt.Sprintf("%s… (%d bytes) …%s", text[:maxText-tail], len(text)-maxText, text[len(text)-tail:]), "")
}

// maxFaults is how many faults of one file are told. More are one mistake, repeated.
const maxFaults = 20

// Decode reads b, the content of the file of that name, into the struct that into
// points to. What the file does not set stays. The error joins a [*Fault] for each
// thing that is wrong; into is then half filled and of no use. The lines are of keys
// and items, by their path: "nodes[3].region".
func Decode(file string, b []byte, into any) (Lines, error) {
	root, err := parse(file, b)
	if err != nil || root == nil {
		return nil, err
	}
	d := decoder{file: file, lines: Lines{}, fields: map[reflect.Type]fields{}}
	d.value("", root, target(into))
	if len(d.faults) == 0 {
		return d.lines, nil
	}
	slices.SortStableFunc(d.faults, func(a, b *Fault) int { return a.Line - b.Line })
	errs := make([]error, 0, min(len(d.faults), maxFaults+1))
	for i, f := range d.faults {
		if i == maxFaults {
			errs = append(errs, fmt.Errorf("%s: %d more faults", file, len(d.faults)-i))
			break
		}
		errs = append(errs, f)
	}
	return nil, errors.Join(errs...)
}

// parse returns the root of the only document of a file, nil when it holds nothing
// but comments.
func parse(file string, b []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(b))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, Syntax(file, b, err)
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, &Fault{file, second.Line, errors.New("more than one document in the file, or text behind its end")}
	}
	root := doc.Content[0]
	if IsNull(root) {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, &Fault{file, root.Line, errors.New("want keys and values at the top")}
	}
	return root, nil
}

// IsNull reports whether there is no value.
func IsNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// yamlLine is how the YAML library says where it stopped.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// Syntax returns what err, of the YAML library, says of the content b of a file, as
// other faults look.
func Syntax(file string, b []byte, err error) *Fault {
	parts := yamlLine.FindStringSubmatch(err.Error())
	if parts == nil {
		return &Fault{file, 0, err}
	}
	text := parts[2]
	line, _ := strconv.Atoi(parts[1]) // 0 where it does not say
	if line > 0 && strings.HasPrefix(text, "did not find expected") {
		// The library counts from 0 in these, from 1 in others, and names the beginning
		// of the list or section rather than the place in it.
		line = min(line+1, max(1, bytes.Count(bytes.TrimRight(b, "\n"), []byte("\n"))+1))
		text += " here or below"
	}
	if strings.Contains(text, " tab ") || strings.Contains(text, "cannot start any token") {
		if tab := tabLine(b); tab > 0 {
			line, text = tab, "this line is indented with a tab: use spaces"
		}
	}
	return &Fault{file, line, fmt.Errorf("not YAML: %s", text)}
}

// tabLine returns the number of the first line that is indented with a tab, or 0.
func tabLine(b []byte) int {
	n := 0
	for line := range bytes.Lines(b) {
		n++
		text := bytes.TrimLeft(line, " \t")
		if indent := line[:len(line)-len(text)]; bytes.ContainsRune(indent, '\t') && len(bytes.TrimSpace(text)) > 0 {
			return n
		}
	}
	return 0
}
