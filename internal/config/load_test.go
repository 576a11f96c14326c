package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestFiles loads every file of testdata. The first line of a bad one is the
// error that it must cause.
func TestFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("found %d files: %v", len(files), err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(string(b), "\n")
			want, bad := strings.CutPrefix(first, "# want: ")
			if bad != strings.HasSuffix(name, ".bad.yaml") {
				t.Fatalf("the name and the first line %q disagree", first)
			}
			_, err = Load(DefaultNode(), Sources{File: name})
			switch {
			case !bad && err != nil:
				t.Errorf("got %v", err)
			case bad && err == nil:
				t.Errorf("loads; want %q", want)
			case bad && !strings.Contains(err.Error(), want):
				t.Errorf("\ngot  %v\nwant %s", err, want)
			}
		})
	}
}

func TestEveryKindOfValue(t *testing.T) {
	l, err := Load(DefaultNode(), Sources{File: "testdata/every-kind.good.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	f := func(name string, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	f("role", l.Config.Role, Relay)
	f("memory_limit", l.Config.MemoryLimit, int64(3<<29))
	f("address.rtmp", l.Config.Address.RTMP, "[::1]:1935")
	f("address.admin", l.Config.Address.Admin, "")
	f("drain.deadline", l.Config.Drain.Deadline, 90*time.Second)
	f("stream.log_bytes", l.Config.Stream.LogBytes, int64(64<<20))
	f("stream.viewer_bytes", l.Config.Stream.ViewerBytes, int64(4e6))
	f("stream.grace", l.Config.Stream.Grace, 15*time.Second)
	// A key of digits keeps its zero; one that looks like a number stays text.
	f("auth.publish_keys", l.Config.Auth.PublishKeys, map[string][]string{"live": {"0123456", "key-number-two"}, "*": {"1e5678"}})
	f("auth.end_at_expiry", l.Config.Auth.EndAtExpiry, true)
	f("auth.storm.free", l.Config.Auth.Storm.Free, 5)
	f("auth.storm.held", l.Config.Auth.Storm.Held, DefaultNode().Auth.Storm.Held)
	if got := l.Origin("auth.storm.free").String(); got != "testdata/every-kind.good.yaml:22" {
		t.Errorf("origin of auth.storm.free = %s", got)
	}
	if got := l.Origin("auth.storm.held").Name; got != "" {
		t.Errorf("origin of a default = %q", got)
	}
}

func TestPrecedence(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.yaml")
	text := "stream:\n  grace: 1s\n  max_streams: 1\nlog:\n  level: debug\nauth:\n  publish_keys: {live: [from-file]}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Load(DefaultNode(), Sources{
		File:    path,
		Environ: []string{"HOME=/root", "MILLRACE_STREAM_GRACE=2s", "MILLRACE_LOG_LEVEL=warn", "MILLRACE_AUTH_PUBLISH_KEYS={vod: [from-env]}"},
		Flags:   []Flag{{"--log-level", "log.level", "error"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if l.Config.Stream.MaxStreams != 1 || l.Config.Stream.Grace != 2*time.Second || l.Config.Log.Level.String() != "ERROR" || l.Config.Stream.ViewerDelay != 5*time.Second {
		t.Errorf("got %+v, level %v: want file < variable < flag", l.Config.Stream, l.Config.Log.Level)
	}
	if want := map[string][]string{"vod": {"from-env"}}; !reflect.DeepEqual(l.Config.Auth.PublishKeys, want) {
		t.Errorf("publish_keys = %v, want %v: a later source replaces a map", l.Config.Auth.PublishKeys, want)
	}
	for key, want := range map[string]string{
		"stream.max_streams": path + ":3", "stream.grace": "MILLRACE_STREAM_GRACE", "log.level": "--log-level",
	} {
		if got := l.Origin(key).String(); got != want {
			t.Errorf("origin of %s = %s, want %s", key, got, want)
		}
	}
}

func TestVariables(t *testing.T) {
	f := func(variable, want string) {
		t.Helper()
		_, err := Load(DefaultNode(), Sources{Environ: []string{variable}})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", variable, err, want)
		}
	}
	f("MILLRACE_STREAM_GRACE=3s", "")
	f("MILLRACE_AUTH_ALLOW_PLAY=192.0.2.1, 198.51.100.0/24", "")
	f("MILLRACE_AUTH_ALLOW_PLAY=[192.0.2.1]", "")
	f("MILLRACE_AUTH_STORM_FREE=9", "")
	f("MILLRACE_CONFIG=/etc/millrace.yaml", "")
	f("OTHER_STREAM_GRACE=x", "")
	f("MILLRACE_STREAM_GRACE=soon", `MILLRACE_STREAM_GRACE: stream.grace: "soon" is not a duration`)
	f("MILLRACE_STREAM_GRACE=-1s", "MILLRACE_STREAM_GRACE: stream: grace is -1s")
	f("MILLRACE_STREAM_GRASE=1s", `MILLRACE_STREAM_GRASE: unknown variable "MILLRACE_STREAM_GRASE"; did you mean "MILLRACE_STREAM_GRACE"?`)
	f("MILLRACE_AUTH_PUBLISH_KEYS={live: [", "MILLRACE_AUTH_PUBLISH_KEYS: yaml:")
	f("MILLRACE_AUTH_PUBLISH_KEYS=live", "MILLRACE_AUTH_PUBLISH_KEYS: auth.publish_keys: want a map")
	// What Kubernetes sets beside a service of the name millrace.
	f("MILLRACE_SERVICE_HOST=10.0.0.1", "")
	f("MILLRACE_SERVICE_PORT_RTMP=1935", "")
	f("MILLRACE_PORT=tcp://10.0.0.1:1935", "")
	f("MILLRACE_PORT_1935_TCP_ADDR=10.0.0.1", "")
}

func TestFlags(t *testing.T) {
	f := func(flag Flag, want string) {
		t.Helper()
		_, err := Load(DefaultNode(), Sources{Flags: []Flag{flag}})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v: got %v, want %q", flag, err, want)
		}
	}
	f(Flag{"--role", "role", "edge"}, "")
	f(Flag{"--role", "role", "hub"}, `--role: role: "hub" is not a role: use center, relay or edge`)
	f(Flag{"--rtmp", "address.rtmp", "nowhere"}, `--rtmp: address: rtmp is "nowhere": use host:port`)
	f(Flag{"--http", "address.http", "[::1]:8080"}, "")
	f(Flag{"--http", "address.http", "[fe80::1%eth0]:8080"}, "")
	f(Flag{"--http", "address.http", "[::1:8080"}, "--http: yaml:")
	f(Flag{"--set", "stream.grase", "1s"}, `--set: unknown setting "stream.grase"; did you mean "stream.grace"?`)
	f(Flag{"--set", "auth.deny_play", "[1"}, "--set: yaml:")
}

func TestAllProblemsAtOnce(t *testing.T) {
	_, err := Load(DefaultNode(), Sources{
		Environ: []string{"MILLRACE_NONSENSE=1", "MILLRACE_STREAM_GRACE=x"},
		Flags:   []Flag{{"--role", "role", "hub"}},
	})
	if err == nil {
		t.Fatal("loads")
	}
	for _, want := range []string{"MILLRACE_NONSENSE", "MILLRACE_STREAM_GRACE", "--role"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not tell of %s", err, want)
		}
	}
}

// TestProblemsInOrder: those of the file by line, also what is out of range beside
// what cannot be read; but of a section that was not read wholly only the latter.
func TestProblemsInOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.yaml")
	text := "log:\n  level: loud\ndrain:\n  deadline: 2h\nstream:\n  grace: soon\n  viewer_delay: 1ms\naddress:\n  rtmp: \"1935\"\n  htpp: :80\nrtmp:\n  handshake_timeout: 0s\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(DefaultNode(), Sources{File: path, Environ: []string{"MILLRACE_STREAM_MAX_STREAMS=x"}, Flags: []Flag{{"--role", "role", "hub"}}})
	want := []string{":2: log.level", ":4: drain: deadline", ":6: stream.grace", ":10: address: unknown key", ":12: rtmp: handshake_timeout", "MILLRACE_STREAM_MAX_STREAMS: ", "--role: "}
	got := strings.Split(err.Error(), "\n")
	if len(got) != len(want) {
		t.Fatalf("%d lines, want %d:\n%v", len(got), len(want), err)
	}
	for i := range want {
		if !strings.HasPrefix(strings.TrimPrefix(got[i], path), want[i]) {
			t.Errorf("line %d is %q, want %q", i+1, got[i], want[i])
		}
	}
}

