package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millrace/internal/flv"
	"millrace/tools/frames"
)

// Three seconds of picture and sound, as in `source`: what must come out again.
const (
	sourcePictures = 75  // 3 s at 25 frames a second
	sourceAudio    = 130 // about: 3 s of 1024 samples at 44100 Hz
)

// source are ffmpeg's arguments for three seconds of H.264 with B-frames, and AAC.
func source(args ...string) []string {
	return append([]string{
		"-nostdin", "-v", "error",
		"-re", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25",
		"-re", "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=44100", "-t", "3",
		"-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-g", "25", "-pix_fmt", "yuv420p", "-c:a", "aac",
	}, args...)
}

// output runs a program to its end and returns what it wrote. What it says on
// stderr is an error of the test.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, Program(t, name), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, errs.String())
	} else if errs.Len() > 0 {
		t.Errorf("%s %s complains: %s", name, strings.Join(args, " "), errs.String())
	}
	return out.String()
}

// packets returns what ffprobe counts in a stream or file.
func packets(t *testing.T, in string) (video, audio int) {
	t.Helper()
	for _, line := range strings.Fields(output(t, "ffprobe", "-v", "error", "-show_entries", "packet=codec_type", "-of", "csv=p=0", in)) {
		switch strings.Trim(line, ",") {
		case "video":
			video++
		case "audio":
			audio++
		}
	}
	return video, audio
}

// counted is what came of a reader that runs beside the test.
type counted struct{ video, audio int }

// read starts ffprobe on a stream; it is counted when the stream is over.
func read(t *testing.T, in string) <-chan counted {
	t.Helper()
	out := make(chan counted, 1)
	go func() {
		v, a := packets(t, in)
		out <- counted{v, a}
	}()
	return out
}

// awaitWaiting waits until so many players of both protocols wait for a stream.
func awaitWaiting(t *testing.T, n *Node, overHTTP, overRTMP int) {
	t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	var metrics string
	for end := time.Now().Add(patience); time.Now().Before(end); <-look.C {
		_, metrics = get(t, n.URL("admin", "/metrics"))
		if strings.Contains(metrics, fmt.Sprintf("\nmillrace_httpflv_waiting %d\n", overHTTP)) &&
			strings.Contains(metrics, fmt.Sprintf("\nmillrace_session_open{action=\"play\",protocol=\"rtmp\"} %d\n", overRTMP)) {
			return
		}
	}
	t.Fatalf("not %d and %d players wait after %v: %s", overHTTP, overRTMP, patience, metrics)
}

// TestFFmpegCounts pushes three seconds with ffmpeg and has four readers count what
// comes out: all that came in, over HTTP-FLV and RTMP, also with a clock that begins
// late, where each RTMP timestamp is an extended one. All of them count the same.
func TestFFmpegCounts(t *testing.T) {
	Program(t, "ffmpeg")
	Program(t, "ffprobe")
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"clock from 0", nil},
		{"clock from 20000 s", []string{"-output_ts_offset", "20000"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// Readers may come before the publisher, and wait.
			n := StartNode(t, "--set", "stream.grace=0s", "--set", "httpflv.play_wait=60s", "--set", "rtmp.play_wait=60s")
			var readers []<-chan counted
			for _, in := range []string{
				n.URL("http", "/live/show.flv"), n.URL("http", "/live/show.flv"),
				n.URL("rtmp", "/live/show"), n.URL("rtmp", "/live/show"),
			} {
				readers = append(readers, read(t, in))
			}
			awaitWaiting(t, n, 2, 2)
			output(t, "ffmpeg", source(append(tt.args, "-f", "flv", n.URL("rtmp", "/live/show"))...)...)
			first := <-readers[0]
			if first.video != sourcePictures || first.audio < sourceAudio-2 || first.audio > sourceAudio+2 {
				t.Errorf("reader 0 counts %d pictures and %d audio frames, want %d and about %d",
					first.video, first.audio, sourcePictures, sourceAudio)
			}
			for i, r := range readers[1:] {
				if got := <-r; got != first {
					t.Errorf("reader %d counts %+v, reader 0 %+v", i+1, got, first)
				}
			}
		})
	}
}

