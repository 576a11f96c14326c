package config

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control"
)

const (
	samples = "../../configs"
	marker  = "# ---------------------------------------------------------------- every setting\n"
)

// roles have a sample each, with the same list of settings.
var roles = []string{"center", "relay", "edge"}

func sample(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(samples, name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// commented returns the list of settings of a sample, without the lines that set
// something.
func commented(t *testing.T, name string) string {
	t.Helper()
	_, list, ok := strings.Cut(sample(t, name), marker)
	if !ok {
		t.Fatalf("%s.yaml has no list of settings", name)
	}
	return regexp.MustCompile(`(?m)^ *[a-z_]+: .*\n`).ReplaceAllString(list, "")
}

// TestSamplesLoad loads each sample as it stands.
func TestSamplesLoad(t *testing.T) {
	for _, role := range roles {
		l, err := Load(DefaultNode(), Sources{File: filepath.Join(samples, role+".yaml")})
		if err != nil {
			t.Error(err)
			continue
		}
		if got := l.Config.Role.String(); got != role {
			t.Errorf("%s.yaml is for role %s", role, got)
		}
	}
	l, err := Load(DefaultScheduler(), Sources{File: filepath.Join(samples, "scheduler.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	files := l.Config.Files
	for _, name := range []*string{&files.Nodes, &files.Domains, &files.Coverage} {
		*name = filepath.Join(samples, "..", *name)
	}
	contents, err := files.Load()
	if err != nil {
		t.Fatal(err)
	}
	if b, err := control.NewBundle("sample", 1, time.Unix(1, 0), contents); err != nil {
		t.Error(err)
	} else if _, err := b.Compile(nil); err != nil {
		t.Error(err)
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
	t.Run("node", func(t *testing.T) { showsEverySetting(t, "center", DefaultNode()) })
	t.Run("scheduler", func(t *testing.T) { showsEverySetting(t, "scheduler", schedulerOf(t)) })
	t.Run("router", func(t *testing.T) { showsEverySetting(t, "router", routerOf(t)) })
}

// schedulerOf returns the defaults of a scheduler with what its sample sets, without
// which it is not valid.
func schedulerOf(t *testing.T) Scheduler {
	t.Helper()
	l, err := Load(DefaultScheduler(), Sources{File: filepath.Join(samples, "scheduler.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	return l.Config
}

// routerOf is schedulerOf for a router.
func routerOf(t *testing.T) Router {
	t.Helper()
	l, err := Load(DefaultRouter(), Sources{File: filepath.Join(samples, "router.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	return l.Config
}

func showsEverySetting[R Root](t *testing.T, name string, def R) {
	tail := commented(t, name)
	got := list(t, tail)
	for _, s := range Settings(def) {
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
		if needs := needsRestart(def, def, s.Key); s.Section() != "address" && strings.Contains(have.prose, "Needs a restart") != needs {
			t.Errorf("%s: needs it a restart? The comment says otherwise: %v", s.Key, needs)
		}
		lines := strings.Split(tail, "\n")
		lines[have.line] = strings.Replace(lines[have.line], "#", "", 1)
		path := filepath.Join(t.TempDir(), "settings.yaml")
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := Load(def, Sources{File: path})
		if err != nil {
			t.Errorf("%s uncommented: %v", s.Key, err)
			continue
		}
		if !reflect.DeepEqual(l.Config, def) {
			t.Errorf("%s uncommented changes %+v", s.Key, Changes(def, l.Config))
		}
		if l.Origin(s.Key).Name != path {
			t.Errorf("%s uncommented is not read as %s", have.value, s.Key)
		}
	}
	for key := range got {
		t.Errorf("%s is shown but is no setting", key)
	}
}

// neighbours are the settings that an end of a range depends on: they move along.
var neighbours = map[string]Flag{
	"stream.viewer_delay":    {"--set", "stream.log_duration", "2m"},
	"stream.log_bytes":       {"--set", "stream.viewer_bytes", "64KiB"},
	"rtmp.message_bytes":     {"--set", "rtmp.partial_bytes", "1GiB"},
	"httpflv.merge_min":      {"--set", "httpflv.merge_max", "2s"},
	"auth.storm.first_delay": {"--set", "auth.storm.max_delay", "30s"},
	"fleet.alive":            {"--set", "fleet.grace", "1m"},
}

// TestSamplesTellTheRange tries both ends of every range in the samples that is
// given in figures, and one step beyond.
func TestSamplesTellTheRange(t *testing.T) {
	t.Run("node", func(t *testing.T) { tellsTheRange(t, "center", DefaultNode(), 30) })
	t.Run("scheduler", func(t *testing.T) { tellsTheRange(t, "scheduler", schedulerOf(t), 10) })
	t.Run("router", func(t *testing.T) { tellsTheRange(t, "router", routerOf(t), 30) })
}

func tellsTheRange[R Root](t *testing.T, name string, def R, least int) {
	form := regexp.MustCompile(`Range: (\S+) to (\S+?)[.,;]?(?: |$)`)
	settings := Settings(def)
	tried := 0
	for key, have := range list(t, commented(t, name)) {
		m := form.FindStringSubmatch(have.prose)
		i := slices.IndexFunc(settings, func(s Setting) bool { return s.Key == key })
		if m == nil || i < 0 || !reflect.ValueOf(def).FieldByIndex(settings[i].index).CanInt() {
			continue
		}
		for _, end := range m[1:] {
			if !strings.ContainsAny(end[:1], "0123456789") {
				continue // another setting
			}
			flags := []Flag{{"--set", key, end}}
			if n, ok := neighbours[key]; ok {
				flags = append(flags, n)
			}
			tried++
			l, err := Load(def, Sources{Flags: flags})
			if err != nil {
				t.Errorf("%s: %s is in the range of the sample: %v", key, end, err)
				continue
			}
			v := reflect.ValueOf(&l.Config).Elem().FieldByIndex(settings[i].index)
			step := int64(1)
			if end == m[1] {
				step = -1
			}
			v.SetInt(v.Int() + step)
			if err := l.Config.Validate(); err == nil {
				t.Errorf("%s: %s is said to be the end of the range, but %v is accepted", key, end, v)
			}
		}
	}
	if tried < least {
		t.Errorf("only %d ends tried: the form of the ranges has changed", tried)
	}
}