func TestMissingFile(t *testing.T) {
	_, err := Load(DefaultNode(), Sources{File: "testdata/nowhere.yaml"})
	if err == nil || !strings.Contains(err.Error(), "testdata/nowhere.yaml") || !os.IsNotExist(unwrapAll(err)) {
		t.Errorf("got %v", err)
	}
}

func unwrapAll(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		next := u.Unwrap()
		if os.IsNotExist(err) {
			return err
		}
		err = next
	}
}

func TestSecretsStayOutOfErrors(t *testing.T) {
	_, err := Load(DefaultNode(), Sources{Environ: []string{"MILLRACE_AUTH_PUBLISH_KEYS={live: [hush]}", "MILLRACE_AUTH_PLAY_SECRETS=hushhush"}})
	if err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("got %v", err)
	}
}

func TestFindWord(t *testing.T) {
	f := func(text, key string, want int) {
		t.Helper()
		if got := findWord(text, key); got != want {
			t.Errorf("findWord(%q, %q) = %d, want %d", text, key, got, want)
		}
	}
	f("grace is 5s", "grace", 0)
	f("end_grace is 5s", "grace", -1)
	f("end_grace is less than grace", "grace", 23)
	f("storm.free: is 5", "storm.free", 0)
	f("graceful", "grace", -1)
	f("", "grace", -1)
}