// TestFFmpegDecodes: ffmpeg decodes what it reads, without a complaint, and the
// pictures are those that were sent.
func TestFFmpegDecodes(t *testing.T) {
	Program(t, "ffmpeg")
	n := StartNode(t, "--set", "stream.grace=0s", "--set", "httpflv.play_wait=60s", "--set", "rtmp.play_wait=60s")
	var sums []<-chan string
	for _, in := range []string{n.URL("http", "/live/show.flv"), n.URL("rtmp", "/live/show")} {
		sum := make(chan string, 1)
		go func() {
			sum <- output(t, "ffmpeg", "-nostdin", "-v", "error", "-i", in, "-map", "0:v", "-f", "framehash", "-hash", "md5", "-")
		}()
		sums = append(sums, sum)
	}
	awaitWaiting(t, n, 1, 1)
	file := filepath.Join(t.TempDir(), "sent.flv")
	output(t, "ffmpeg", source("-map", "0:v", "-map", "1:a", "-flags", "+global_header",
		"-f", "tee", "[f=flv]"+n.URL("rtmp", "/live/show")+"|[f=flv]"+file)...)
	want := pictureHashes(output(t, "ffmpeg", "-nostdin", "-v", "error", "-i", file, "-map", "0:v", "-f", "framehash", "-hash", "md5", "-"))
	if len(want) != sourcePictures {
		t.Fatalf("%d pictures were sent, want %d", len(want), sourcePictures)
	}
	for i, sum := range sums {
		got := pictureHashes(<-sum)
		if len(got) != len(want) {
			t.Errorf("reader %d decodes %d pictures, want %d", i, len(got), len(want))
			continue
		}
		for j := range got {
			if got[j] != want[j] {
				t.Errorf("reader %d: picture %d is another one", i, j)
				break
			}
		}
	}
}

func pictureHashes(framehash string) (hashes []string) {
	for line := range strings.Lines(framehash) {
		if fields := strings.Split(strings.TrimSpace(line), ","); !strings.HasPrefix(line, "#") && len(fields) > 1 {
			hashes = append(hashes, strings.TrimSpace(fields[len(fields)-1]))
		}
	}
	return hashes
}

// TestViewersJoinAtDifferentTimes: each begins at a keyframe with its headers and a
// clock from 0, and ends with the same frame.
func TestViewersJoinAtDifferentTimes(t *testing.T) {
	n := StartNode(t, "--set", "stream.grace=0s")
	stop := publishClip(t, n.URL("rtmp", "/live/demo"))
	type viewing struct {
		tags []flv.Tag
		err  error
	}
	var viewers []chan viewing
	_, pace := watch(t, n.URL("http", "/live/demo.flv"))
	for range 4 {
		_, r := watch(t, n.URL("http", "/live/demo.flv"))
		first, err := r.Read()
		if err != nil {
			t.Fatal(err)
		}
		out := make(chan viewing, 1)
		go func() {
			v := viewing{tags: []flv.Tag{first}}
			for v.err == nil {
				var tag flv.Tag
				if tag, v.err = r.Read(); v.err == nil {
					v.tags = append(v.tags, tag)
				}
			}
			out <- v
		}()
		viewers = append(viewers, out)
		for range 50 { // 0.65 s: they join within a GOP of 2 s and over its end
			if _, err := pace.Read(); err != nil {
				t.Fatal(err)
			}
		}
	}
	stop()
	var last []byte
	for i, out := range viewers {
		v := <-out
		if v.err != io.EOF {
			t.Errorf("viewer %d: ended by %v, want a clean end", i, v.err)
		}
		checkStart(t, i, v.tags)
		end := v.tags[len(v.tags)-1].Payload()
		if last != nil && !bytes.Equal(end, last) {
			t.Errorf("viewer %d ends with another frame than the one before it", i)
		}
		last = end
	}
}

// checkStart wants headers first, then a keyframe, and a clock from 0 that never
// goes back.
func checkStart(t *testing.T, viewer int, tags []flv.Tag) {
	t.Helper()
	var headers, clock int64
	began := false
	for i, tag := range tags {
		if tag.DTS < clock {
			t.Fatalf("viewer %d: tag %d goes back from %d to %d ms", viewer, i, clock, tag.DTS)
		}
		clock = tag.DTS
		switch {
		case began:
		case tag.Is(flv.Header):
			headers++
		case tag.Is(flv.Frame):
			began = true
			if !tag.Is(flv.Keyframe) || headers != 2 || tag.DTS != 0 {
				t.Errorf("viewer %d begins with %v %08b at %d ms after %d headers, want a keyframe at 0 after 2",
					viewer, tag.Kind, tag.Flags, tag.DTS, headers)
			}
		}
	}
}

