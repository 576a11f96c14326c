package config

import (
	"reflect"
	"strings"
)

// Change is one setting that differs between two configurations.
type Change struct {
	Key      string
	Old, New string // as in a file; "(secret)" where they must not be shown
	Restart  bool   // it takes effect at the next start only
}

// restart are the sections and keys that a reload leaves as they are: what was
// opened, sized or started with them stays.
var restart = []string{
	"role", "address", "tls", "log.format", "httpflv.shards", "httpflv.read_timeout", "httpflv.idle_timeout",
}

// needsRestart reports whether key is, or is below, an entry of restart.
func needsRestart(key string) bool {
	for _, r := range restart {
		if key == r || strings.HasPrefix(key, r+".") {
			return true
		}
	}
	return false
}

// Changes returns the settings that differ, in the order of Settings.
func Changes(old, now Node) []Change {
	var out []Change
	a, b := reflect.ValueOf(old), reflect.ValueOf(now)
	for _, s := range Settings() {
		x, y := a.FieldByIndex(s.index), b.FieldByIndex(s.index)
		if reflect.DeepEqual(x.Interface(), y.Interface()) {
			continue
		}
		c := Change{Key: s.Key, Restart: needsRestart(s.Key)}
		if c.Old, c.New = "(secret)", "(secret)"; !s.Secret {
			c.Old, c.New = format(x, s.size), format(y, s.size)
		}
		out = append(out, c)
	}
	return out
}

// Keep returns now with the settings that need a restart as they were in old:
// what is really in force after a reload.
func Keep(old, now Node) Node {
	a, b := reflect.ValueOf(old), reflect.ValueOf(&now).Elem()
	for _, s := range Settings() {
		if needsRestart(s.Key) {
			b.FieldByIndex(s.index).Set(a.FieldByIndex(s.index))
		}
	}
	return now
}
