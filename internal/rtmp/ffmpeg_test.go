package rtmp

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"millrace/internal/session"
	"millrace/internal/stream"
)

// ffmpeg returns the path of a program or skips the test and says why.
func ffmpeg(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("skipped: %s is not on the PATH", name)
	}
	if testing.Short() {
		t.Skipf("skipped: %s takes seconds, and -short was given", name)
	}
	return path
}

// source is two seconds of H.264 with B-frames, and AAC, as fast as they come.
func source(args ...string) []string {
	return append([]string{
		"-nostdin", "-hide_banner", "-loglevel", "error",
		"-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25", "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=44100",
		"-t", "2", "-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-g", "25", "-pix_fmt", "yuv420p", "-c:a", "aac",
	}, args...)
}

// probe is what ffprobe counts in a stream that it plays.
func probe(t *testing.T, play *exec.Cmd) (video, audio int) {
	t.Helper()
	var out, errs bytes.Buffer
	play.Stdout, play.Stderr = &out, &errs
	if err := play.Run(); err != nil {
		t.Errorf("%v: %v\n%s", play.Args, err, errs.String())
	}
	for line := range strings.SplitSeq(out.String(), "\n") {
		switch strings.Trim(strings.TrimSpace(line), ",") {
		case "video":
			video++
		case "audio":
			audio++
		}
	}
	if errs.Len() > 0 {
		t.Errorf("ffprobe complains: %s", errs.String())
	}
	return video, audio
}

// TestFFmpeg pushes with ffmpeg and reads back with ffprobe, plain and late in a
// stream's life, where each timestamp is an extended one.
func TestFFmpeg(t *testing.T) {
	push, read := ffmpeg(t, "ffmpeg"), ffmpeg(t, "ffprobe")
	for _, tt := range []struct {
		name string
		args []string
		out  int // chunk size towards players
	}{
		{"plain", nil, 60000},
		{"small chunks", nil, 128},
		{"begins after 20000 s", []string{"-output_ts_offset", "20000"}, 128},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t, option{
				cfg:    func(c *Config) { c.PlayWait, c.ChunkSize = patience, tt.out },
				stream: func(c *stream.Config) { c.Grace = 0 },
			})
			ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
			defer cancel()
			play := exec.CommandContext(ctx, read, "-loglevel", "error", "-show_entries", "packet=codec_type", "-of", "csv=p=0", n.url("/live/show"))
			counted := make(chan [2]int, 1)
			go func() {
				v, a := probe(t, play)
				counted <- [2]int{v, a}
			}()
			eventually(t, "a player that waits", func() bool { return n.table.Len() == 1 })
			// All of it fits in the log, so the player need not keep up.
			pub := exec.CommandContext(ctx, push, source(append(tt.args, "-f", "flv", n.url("/live/show"))...)...)
			if out, err := pub.CombinedOutput(); err != nil {
				t.Fatalf("push: %v\n%s", err, out)
			}
			n.endsWith(t, session.Unpublished)
			n.hub.Sweep(time.Now().Add(time.Minute))
			got := <-counted
			if got[0] != 50 || got[1] < 85 || got[1] > 90 {
				t.Errorf("read back %d pictures and %d audio frames, want 50 and about 87", got[0], got[1])
			}
		})
	}
}

// TestFFmpegTLS pushes over RTMPS.
func TestFFmpegTLS(t *testing.T) {
	push := ffmpeg(t, "ffmpeg")
	cert := certificate(t)
	n := newNode(t, option{wrap: tlsListener(cert)})
	w := n.watch(t, "live/show")
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	url := strings.Replace(n.url("/live/show"), "rtmp:", "rtmps:", 1)
	pub := exec.CommandContext(ctx, push, source("-f", "flv", url)...)
	out := make(chan string, 1)
	go func() {
		b, err := pub.CombinedOutput()
		if err != nil {
			b = append(b, err.Error()...)
		}
		out <- string(b)
	}()
	if tags := w.next(100); len(tags) != 100 {
		t.Errorf("%d tags", len(tags))
	}
	if s := n.table.List(); len(s) > 0 && !s[0].Info.TLS {
		t.Error("the session does not know that it is TLS")
	}
	if s := <-out; s != "" {
		t.Error(s)
	}
}
