package rtmp

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"millrace/internal/session"
)

// TestLogOfSessions: a publisher is told of when it comes, a player too at debug
// level, and of both what they moved when they are gone.
func TestLogOfSessions(t *testing.T) {
	for _, level := range []slog.Level{slog.LevelInfo, slog.LevelDebug} {
		n := newNode(t, option{level: level})
		p := n.publisher(t, "live", "a")
		p.message(6, typeVideo, 1, 0, keyframe(1))
		q := n.connected(t, "live")
		q.play("a")
		q.expectKind(typeVideo)
		n.stop()
		bytes := make(map[session.Action]uint64)
		for _, c := range n.table.Counts() {
			bytes[c.Action] += c.Bytes
		}
		if bytes[session.Play] == 0 {
			t.Fatal("the player was sent nothing")
		}
		f := func(want int, parts ...string) {
			t.Helper()
			got := 0
			for line := range strings.Lines(n.log.String()) {
				has := true
				for _, part := range parts {
					has = has && strings.Contains(line, part)
				}
				if has {
					got++
				}
			}
			if got != want {
				t.Errorf("at %v %d lines have %q, want %d:\n%s", level, got, parts, want, n.log)
			}
		}
		came := 0
		if level == slog.LevelDebug {
			came = 1
		}
		const end = `msg="rtmp connection ended"`
		f(1, "level=INFO", `msg="publisher came"`, "stream=live/a", "peer=127.0.0.1:", "protocol=rtmp", "tls=false", "agent=")
		f(came, "level=DEBUG", `msg="viewer came"`, "stream=live/a", "peer=127.0.0.1:")
		f(1, end, "action=publish", "protocol=rtmp", fmt.Sprintf("bytes=%d ", bytes[session.Publish]), "skipped=0")
		f(1, end, "action=play", "protocol=rtmp", fmt.Sprintf("bytes=%d ", bytes[session.Play]), "skipped=0")
		f(0, "go-rtmp")
		f(0, "role=")
	}
}

// TestLogOfTheBox: of what go-rtmp says, warnings are passed on, at debug level and
// under no key that slog has already.
func TestLogOfTheBox(t *testing.T) {
	var log logBuffer
	l := boxLogger(slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	l.Info("a detail")
	l.Warn("a warning")
	if got := log.String(); strings.Contains(got, "detail") || !strings.Contains(got, "go-rtmp: a warning") || strings.Count(got, `"level"`) != 1 {
		t.Errorf("logged %s", got)
	}
}