// TestRestartUnderViewers: the publisher goes and comes back with a clock from 0 and
// another picture size; ffmpeg, on one connection all the time, sees one stream.
func TestRestartUnderViewers(t *testing.T) {
	Program(t, "ffmpeg")
	Program(t, "ffprobe")
	n := StartNode(t, "--set", "stream.grace=15s", "--set", "httpflv.play_wait=60s", "--set", "rtmp.play_wait=60s")
	times := make(chan string, 2)
	for _, in := range []string{n.URL("http", "/live/show.flv"), n.URL("rtmp", "/live/show")} {
		go func() {
			times <- output(t, "ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "packet=dts_time", "-of", "csv=p=0", in)
		}()
	}
	awaitWaiting(t, n, 1, 1)
	output(t, "ffmpeg", source("-f", "flv", n.URL("rtmp", "/live/show"))...)
	output(t, "ffmpeg", source("-s", "640x360", "-f", "flv", n.URL("rtmp", "/live/show"))...)
	for range 2 {
		last, count := -1.0, 0
		for _, field := range strings.Fields(<-times) {
			dts, err := time.ParseDuration(strings.Trim(field, ",") + "s")
			if err != nil {
				t.Fatalf("time %q: %v", field, err)
			}
			if dts.Seconds() <= last && count > 0 {
				t.Errorf("the clock goes from %v s to %v at picture %d", last, dts, count)
			}
			last = dts.Seconds()
			count++
		}
		if count != 2*sourcePictures {
			t.Errorf("%d pictures over the restart, want %d", count, 2*sourcePictures)
		}
	}
	if played := strings.Count(n.Output(), `"protocol":"http-flv"`); played > 1 {
		t.Errorf("%d HTTP viewers ended, want one connection all the time", played)
	}
}

// TestTracks: one track alone, and codecs that ffmpeg here cannot encode, come
// through and are announced truly by the FLV header.
func TestTracks(t *testing.T) {
	n := StartNode(t)
	f := func(name string, wantAudio, wantVideo bool, codec flv.Codec, change func(*frames.Config)) {
		t.Helper()
		cfg := frames.DefaultConfig()
		cfg.Width, cfg.Height, cfg.VideoKbps = 320, 180, 200
		change(&cfg)
		stop := publishWith(t, n.URL("rtmp", "/live/"+name), func(ctx context.Context, write func(flv.Tag) error) error {
			return playFrames(ctx, cfg, write)
		})
		defer stop()
		awaitStream(t, n, "live/"+name)
		_, r := watch(t, n.URL("http", "/live/"+name+".flv"))
		for found := 0; found < 3; {
			tag, err := r.Read()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if tag.Is(flv.Frame) && (tag.Kind == flv.Video) == wantVideo {
				found++
				if tag.Codec != codec {
					t.Errorf("%s: codec %v, want %v", name, tag.Codec, codec)
				}
			}
		}
		if a, v := r.Tracks(); a != wantAudio || v != wantVideo {
			t.Errorf("%s: the header says audio %v and video %v, want %v and %v", name, a, v, wantAudio, wantVideo)
		}
	}
	f("both", true, true, flv.H264, func(*frames.Config) {})
	f("picture", false, true, flv.H264, func(c *frames.Config) { c.NoAudio = true })
	f("sound", true, false, flv.AAC, func(c *frames.Config) { c.NoVideo = true })
	f("hevc", true, true, flv.H265, func(c *frames.Config) { c.Codec = frames.H265 })
	f("hevc-enhanced", true, true, flv.H265, func(c *frames.Config) { c.Codec = frames.H265Enhanced })
	f("av1", true, true, flv.AV1, func(c *frames.Config) { c.Codec = frames.AV1 })
}

// awaitStream waits until a viewer of a stream would be given frames.
func awaitStream(t *testing.T, n *Node, name string) {
	t.Helper()
	awaitURL(t, n.URL("admin", "/v1/streams/"+name))
}
