package config

import (
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"millrace/internal/document"
)

// EnvPrefix starts the name of every environment variable that is a setting.
const EnvPrefix = "MILLRACE_"

// Setting is one key that a file, the environment or a flag can set.
type Setting struct {
	Key     string // "rtmp.handshake_timeout", or "role" outside any section
	Env     string // "MILLRACE_RTMP_HANDSHAKE_TIMEOUT"
	Default string // as it would be written in a file
	Secret  bool   // never shown in logs

	index []int // of the field in its root
	size  bool  // a number of bytes
}

// Section returns the part of the key before its last dot, or "".
func (s Setting) Section() string { return s.Key[:max(0, strings.LastIndexByte(s.Key, '.'))] }

// Name returns the part of the key behind its last dot.
func (s Setting) Name() string { return s.Key[strings.LastIndexByte(s.Key, '.')+1:] }

// Settings returns every setting, in the order of the fields, with the values of def
// as defaults.
func Settings[R Root](def R) []Setting { return settingsOf(reflect.ValueOf(&def).Elem()) }

// settingsOf lists the settings of root, a struct of settings and of sections, which
// are structs of the same. An embedded struct is no section of its own.
func settingsOf(root reflect.Value) []Setting {
	var out []Setting
	var walk func(section string, v reflect.Value, index []int)
	walk = func(section string, v reflect.Value, index []int) {
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			key, at := section+keyOf(f), append(slices.Clone(index), i)
			if f.Anonymous {
				walk(section, v.Field(i), at)
				continue
			}
			if isSection(f.Type) {
				walk(key+".", v.Field(i), at)
				continue
			}
			out = append(out, Setting{
				Key:     key,
				Env:     EnvPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_")),
				Default: format(v.Field(i), isSize(f)),
				Secret:  isSecret(f),
				index:   at,
				size:    isSize(f),
			})
		}
	}
	walk("", root, nil)
	return out
}

// isSection reports whether a field holds settings of its own. A struct
// that can be written as one word, such as an address, does not.
func isSection(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !document.IsText(t)
}

// isSize reports whether the setting is a number of bytes, so that "8MB" may be
// written: an integer whose name ends in a word for an amount of memory.
func isSize(f reflect.StructField) bool {
	t := f.Type
	if t.Kind() < reflect.Int || t.Kind() > reflect.Uint64 || t == reflect.TypeFor[time.Duration]() || document.IsText(t) {
		return false
	}
	words := strings.Split(keyOf(f), "_")
	return slices.Contains([]string{"bytes", "size", "buffer", "memory", "capacity"}, words[len(words)-1]) || keyOf(f) == "memory_limit"
}

// isSecret reports whether the value of the setting must stay out of logs: by a word of
// its name, or of what is in its list.
func isSecret(f reflect.StructField) bool {
	for w := range strings.SplitSeq(keyOf(f), "_") {
		switch w {
		case "token", "tokens", "secret", "secrets", "keys", "password":
			return true
		}
	}
	t := f.Type
	if t.Kind() != reflect.Slice || t.Elem().Kind() != reflect.Struct || document.IsText(t.Elem()) {
		return false
	}
	for of := range t.Elem().Fields() {
		if isSecret(of) {
			return true
		}
	}
	return false
}

// keyOf returns the key of a field: its tag, or its name in snake case.
func keyOf(f reflect.StructField) string {
	if tag := f.Tag.Get("koanf"); tag != "" {
		return tag
	}
	return snake(f.Name)
}

// snake turns a Go name into a key: MaxStreams is max_streams, HTTPSAddress is
// https_address and TrustedCIDRs is trusted_cidrs.
func snake(name string) string {
	r := []rune(name)
	var b strings.Builder
	for i, c := range r {
		// A word starts at a capital after a small letter, and at the last
		// capital of a run; but a small s behind a run is its plural.
		if i > 0 && unicode.IsUpper(c) {
			next := i+1 < len(r) && unicode.IsLower(r[i+1])
			plural := i+1 < len(r) && r[i+1] == 's' && (i+2 == len(r) || unicode.IsUpper(r[i+2]))
			if !unicode.IsUpper(r[i-1]) || next && !plural {
				b.WriteByte('_')
			}
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}
