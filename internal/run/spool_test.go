package run

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestSpool: everything that is written comes, in order, as long as it is read.
func TestSpool(t *testing.T) {
	var out bytes.Buffer
	s := NewSpool(&out)
	var want strings.Builder
	for i := range 1000 {
		line := strings.Repeat("x", i%100) + "\n"
		want.WriteString(line)
		_, _ = s.Write([]byte(line))
	}
	s.Close(time.Minute)
	if out.String() != want.String() {
		t.Errorf("%d bytes came of %d", out.Len(), want.Len())
	}
}

// TestStuckLog has nobody read the log: writing goes on, the end comes, and when it
// is read again it says how much is missing.
func TestStuckLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, pipe := io.Pipe()
		s := NewSpool(pipe)
		log := NewLog(slog.LevelInfo, "json", s).Log
		const lines = 20_000
		for range lines {
			log.Info("a line of the log", "with", "an attribute")
		}
		began := time.Now()
		s.Close(time.Second)
		if took := time.Since(began); took != time.Second {
			t.Errorf("the end took %v", took)
		}
		var got bytes.Buffer
		go func() { _, _ = io.Copy(&got, in) }()
		<-s.ended
		pipe.Close()
		synctest.Wait()
		came := strings.Count(got.String(), "a line of the log")
		if came < 1000 || !strings.Contains(got.String(), "log lines were dropped") {
			t.Errorf("%d lines came, and: %s", came, got.String()[max(0, got.Len()-300):])
		}
	})
}
