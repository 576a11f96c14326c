package control

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"millrace/internal/document"
	"millrace/internal/sched"
)

const samples = "../../configs/"

func sample(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(samples + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSamplesLoad(t *testing.T) {
	cfg := FilesConfig{Nodes: samples + "nodes.yaml", Domains: samples + "domains.yaml", Coverage: samples + "coverage.txt"}
	c, err := cfg.Load()
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewBundle("sample", 1, time.Unix(1, 0), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Compile(nil); err != nil {
		t.Error(err)
	}
}

var hidden = regexp.MustCompile(`(?m)^( *)#([a-z_0-9]+: )`)

// TestSamplesSayTheTruth takes the # off every key that is shown behind one: the keys
// exist, their values can be read, and those of costs and health are the defaults.
func TestSamplesSayTheTruth(t *testing.T) {
	text := hidden.ReplaceAllString(sample(t, "nodes.yaml"), "$1$2")
	var nodes nodesFile
	if _, err := document.Decode("nodes.yaml", []byte(text), &nodes); err != nil {
		t.Error(err)
	}
	if nodes.Costs != sched.DefaultCosts() {
		t.Errorf("costs are %+v, the defaults %+v", nodes.Costs, sched.DefaultCosts())
	}
	if nodes.Health != sched.DefaultHealth() {
		t.Errorf("health is %+v, the default %+v", nodes.Health, sched.DefaultHealth())
	}
	text = hidden.ReplaceAllString(sample(t, "domains.yaml"), "$1$2")
	if _, err := document.Decode("domains.yaml", []byte(text), &domainsFile{}); err != nil {
		t.Error(err)
	}
}

// TestSamplesShowEverything looks for each key that a file may have, with its range.
func TestSamplesShowEverything(t *testing.T) {
	f := func(name string, v any) {
		t.Helper()
		text := sample(t, name)
		for _, key := range keysOf(reflect.TypeOf(v), map[reflect.Type]bool{}) {
			if !regexp.MustCompile(`(?m)^ *(- )?#?`+key+`:`).MatchString(text) && !strings.Contains(text, "{"+key+":") {
				t.Errorf("%s does not show %s", name, key)
			}
		}
		var comment strings.Builder
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			key := regexp.MustCompile(`^(- )?#?([a-z_0-9]+): `).FindStringSubmatch(line)
			switch {
			case strings.HasPrefix(strings.TrimPrefix(line, "- "), "# "):
				comment.WriteString(strings.TrimLeft(line, "-# ") + " ")
			case line == "":
				comment.Reset()
			case key != nil && strings.HasPrefix(line, "#") && !strings.Contains(comment.String(), "Range: "):
				t.Errorf("%s: nothing says what %s may be", name, key[2])
			}
		}
	}
	f("nodes.yaml", nodesFile{})
	f("domains.yaml", domainsFile{})
}

// keysOf returns the keys of a struct and of the structs in it.
func keysOf(t reflect.Type, seen map[reflect.Type]bool) (keys []string) {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] || !strings.Contains(t.PkgPath(), "millrace") {
		return nil
	}
	seen[t] = true
	for f := range t.Fields() {
		if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); key != "" && key != "-" {
			keys = append(append(keys, key), keysOf(f.Type, seen)...)
		}
	}
	return keys
}
