package config

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
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
type Loaded struct {
	Node
	origins map[string]Origin
}

// Origin returns where the value of key came from; its Name is "" for a default.
func (l Loaded) Origin(key string) Origin { return l.origins[key] }

// Load reads all sources and checks the result. The error joins everything that
// is wrong, each with its origin. It reads files and nothing else.
func Load(src Sources) (Loaded, error) {
	l := Loaded{Node: Default(), origins: map[string]Origin{}}
	var errs []error
	merged, settings := koanf.New("."), Settings()

	if src.File != "" {
		doc := &document{file: src.File, settings: settings}
		if err := merged.Load(file.Provider(src.File), doc); err != nil {
			return Loaded{}, inFile(src.File, err)
		}
		errs = append(errs, doc.problems...)
	}
	vars := &environment{settings: settings}
	if err := merged.Load(vars.provider(src.Environ), nil); err != nil {
		return Loaded{}, err
	}
	errs = append(errs, vars.problems...)
	for _, f := range src.Flags {
		v, err := flagValue(f, settings)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if err := merged.Set(f.Key, v); err != nil {
			return Loaded{}, err
		}
	}

	for _, s := range settings {
		v, ok := merged.Get(s.Key).(value)
		if !ok {
			continue
		}
		l.origins[s.Key] = v.Origin
		if err := set(reflect.ValueOf(&l.Node).Elem().FieldByIndex(s.index), v.Raw, s.size); err != nil {
			errs = append(errs, fmt.Errorf("%v: %s: %w", v.Origin, s.Key, err))
		}
	}
	if len(errs) == 0 { // else the ranges would be told of values that are not meant
		for _, p := range l.problems() {
			errs = append(errs, l.located(p, src.File, settings))
		}
	}
	if len(errs) > 0 {
		return Loaded{}, errors.Join(errs...)
	}
	return l, nil
}

// inFile makes sure that err names the file.
func inFile(name string, err error) error {
	if strings.Contains(err.Error(), name) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// located puts in front of p where the value came from that it complains about:
// the first key in its text that somebody has set.
func (l Loaded) located(p problem, file string, settings []Setting) error {
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
		return fmt.Errorf("%v: %w", l.origins[best], p)
	}
	if file != "" {
		return fmt.Errorf("%s: %w", file, p)
	}
	return p
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
	problems []error
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
			e.problems = append(e.problems, fmt.Errorf("%s: %w", name, err))
			return "", nil
		}
		return s.Key, value{raw, Origin{Name: name}}
	}
	if !notSettings.MatchString(name) {
		e.problems = append(e.problems, fmt.Errorf("%s: %w", name, unknown("variable", name, names)))
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
			return value{}, fmt.Errorf("%s: %w", f.Name, err)
		}
		return value{raw, Origin{Name: f.Name}}, nil
	}
	return value{}, fmt.Errorf("%s: %w", f.Name, unknown("setting", f.Key, keys))
}

// FileFromEnv returns where the file is when no flag says so.
func FileFromEnv(environ []string) string {
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
