package config

import (
	"encoding"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"millrace/internal/document"
)

// set stores raw into v. raw is text, a list ([]any) or a map (map[string]any)
// of the same; text is as written, so that a key such as 0123 keeps its zero.
func set(v reflect.Value, raw any, size bool) error {
	if !document.IsText(v.Type()) {
		switch v.Kind() {
		case reflect.Slice:
			return setList(v, raw)
		case reflect.Map:
			return setMap(v, raw)
		case reflect.Struct:
			return setStruct(v, raw)
		}
	}
	text, ok := raw.(string)
	if !ok {
		return errors.New("want one value, not a list or a section")
	}
	err := document.SetScalar(v, text, size)
	if err != nil && v.Type() == reflect.TypeFor[slog.Level]() {
		return fmt.Errorf("%q is not a level: use debug, info, warn or error", text)
	}
	return err
}

// setList takes a list, or text with the elements between commas.
func setList(v reflect.Value, raw any) error {
	var items []any
	switch raw := raw.(type) {
	case []any:
		items = raw
	case string:
		for part := range strings.SplitSeq(raw, ",") {
			if part = strings.TrimSpace(part); part != "" {
				items = append(items, part)
			}
		}
	default:
		return errors.New("want a list")
	}
	list := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		if err := set(list.Index(i), item, false); err != nil {
			return fmt.Errorf("item %d: %w", i+1, err)
		}
	}
	if len(items) == 0 {
		list = reflect.Zero(v.Type())
	}
	v.Set(list)
	return nil
}

func setMap(v reflect.Value, raw any) error {
	items, ok := raw.(map[string]any)
	if !ok {
		return errors.New("want a map of names to values")
	}
	if len(items) == 0 {
		v.SetZero()
		return nil
	}
	out := reflect.MakeMapWithSize(v.Type(), len(items))
	for _, name := range slices.Sorted(maps.Keys(items)) {
		key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		if err := set(key, name, false); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := set(elem, items[name], false); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		out.SetMapIndex(key, elem)
	}
	v.Set(out)
	return nil
}

func setStruct(v reflect.Value, raw any) error {
	items, ok := raw.(map[string]any)
	if !ok {
		return errors.New("want names and values")
	}
	known := map[string]reflect.StructField{}
	for f := range v.Type().Fields() {
		if f.IsExported() {
			known[keyOf(f)] = f
		}
	}
	for _, name := range slices.Sorted(maps.Keys(items)) {
		f, ok := known[name]
		if !ok {
			return document.Unknown("key", name, slices.Collect(maps.Keys(known)))
		}
		if err := set(v.FieldByIndex(f.Index), items[name], isSize(f)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// format writes v as it would stand in a file.
func format(v reflect.Value, size bool) string { return formatWith(v, size, quote) }

// formatWith is format with another way to write text.
func formatWith(v reflect.Value, size bool, text func(string) string) string {
	switch x := v.Interface().(type) {
	case slog.Level:
		return strings.ToLower(x.String())
	case encoding.TextMarshaler:
		b, err := x.MarshalText()
		if err != nil {
			return ""
		}
		return text(string(b))
	case time.Duration:
		return formatDuration(x)
	}
	switch v.Kind() {
	case reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = formatWith(v.Index(i), false, text)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case reflect.Map:
		var parts []string
		for _, k := range v.MapKeys() {
			parts = append(parts, formatWith(k, false, text)+": "+formatWith(v.MapIndex(k), false, text))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.Struct:
		var parts []string
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				parts = append(parts, keyOf(f)+": "+formatWith(v.Field(i), isSize(f), text))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.String:
		return text(v.String())
	}
	if size && v.CanInt() {
		return document.FormatSize(v.Int())
	}
	return fmt.Sprint(v.Interface())
}

// quote returns s in quotes where YAML would otherwise read something else.
func quote(s string) string {
	if s == "" || strings.ContainsAny(s, ":#{}[],&*!|>'\"%@`? ") || strings.HasPrefix(s, "-") {
		return strconv.Quote(s)
	}
	return s
}

// formatDuration drops the zero parts that Duration.String keeps: 1m0s is 1m.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
