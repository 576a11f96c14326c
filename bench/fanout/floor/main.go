// Command floor is the physical limit that bench/fanout measures a server against.
// It has the tags of a synthetic stream ready (the generator of flvgen made them),
// accepts viewers, answers each with a fixed header, and from then on does one
// thing: every interval, one non-blocking writev of the tags that came due to each
// viewer, from one loop on one thread, from buffers that all viewers share.
//
// It parses no protocol, keeps no clock per viewer, frames nothing and decides
// nothing. A viewer begins at the next keyframe; what a socket did not take is
// kept for it. Before each write the frames due get their stamps, so that flvpull
// measures delay as for any server: from when a frame was due.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"millrace/tools/frames"
)

func main() {
	cfg := frames.DefaultConfig()
	addr := flag.String("http", "127.0.0.1:8080", "where to listen")
	interval := flag.Duration("interval", 100*time.Millisecond, "time between writes")
	streams := flag.Int("streams", 1, "how many streams; viewer i of those that connect gets number i mod n")
	flag.IntVar(&cfg.VideoKbps, "video-kbps", cfg.VideoKbps, "video bitrate, kbit/s")
	flag.IntVar(&cfg.AudioKbps, "audio-kbps", cfg.AudioKbps, "audio bitrate, kbit/s")
	flag.Float64Var(&cfg.FPS, "fps", cfg.FPS, "frames a second")
	flag.DurationVar(&cfg.GOP, "gop", cfg.GOP, "time from keyframe to keyframe")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, *interval, *streams, cfg); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, addr string, interval time.Duration, streams int, cfg frames.Config) error {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return err
	}
	cfg.Epoch = time.Now().UnixMilli()
	l, err := newLoop(at, interval, streams, cfg)
	if err != nil {
		return err
	}
	defer l.close()
	runtime.LockOSThread()
	return l.run(ctx)
}