// FuzzFile feeds the reader of files: it must return an error or a valid
// configuration, and never panic.
func FuzzFile(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	settings := Settings(DefaultNode())
	f.Fuzz(func(t *testing.T, b []byte) {
		d := &yamlFile{file: "fuzz.yaml", settings: settings}
		got, err := d.Unmarshal(b)
		if err != nil {
			return
		}
		def := DefaultNode()
		node := reflect.ValueOf(&def).Elem()
		for _, s := range settings {
			at := got
			for part := range strings.SplitSeq(s.Section(), ".") {
				at, _ = at[part].(map[string]any)
			}
			if s.Section() == "" {
				at = got
			}
			if v, ok := at[s.Name()].(value); ok {
				_ = set(node.FieldByIndex(s.index), v.Raw, s.size)
			}
		}
		_ = def.Validate()
	})
}

// TestLongText: what is wrong is told in a few lines, however much of it there is.
func TestLongText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.yaml")
	f := func(text string, want ...string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(DefaultNode(), Sources{File: path})
		if err == nil || len(err.Error()) > 1000 {
			t.Fatalf("got %.2000v, want a short error", err)
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("got %v, want %q", err, w)
			}
		}
	}
	long := strings.Repeat("x", 600_000)
	f("log:\n  level: "+long, path+":2: log.level: \"xxx", "bytes) …xxx", "is not a level: use debug")
	f("log:\n  format: "+long, path+":2: log: format is")
	f(long+": 1", path)
	f("log:\n  level: \"\\q"+long, path)
	f("# "+long+long, path+": has more than 1048576 bytes")
}
