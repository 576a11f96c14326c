package config

import (
	"log/slog"
	"reflect"
	"slices"
	"strings"
)

// Change is one setting that differs between two configurations.
type Change struct {
	Key      string
	Old, New string // as in a file, but without quotes; "(secret)" where they must not be shown
	Restart  bool   // it takes effect at the next start only
}

// needsRestart reports whether key is, or is below, one of the sections and keys that
// a reload from old to now leaves as they are.
func needsRestart[R Root](old, now R, key string) bool {
	for _, r := range slices.Concat(old.restart(), now.restart()) {
		if key == r || strings.HasPrefix(key, r+".") {
			return true
		}
	}
	return false
}

// Changes returns the settings that differ, in the order of Settings.
func Changes[R Root](old, now R) []Change {
	var out []Change
	a, b := reflect.ValueOf(old), reflect.ValueOf(now)
	for _, s := range Settings(old) {
		x, y := a.FieldByIndex(s.index), b.FieldByIndex(s.index)
		if reflect.DeepEqual(x.Interface(), y.Interface()) {
			continue
		}
		c := Change{Key: s.Key, Restart: needsRestart(old, now, s.Key)}
		if c.Old, c.New = "(secret)", "(secret)"; !s.Secret {
			c.Old, c.New = formatWith(x, s.size, bare), formatWith(y, s.size, bare)
		}
		out = append(out, c)
	}
	return out
}

// Tell logs changes, and returns how many are in force without a restart.
func Tell(log *slog.Logger, changes []Change) (inForce int) {
	for _, c := range changes {
		if c.Restart {
			log.Warn("changed, but only a restart puts it in force", "setting", c.Key, "old", c.Old, "new", c.New)
			continue
		}
		inForce++
		log.Info("changed", "setting", c.Key, "old", c.Old, "new", c.New)
	}
	return inForce
}

// Keep returns now with the settings that need a restart as they were in old:
// what is really in force after a reload.
func Keep[R Root](old, now R) R {
	kept := now
	a, b := reflect.ValueOf(old), reflect.ValueOf(&kept).Elem()
	for _, s := range Settings(old) {
		if needsRestart(old, now, s.Key) {
			b.FieldByIndex(s.index).Set(a.FieldByIndex(s.index))
		}
	}
	return kept
}

// bare is the text as it is: what shows it has quotes of its own.
func bare(s string) string { return s }
