package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"millrace/internal/runtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// life returns a program of parts that takes patience to drain, and its log.
func life(patience time.Duration, parts ...Component) (Life, *runtest.Journal) {
	j := &runtest.Journal{}
	log := slog.New(slog.NewJSONHandler(j, nil))
	return Life{
		Parts: parts,
		Log:   log,
		Ready: func() { log.Info("ready") },
		Read: func() func() {
			log.Info("read")
			return func() { log.Info("applied") }
		},
		Drain: func() (time.Time, func(context.Context, <-chan struct{})) {
			return time.Now().Add(time.Minute), func(ctx context.Context, hurry <-chan struct{}) {
				select {
				case <-time.After(patience):
				case <-hurry:
				case <-ctx.Done():
				}
			}
		},
		Hurry: func() { log.Info("hurry") },
	}, j
}

// stuck is a component that does not stop before release is closed.
func stuck(release <-chan struct{}) Component {
	return Component{"stuck", 0, func(context.Context) error { <-release; return nil }}
}

func TestLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o order
		reload, end := make(chan os.Signal, 1), make(chan os.Signal, 3)
		l, j := life(5*time.Second, o.part("http", stageViewers, 0))
		over := make(chan error, 1)
		go func() { over <- l.Run(Signals{reload, end}) }()
		reload <- syscall.SIGHUP
		synctest.Wait()
		reload <- syscall.SIGHUP
		synctest.Wait()
		if n := len(j.Lines(t, "applied")); n != 2 {
			t.Errorf("%d readings put in force, want 2", n)
		}
		began := time.Now()
		end <- syscall.SIGTERM
		if err := <-over; err != nil || time.Since(began) != 5*time.Second {
			t.Errorf("ended with %v after %v", err, time.Since(began))
		}
		if len(o.names) != 1 {
			t.Error("the component was not stopped")
		}
	})
}

// TestSignals has a component that does not stop: the program ends all the same, when
// the deadline is over, when the time after a second signal is, or at once with a third.
func TestSignals(t *testing.T) {
	for count, want := range map[int]struct {
		err  error
		took time.Duration
	}{1: {nil, time.Minute}, 2: {nil, HurryTime}, 3: {errForced, 0}} {
		synctest.Test(t, func(t *testing.T) {
			release, end := make(chan struct{}), make(chan os.Signal, 3)
			defer close(release)
			l, j := life(0, stuck(release))
			for range count {
				end <- syscall.SIGTERM
			}
			began := time.Now()
			if err := l.Run(Signals{End: end}); !errors.Is(err, want.err) || time.Since(began) != want.took {
				t.Errorf("%d signals: %v after %v, want %v after %v", count, err, time.Since(began), want.err, want.took)
			}
			if hurried := len(j.Lines(t, "hurry")) > 0; hurried != (count > 1) {
				t.Errorf("%d signals: hurried %v", count, hurried)
			}
		})
	}
}

// TestFailureEndsLife: without any signal.
func TestFailureEndsLife(t *testing.T) {
	l, _ := life(0, Component{"dns", 0, func(context.Context) error { return errors.New("the wire is cut") }})
	if err := l.Run(Signals{}); fmt.Sprint(err) != "dns: the wire is cut" {
		t.Errorf("got %v", err)
	}
}

func TestParse(t *testing.T) {
	f := func(ok bool, code int, says string, args ...string) {
		t.Helper()
		var flags struct {
			Port int `help:"Where."`
			Flags
		}
		var out, errs bytes.Buffer
		gotCode, gotOK := Parse("thing", "Does things.", "v7", &flags, args, &out, &errs)
		if gotOK != ok || gotCode != code || !strings.Contains(out.String()+errs.String(), says) {
			t.Errorf("%v: %d, %v, says %q%q; want %d, %v, %q", args, gotCode, gotOK, out.String(), errs.String(), code, ok, says)
		}
	}
	f(true, OK, "")
	f(true, OK, "", "--port", "7", "--set", "a=b", "--check-config", "--cluster-key", "a,b")
	f(false, OK, "Does things.", "--help")
	f(false, OK, "--cluster-key=KEY", "--help")
	f(false, OK, "millrace thing v7 (", "--version")
	f(false, Refused, "thing: unknown flag --nonsense", "--nonsense")
	f(false, Refused, "thing: --port: expected a valid 64 bit int", "--port", "x")
}

// built is a program that ends with an error.
type built struct{ err error }

func (built) Banner(io.Writer)    {}
func (b built) Run(Signals) error { return b.err }

func TestStart(t *testing.T) {
	f := func(name string, code int, build, end error, says ...string) {
		t.Helper()
		j := &runtest.Journal{}
		got := Start(slog.LevelInfo, "json", j, Signals{}, func(Output) (Program, error) { return built{end}, build })
		var lines []string
		for l := range strings.Lines(j.String()) {
			lines = append(lines, l)
		}
		if got != code || len(lines) != len(says) {
			t.Fatalf("%s: %d, want %d, and says %q", name, got, code, lines)
		}
		for i, want := range says {
			if !strings.Contains(lines[i], want) {
				t.Errorf("%s: says %q, want %q", name, lines[i], want)
			}
		}
	}
	f("told to end", OK, nil, nil, `"ended"`)
	f("a failure", Failed, nil, errors.New("broken"), `"ended by a failure","err":"broken"`)
	f("not built", Refused, errors.Join(errors.New("one"), errors.New("two")), nil, `"cannot start","err":"one"`, `"cannot start","err":"two"`)
}

func TestID(t *testing.T) {
	if got := ID("edge-1", "node"); got != "edge-1" {
		t.Errorf("the id of the settings becomes %q", got)
	}
	a, b := ID("", "node"), ID("", "node")
	if !strings.HasPrefix(a, "node-") || len(a) != len("node-")+10 || a == b {
		t.Errorf("made up: %q and %q", a, b)
	}
}

func TestRefuse(t *testing.T) {
	var b bytes.Buffer
	if code := Refuse("thing", &b, errors.Join(errors.New("one"), errors.New("two"))); code != Refused || b.String() != "thing: one\nthing: two\n" {
		t.Errorf("%d %q", code, b.String())
	}
}
