package config

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	samples = "../../configs"
	marker  = "# ---------------------------------------------------------------- every setting\n"
)

var roles = []string{"center", "relay", "edge"}

func sample(t *testing.T, role string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(samples, role+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// commented returns the list of settings of a sample, without the lines that set
// something.
func commented(t *testing.T, role string) string {
	t.Helper()
	_, list, ok := strings.Cut(sample(t, role), marker)
	if !ok {
		t.Fatalf("%s.yaml has no list of settings", role)
	}
	return regexp.MustCompile(`(?m)^ *[a-z_]+: .*\n`).ReplaceAllString(list, "")
}

// TestSamplesLoad loads each sample as it stands.
func TestSamplesLoad(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(samples, "*.yaml"))
	if err != nil || len(files) != len(roles) {
		t.Fatalf("samples are %v: %v", files, err)
	}
	for _, role := range roles {
		l, err := Load(Sources{File: filepath.Join(samples, role+".yaml")})
		if err != nil {
			t.Error(err)
			continue
		}
		if got := l.Role.String(); got != role {
			t.Errorf("%s.yaml is for role %s", role, got)
		}
	}
}

// TestSamplesListTheSame holds the three lists of settings together: they may
// differ in the lines that are not commented out.
func TestSamplesListTheSame(t *testing.T) {
	lists := map[string][]string{}
	for _, role := range roles {
		lists[role] = strings.Split(commented(t, role), "\n")
	}
	for _, role := range roles[1:] {
		for i, want := range lists["center"] {
			if i >= len(lists[role]) || lists[role][i] != want {
				t.Errorf("%s.yaml: the list of settings is not that of center.yaml from %q on", role, want)
				break
			}
		}
	}
}

// shown is one setting as the samples show it.
type shown struct {
	value string
	prose string // the comment above it
	line  int
}

// list reads the settings that are commented out in text.
func list(t *testing.T, text string) map[string]shown {
	t.Helper()
	header := regexp.MustCompile(`^( *)([a-z_0-9]+):$`)
	setting := regexp.MustCompile(`^( *)#([a-z_0-9]+): (.+)$`)
	prose := regexp.MustCompile(`^ *# (.*)$`)
	out := map[string]shown{}
	var path, above []string
	for i, line := range strings.Split(text, "\n") {
		if m := setting.FindStringSubmatch(line); m != nil {
			key := strings.Join(append(slices.Clone(path[:min(len(path), len(m[1])/2)]), m[2]), ".")
			if _, twice := out[key]; twice {
				t.Errorf("line %d: %s is there twice", i+1, key)
			}
			out[key] = shown{m[3], strings.Join(above, " "), i}
		} else if m := header.FindStringSubmatch(line); m != nil {
			path = append(slices.Clone(path[:len(m[1])/2]), m[2])
		}
		if m := prose.FindStringSubmatch(line); m != nil {
			above = append(above, m[1])
		} else {
			above = nil
		}
	}
	return out
}

// TestSamplesShowEverySetting wants each setting there with its default, what it
// trades and its range, and the line to load as the default once uncommented.
func TestSamplesShowEverySetting(t *testing.T) {
	tail := commented(t, "center")
	got := list(t, tail)
	for _, s := range Settings() {
		have, ok := got[s.Key]
		if !ok {
			t.Errorf("%s is missing: show it as #%s: %s", s.Key, s.Name(), s.Default)
			continue
		}
		delete(got, s.Key)
		if strings.Trim(have.value, `"`) != strings.Trim(s.Default, `"`) {
			t.Errorf("%s is shown as %s, its default is %s", s.Key, have.value, s.Default)
		}
		if !strings.Contains(have.prose, "Range: ") {
			t.Errorf("%s: the comment gives no range: %q", s.Key, have.prose)
		}
		if needsRestart(s.Key) && s.Section() != "address" && !strings.Contains(have.prose, "Needs a restart") {
			t.Errorf("%s: the comment does not say that it needs a restart", s.Key)
		}
		lines := strings.Split(tail, "\n")
		lines[have.line] = strings.Replace(lines[have.line], "#", "", 1)
		path := filepath.Join(t.TempDir(), "node.yaml")
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := Load(Sources{File: path})
		if err != nil {
			t.Errorf("%s uncommented: %v", s.Key, err)
			continue
		}
		if !reflect.DeepEqual(l.Node, Default()) {
			t.Errorf("%s uncommented changes %+v", s.Key, Changes(Default(), l.Node))
		}
		if l.Origin(s.Key).Name != path {
			t.Errorf("%s uncommented is not read as %s", have.value, s.Key)
		}
	}
	for key := range got {
		t.Errorf("%s is shown but is no setting", key)
	}
}

// TestSamplesTellTheRange tries both ends of every range in the samples that is
// given in figures, and one step beyond.
func TestSamplesTellTheRange(t *testing.T) {
	form := regexp.MustCompile(`Range: (\S+) to (\S+?)[.,;]?(?: |$)`)
	tail := commented(t, "center")
	tried := 0
	for key, have := range list(t, tail) {
		m := form.FindStringSubmatch(have.prose)
		i := slices.IndexFunc(Settings(), func(s Setting) bool { return s.Key == key })
		if m == nil || i < 0 || !reflect.ValueOf(Default()).FieldByIndex(Settings()[i].index).CanInt() {
			continue
		}
		for _, end := range m[1:] {
			if !strings.ContainsAny(end[:1], "0123456789") {
				continue // another setting
			}
			// The neighbours that an end depends on move along.
			flags := []Flag{{"--set", key, end}}
			switch key {
			case "stream.viewer_delay":
				flags = append(flags, Flag{"--set", "stream.log_duration", "2m"})
			case "stream.log_bytes":
				flags = append(flags, Flag{"--set", "stream.viewer_bytes", "64KiB"})
			case "rtmp.message_bytes":
				flags = append(flags, Flag{"--set", "rtmp.partial_bytes", "1GiB"})
			case "httpflv.merge_min":
				flags = append(flags, Flag{"--set", "httpflv.merge_max", "2s"})
			case "auth.storm.first_delay":
				flags = append(flags, Flag{"--set", "auth.storm.max_delay", "30s"})
			}
			tried++
			l, err := Load(Sources{Flags: flags})
			if err != nil {
				t.Errorf("%s: %s is in the range of the sample: %v", key, end, err)
				continue
			}
			v := reflect.ValueOf(&l.Node).Elem().FieldByIndex(Settings()[i].index)
			step := int64(1)
			if end == m[1] {
				step = -1
			}
			v.SetInt(v.Int() + step)
			if err := l.Validate(); err == nil {
				t.Errorf("%s: %s is said to be the end of the range, but %v is accepted", key, end, v)
			}
		}
	}
	if tried < 30 {
		t.Errorf("only %d ends tried: the form of the ranges has changed", tried)
	}
}
