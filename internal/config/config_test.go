package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"millrace/internal/document"
)

func TestDefaultIsValid(t *testing.T) {
	if err := DefaultNode().Validate(); err != nil {
		t.Error(err)
	}
	l, err := Load(DefaultNode(), Sources{})
	if err != nil || !reflect.DeepEqual(l.Config, DefaultNode()) {
		t.Errorf("nothing loaded is %+v, %v; want the default", l.Config, err)
	}
}

func TestSettingsHaveTheirOwnNames(t *testing.T) {
	f := func(settings []Setting, want ...string) {
		t.Helper()
		keys, vars := map[string]bool{}, map[string]string{}
		for _, s := range settings {
			if keys[s.Key] {
				t.Errorf("two settings are %s", s.Key)
			}
			if other := vars[s.Env]; other != "" {
				t.Errorf("%s and %s are both %s", s.Key, other, s.Env)
			}
			keys[s.Key], vars[s.Env] = true, s.Key
		}
		for _, key := range want {
			if !keys[key] {
				t.Errorf("there is no setting %s", key)
			}
		}
	}
	f(Settings(DefaultNode()), "role", "address.rtmps", "stream.log_duration", "auth.storm.first_delay", "admin.metric_streams", "admin.token")
	f(Settings(DefaultScheduler()), "id", "address.dns", "admin.token", "cluster.keys", "drain.deadline")
}

// TestDefaultsReadBack sets every setting to its own default, as a file would.
func TestDefaultsReadBack(t *testing.T) {
	t.Run("node", func(t *testing.T) { defaultsReadBack(t, DefaultNode()) })
	t.Run("scheduler", func(t *testing.T) { defaultsReadBack(t, schedulerOf(t)) })
}

func defaultsReadBack[R Root](t *testing.T, def R) {
	for _, s := range Settings(def) {
		l, err := Load(def, Sources{Flags: []Flag{{"--set", s.Key, strings.Trim(s.Default, `"`)}}})
		if err != nil {
			t.Errorf("%s: %s: %v", s.Key, s.Default, err)
			continue
		}
		if got := l.Config; len(Changes(def, got)) > 0 && s.Default != "[]" && s.Default != "{}" {
			t.Errorf("%s: %s reads back as %+v", s.Key, s.Default, Changes(def, got))
		}
	}
}

// TestNumbersHaveRanges holds every package to it: no number and no duration may
// be negative or endless, and the error says which key and which range.
func TestNumbersHaveRanges(t *testing.T) {
	t.Run("node", func(t *testing.T) { numbersHaveRanges(t, DefaultNode()) })
	t.Run("scheduler", func(t *testing.T) { numbersHaveRanges(t, schedulerOf(t)) })
}

func numbersHaveRanges[R Root](t *testing.T, def R) {
	for _, s := range Settings(def) {
		v := reflect.ValueOf(def).FieldByIndex(s.index)
		if !v.CanInt() || document.IsText(v.Type()) {
			continue
		}
		texts := []string{"-1", "9223372036854775807"}
		if v.Type() == reflect.TypeFor[time.Duration]() {
			texts = []string{"-1s", "100000h"}
		}
		for _, text := range texts {
			_, err := Load(def, Sources{Flags: []Flag{{"--set", s.Key, text}}})
			if err == nil {
				t.Errorf("%s: %s is accepted", s.Key, text)
				continue
			}
			if !strings.Contains(err.Error(), "--set: ") || findWord(err.Error(), s.Name()) < 0 {
				t.Errorf("%s: %s: the error does not name the key: %v", s.Key, text, err)
			}
		}
	}
}

func TestSnake(t *testing.T) {
	f := func(name, want string) {
		t.Helper()
		if got := snake(name); got != want {
			t.Errorf("snake(%q) = %q, want %q", name, got, want)
		}
	}
	f("Role", "role")
	f("RTMPS", "rtmps")
	f("MaxStreams", "max_streams")
	f("HTTPSAddress", "https_address")
	f("TrustedCIDRs", "trusted_cidrs")
	f("CIDRsTrusted", "cidrs_trusted")
	f("TLS", "tls")
	f("CertFile", "cert_file")
	f("EndAtExpiry", "end_at_expiry")
	f("X", "x")
	f("", "")
}

func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 5 * time.Second: "5s", time.Minute: "1m", 90 * time.Second: "1m30s", time.Hour: "1h",
		250 * time.Millisecond: "250ms", 10*time.Minute + time.Hour: "1h10m", 10 * time.Second: "10s", 30 * time.Minute: "30m",
	} {
		if got := formatDuration(d); got != want {
			t.Errorf("formatDuration(%d) = %s, want %s", d, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64().Draw(t, "d"))
		if got, err := time.ParseDuration(formatDuration(d)); err != nil || got != d {
			t.Fatalf("%v reads back as %v, %v", d, got, err)
		}
	})
}

func TestLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:9090": true, "[::1]:9090": true, "localhost:9090": true, "127.9.9.9:1": true, "[::ffff:127.0.0.1]:1": true,
		":9090": false, "0.0.0.0:9090": false, "[::]:9090": false, "192.0.2.1:9090": false, "node.example:9090": false, "": false,
	} {
		if got := Loopback(addr); got != want {
			t.Errorf("Loopback(%q) = %v", addr, got)
		}
	}
}

func TestChanges(t *testing.T) {
	old := DefaultNode()
	now := DefaultNode()
	now.Role = Edge
	now.Stream.Grace = time.Minute
	now.Stream.LogBytes = 64 << 20
	now.Address.HTTP = ":8081"
	now.Auth.PublishKeys = map[string][]string{"live": {"hush-hush"}}
	got := Changes(old, now)
	want := []Change{
		{"role", "center", "edge", true},
		{"address.http", ":8080", ":8081", true},
		{"stream.log_bytes", "32MiB", "64MiB", false},
		{"stream.grace", "15s", "1m", false},
		{"auth.publish_keys", "(secret)", "(secret)", false},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if c := Changes(old, old); len(c) != 0 {
		t.Errorf("nothing changed, got %+v", c)
	}

	kept := Keep(old, now)
	if kept.Role != Center || kept.Address.HTTP != ":8080" || kept.Stream.Grace != time.Minute {
		t.Errorf("kept %+v: want the old role and address and the new grace", kept)
	}
	if now.Role != Edge {
		t.Error("Keep changed its argument")
	}
}

func TestRestartNamesSettings(t *testing.T) {
	f := func(restart []string, settings []Setting) {
		t.Helper()
		for _, r := range restart {
			if !slices.ContainsFunc(settings, func(s Setting) bool { return s.Key == r || strings.HasPrefix(s.Key, r+".") }) {
				t.Errorf("%s is no setting and no section", r)
			}
		}
	}
	f(DefaultNode().restart(), Settings(DefaultNode()))
	f(DefaultScheduler().restart(), Settings(DefaultScheduler()))
	f(DefaultRouter().restart(), Settings(DefaultRouter()))
}
