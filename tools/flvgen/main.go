// Command flvgen publishes synthetic streams over RTMP. Every frame has a number,
// the time of its sending and checksums (see tools/frames for the layout), so that
// flvpull can tell what a server did to it.
//
//	flvgen --url rtmp://127.0.0.1/live/test --duration 1m
//	flvgen --url rtmp://127.0.0.1/live/s%d --streams 100 --video-kbps 500
//
// Stream i has the id i in its stamps. Frames are sent when they are due by a
// schedule that is fixed at the start: being late once delays nothing later.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"millrace/internal/rtmp"
	"millrace/tools/frames"
)

type options struct {
	url      string
	streams  int
	duration time.Duration
	quiet    bool
	config   frames.Config
}

func main() {
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "flvgen:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "flvgen:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	o := options{config: frames.DefaultConfig()}
	c := &o.config
	f := flag.NewFlagSet("flvgen", flag.ContinueOnError)
	f.StringVar(&o.url, "url", "rtmp://127.0.0.1/live/test", "where to publish; %d is the number of the stream")
	f.IntVar(&o.streams, "streams", 1, "how many streams")
	f.DurationVar(&o.duration, "duration", 0, "how long; 0 is until it is interrupted")
	f.BoolVar(&o.quiet, "quiet", false, "print nothing but errors")
	f.StringVar((*string)(&c.Codec), "codec", string(c.Codec), "h264, h265, h265-enhanced or av1")
	f.IntVar(&c.VideoKbps, "video-kbps", c.VideoKbps, "video bitrate, kbit/s")
	f.IntVar(&c.AudioKbps, "audio-kbps", c.AudioKbps, "audio bitrate, kbit/s")
	f.Float64Var(&c.FPS, "fps", c.FPS, "frames a second")
	f.DurationVar(&c.GOP, "gop", c.GOP, "time from keyframe to keyframe")
	f.BoolVar(&c.NoVideo, "audio-only", false, "no video track")
	f.BoolVar(&c.NoAudio, "video-only", false, "no audio track")
	f.BoolVar(&c.BFrames, "bframes", false, "composition times as of B-frames, also negative")
	f.Int64Var(&c.Start, "start-ts", 0, "media time of the first frame, ms")
	f.Func("size", "picture size, WIDTHxHEIGHT (default 1280x720)", func(s string) error {
		_, err := fmt.Sscanf(s, "%dx%d", &c.Width, &c.Height)
		return err
	})
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case o.streams < 1 || o.streams > 10_000:
		return o, errors.New("streams must be 1 to 10000")
	case o.streams > 1 && !strings.Contains(o.url, "%d"):
		o.url += "%d"
	}
	return o, c.Validate()
}

func run(ctx context.Context, o options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	o.config.Epoch = time.Now().UnixMilli()
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		first error
		total result
	)
	begin := time.Now()
	for i := range o.streams {
		// Encoders do not tick together: the streams are spread over a frame time.
		phase := time.Duration(float64(i) / float64(o.streams) / o.config.FPS * 1e9)
		wg.Go(func() {
			r, err := publish(ctx, o, i, begin.Add(phase))
			mu.Lock()
			defer mu.Unlock()
			total.frames += r.frames
			total.bytes += r.bytes
			total.late = max(total.late, r.late)
			if err != nil && first == nil {
				first = err
				cancel()
			}
		})
	}
	wg.Wait()
	if !o.quiet {
		fmt.Printf("sent %d frames, %.3f MB in %d streams in %.1f s; at most %.1f ms late\n", total.frames, float64(total.bytes)/1e6,
			o.streams, time.Since(begin).Seconds(), float64(total.late.Microseconds())/1000)
	}
	return first
}

type result struct {
	frames int
	bytes  int
	late   time.Duration // of the latest frame
}

// publish sends stream number i from begin on.
func publish(ctx context.Context, o options, i int, begin time.Time) (r result, err error) {
	o.config.Stream = uint32(i)
	g, err := frames.NewGenerator(o.config)
	if err != nil {
		return r, err
	}
	url := strings.ReplaceAll(o.url, "%d", fmt.Sprint(i))
	c, err := rtmp.Dial(ctx, url, rtmp.DefaultClientConfig())
	if err != nil {
		return r, err
	}
	defer c.Close()
	if err := c.Publish(ctx); err != nil {
		return r, err
	}
	for _, h := range g.Headers() {
		if err := c.Write(h); err != nil {
			return r, err
		}
	}
	if now := time.Now(); now.After(begin) {
		begin = now // connecting took longer than the phase
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for o.duration == 0 || g.Due() < o.duration {
		due := begin.Add(g.Due())
		timer.Reset(time.Until(due))
		select {
		case <-ctx.Done():
			return r, nil
		case <-timer.C:
		}
		now := time.Now()
		t := g.Next(now)
		if err := c.Write(t); err != nil {
			if ctx.Err() != nil {
				return r, nil
			}
			return r, fmt.Errorf("%s: %w", url, err)
		}
		r.frames++
		r.bytes += len(t.Wire)
		r.late = max(r.late, now.Sub(due))
	}
	return r, nil
}
