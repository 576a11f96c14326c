package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/v2"

	"millrace/internal/document"
	"millrace/internal/run"
)

// Flag is a setting given on the command line.
type Flag struct {
	Name string // as typed: "--rtmp"
	Key  string // "address.rtmp"
	Text string
}

// Sources are where a configuration comes from, each on top of the one before.
type Sources struct {
	File    string   // of YAML; "" for none
	Environ []string // as os.Environ returns it
	Flags   []Flag
}

// Loaded is a valid configuration and where its values came from.
type Loaded[R Root] struct {
	Config  R
	origins map[string]Origin
}

// Origin returns where the value of key came from; its Name is "" for a default.
func (l Loaded[R]) Origin(key string) Origin { return l.origins[key] }

// Load reads all sources on top of def and checks the result. The error joins
// everything that is wrong, each with its origin. It reads files and nothing else.
func Load[R Root](def R, src Sources) (Loaded[R], error) {
	l := Loaded[R]{Config: def, origins: map[string]Origin{}}
	var faults []fault
	merged, settings := koanf.New("."), Settings(def)

	if src.File != "" {
		doc := &yamlFile{file: src.File, settings: settings}
		if err := merged.Load(content(src.File), doc); err != nil {
			return Loaded[R]{}, inFile(src.File, err)
		}
		faults = append(faults, doc.problems...)
	}
	vars := &environment{settings: settings}
	if err := merged.Load(vars.provider(src.Environ), nil); err != nil {
		return Loaded[R]{}, err
	}
	faults = append(faults, vars.problems...)
	for _, f := range src.Flags {
		v, err := flagValue(f, settings)
		if err != nil {
			faults = append(faults, fault{Origin{Name: f.Name}, sectionOf(f.Key), err})
			continue
		}
		if err := merged.Set(f.Key, v); err != nil {
			return Loaded[R]{}, err
		}
	}

	for _, s := range settings {
		v, ok := merged.Get(s.Key).(value)
		if !ok {
			continue
		}
		l.origins[s.Key] = v.Origin
		if err := set(reflect.ValueOf(&l.Config).Elem().FieldByIndex(s.index), v.Raw, s.size); err != nil {
			faults = append(faults, fault{v.Origin, sectionOf(s.Key), fmt.Errorf("%s: %w", s.Key, err)})
		}
	}
	faults = append(faults, l.ranges(faults, src.File, settings)...)
	if len(faults) == 0 {
		return l, nil
	}
	slices.SortStableFunc(faults, func(a, b fault) int { return cmp.Compare(a.rank(src.File), b.rank(src.File)) })
	errs := make([]error, len(faults))
	for i, f := range faults {
		errs[i] = f
	}
	return Loaded[R]{}, errors.Join(errs...)
}

// ranges returns what Validate has to say of values that were read. Of a section
// in which others could not be read it says nothing: it would be of values that are
// not meant.
func (l Loaded[R]) ranges(unread []fault, file string, settings []Setting) (out []fault) {
	for _, p := range l.Config.problems() {
		top, _, _ := strings.Cut(p.section, ".")
		if p.section == "" && len(unread) > 0 {
			continue
		}
		if slices.ContainsFunc(unread, func(f fault) bool { return f.section == top }) {
			continue
		}
		out = append(out, l.located(p, file, settings))
	}
	return out
}

// sectionOf returns the section at the top of the file that key is in, or "".
func sectionOf(key string) string {
	section, _, ok := strings.Cut(key, ".")
	if !ok {
		return ""
	}
	return section
}

// rank is where the fault comes in what is told: by line, then those of the file
// without a line, then variables, then flags.
func (f fault) rank(file string) int {
	switch {
	case strings.HasPrefix(f.Name, "-"):
		return math.MaxInt
	case f.Name != file:
		return math.MaxInt - 1
	case f.Line == 0:
		return math.MaxInt - 2
	}
	return f.Line
}

// inFile makes sure that err names the file.
func inFile(name string, err error) error {
	if strings.Contains(err.Error(), name) {
		return fault{Origin{}, "", err}
	}
	return fault{Origin{Name: name}, "", err}
}

// maxFile is how big a file of settings may be: 4,096 addresses in each of the six
// lists of them are half of it.
const maxFile = 1 << 20

// content is the name of a file, as what koanf reads from.
type content string

// ReadBytes returns what is in the file.
func (c content) ReadBytes() ([]byte, error) {
	f, err := os.Open(string(c))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("has more than %d bytes: is it the right file?", maxFile)
	}
	return b, err
}

// Read is not what the file is for.
func (c content) Read() (map[string]any, error) { return nil, errors.ErrUnsupported }

// located puts in front of p where the value came from that it complains about:
// the first key in its text that somebody has set.
func (l Loaded[R]) located(p problem, file string, settings []Setting) fault {
	text := p.err.Error()
	best, first := "", len(text)
	for _, s := range settings {
		name := s.Key
		if p.section != "" {
			var ok bool
			if name, ok = strings.CutPrefix(s.Key, p.section+"."); !ok {
				continue
			}
		}
		if _, isSet := l.origins[s.Key]; !isSet {
			continue
		}
		if at := findWord(text, name); at >= 0 && at < first {
			best, first = s.Key, at
		}
	}
	if best != "" {
		return fault{l.origins[best], p.section, p}
	}
	return fault{Origin{Name: file}, p.section, p}
}

// findWord returns where text has key as a word, not as a part of a longer one,
// or -1.
func findWord(text, key string) int {
	letter := func(i int) bool {
		if i < 0 || i >= len(text) {
			return false
		}
		c := text[i]
		return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	for at := 0; ; {
		i := strings.Index(text[at:], key)
		if i < 0 {
			return -1
		}
		if i += at; !letter(i-1) && !letter(i+len(key)) {
			return i
		}
		at = i + 1
	}
}

// environment reads the variables that are settings.
type environment struct {
	settings []Setting
	problems []fault
}

// notSettings are variables with our prefix that belong to the program, not to
// its configuration: where the file is, and what Kubernetes sets for every pod
// beside a service of the name millrace.
var notSettings = regexp.MustCompile(`^MILLRACE_(CONFIG|SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_.*)?)?)$`)

func (e *environment) provider(environ []string) koanf.Provider {
	if environ == nil {
		environ = []string{} // the provider would take the process's own
	}
	return env.Provider(".", env.Opt{
		Prefix:        EnvPrefix,
		EnvironFunc:   func() []string { return environ },
		TransformFunc: e.setting,
	})
}

// setting returns the key and the value of one variable, or "" for one to leave out.
func (e *environment) setting(name, text string) (string, any) {
	names := make([]string, len(e.settings))
	for i, s := range e.settings {
		names[i] = s.Env
		if s.Env != name {
			continue
		}
		raw, err := flow(text)
		if err != nil {
			e.problems = append(e.problems, fault{Origin{Name: name}, sectionOf(s.Key), err})
			return "", nil
		}
		return s.Key, value{raw, Origin{Name: name}}
	}
	if !notSettings.MatchString(name) {
		e.problems = append(e.problems, fault{Origin{Name: name}, "", document.Unknown("variable", name, names)})
	}
	return "", nil
}

func flagValue(f Flag, settings []Setting) (value, error) {
	keys := make([]string, len(settings))
	for i, s := range settings {
		keys[i] = s.Key
		if s.Key != f.Key {
			continue
		}
		raw, err := flow(f.Text)
		if err != nil {
			return value{}, err
		}
		return value{raw, Origin{Name: f.Name}}, nil
	}
	return value{}, document.Unknown("setting", f.Key, keys)
}

// fileFromEnv returns where the file is when no flag says so.
func fileFromEnv(environ []string) string {
	for _, e := range environ {
		if name, ok := strings.CutPrefix(e, EnvPrefix+"CONFIG="); ok {
			return name
		}
	}
	return ""
}

// ParseFlag reads KEY=VALUE as given to the flag name.
func ParseFlag(name, text string) (Flag, error) {
	key, val, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return Flag{}, fmt.Errorf("%s: %q is not of the form KEY=VALUE, such as stream.grace=5s", name, text)
	}
	return Flag{Name: name + " " + key, Key: strings.TrimSpace(key), Text: strings.TrimSpace(val)}, nil
}

// From returns sources of a file, which may also be named by a variable, and of the
// environment.
func From(file string, environ []string) Sources {
	return Sources{File: cmp.Or(file, fileFromEnv(environ)), Environ: environ}
}

// Add adds a flag that sets key, if it was given.
func (s *Sources) Add(flag, key string, text *string) {
	if text != nil {
		s.Flags = append(s.Flags, Flag{Name: flag, Key: key, Text: *text})
	}
}

// AddList adds a flag that was given once for each item of the list key.
func (s *Sources) AddList(flag, key string, items []string) {
	if len(items) > 0 {
		text := strings.Join(items, ",")
		s.Add(flag, key, &text)
	}
}

// AddSettings adds a flag that sets what it says: KEY=VALUE.
func (s *Sources) AddSettings(flag string, texts []string) error {
	for _, text := range texts {
		f, err := ParseFlag(flag, text)
		if err != nil {
			return err
		}
		s.Flags = append(s.Flags, f)
	}
	return nil
}

// AddCommon adds the flags that every program has.
func (s *Sources) AddCommon(f *run.Flags) error {
	s.AddList("--cluster-key", "cluster.keys", f.ClusterKey)
	s.Add("--log-level", "log.level", f.LogLevel)
	s.Add("--log-format", "log.format", f.LogFormat)
	return s.AddSettings("--set", f.Set)
}

// Reload is Load for a program that runs: a file that could hold it up is not read.
func Reload[R Root](def R, src Sources) (Loaded[R], error) {
	if src.File != "" {
		i, err := os.Stat(src.File)
		if err == nil && !i.Mode().IsRegular() {
			err = fmt.Errorf("%s is no regular file, which is all that is read again", src.File)
		}
		if err != nil {
			return Loaded[R]{}, err
		}
	}
	return Load(def, src)
}
