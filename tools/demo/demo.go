package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"millrace/internal/rtmp"
	"millrace/tools/demo/clip"
)

const (
	startTime = 15 * time.Second // for the node to answer; a loaded machine may need some
	endTime   = 5 * time.Second  // for it to end; then it is killed
	lookEvery = time.Second      // at how many watch
)

// demo is one run.
type demo struct {
	// Fixed at construction.
	settings
	out io.Writer

	// Guarded by mu.
	mu sync.Mutex // lines come from several goroutines
}

func (d *demo) say(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintf(d.out, format+"\n", args...)
}

// run starts the node, publishes until ctx is done or the node has ended, and ends
// the node. Everything that it started is over when it returns.
func (d *demo) run(ctx context.Context) error {
	d.say("1. Starting a node (%s), a stand-alone center that anyone may publish to:", d.node)
	child, err := d.start()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	ended := make(chan error, 1) // the node's end
	running.Go(func() {
		ended <- child.wait()
		cancel()
	})
	err = d.show(ctx, &running)
	var died error
	select {
	case died = <-ended:
		died = fmt.Errorf("the node has ended by itself: %w; its lines above say why", orClean(died))
	default:
		d.say("\nEnding: the node stops taking streams and viewers, and closes.")
		child.end(endTime)
	}
	cancel()
	running.Wait()
	if died != nil {
		return died
	}
	if err == nil {
		d.say("Ended.")
	}
	return err
}

func orClean(err error) error {
	if err == nil {
		return errors.New("exit code 0")
	}
	return err
}

// show does everything between start and end of the node.
func (d *demo) show(ctx context.Context, running *sync.WaitGroup) error {
	if err := d.ready(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	d.say("\n2. Publishing an eight-second clip (H.264 and AAC, 640x360, 30 frames a second) in a loop, as an encoder would, to\n     %s", d.rtmpURL())
	d.urls()
	running.Go(func() { d.count(ctx) })
	return d.publish(ctx)
}

func (d *demo) rtmpURL() string { return url("rtmp", d.rtmp, "/"+d.stream) }

func (d *demo) urls() {
	flv := url("http", d.http, "/"+d.stream+".flv")
	d.say(`
3. Watch it. In a browser, open
     %s
   or with a player:
     ffplay -fflags nobuffer %s
     ffplay %s
     vlc %s
     mpv --profile=low-latency %s
     curl -o demo.flv %s

   What the node knows:
     %s
     %s

   Publish something of your own to %s/NAME.
   Ctrl-C ends it.
`,
		url("http", d.http, "/watch/"+d.stream), flv, d.rtmpURL(), flv, flv, flv,
		url("http", d.admin, "/v1/streams"), url("http", d.admin, "/metrics"),
		url("rtmp", d.rtmp, "/live"))
}

// ready waits until the node answers.
func (d *demo) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := get(ctx, url("http", d.admin, "/healthz"), nil); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("the node did not answer within %v", startTime)
			}
			return nil
		case <-tick.C:
		}
	}
}

// publish plays the clip to the node, and again should the node end the connection:
// somebody may have kicked it.
func (d *demo) publish(ctx context.Context) error {
	for failed := 0; ; {
		loop, err := clip.NewLoop()
		if err != nil {
			return err
		}
		began := time.Now()
		err = d.publishOnce(ctx, loop)
		if ctx.Err() != nil {
			return nil
		}
		if failed++; time.Since(began) > 10*time.Second {
			failed = 1
		}
		if failed > 5 {
			return fmt.Errorf("publish: %w", err)
		}
		d.say("   The publish was ended (%v). Again in %d s.", err, failed)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Duration(failed) * time.Second):
		}
	}
}

func (d *demo) publishOnce(ctx context.Context, loop *clip.Loop) error {
	c, err := rtmp.Dial(ctx, d.rtmpURL(), rtmp.DefaultClientConfig())
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Publish(ctx); err != nil {
		return err
	}
	return loop.Play(ctx, c.Write)
}

// count says how many watch, when that changes.
func (d *demo) count(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	last := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var live []struct {
			Name    string `json:"name"`
			Viewers int    `json:"viewers"`
		}
		if get(ctx, url("http", d.http, "/watch/streams.json"), &live) != nil {
			continue
		}
		for _, s := range live {
			if s.Name == d.stream && s.Viewers != last {
				last = s.Viewers
				d.say("   %s  viewers of %s: %d", time.Now().Format(time.TimeOnly), s.Name, last)
			}
		}
	}
}

// get asks for a URL and decodes the answer into v, unless that is nil.
func get(ctx context.Context, url string, v any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	if v == nil {
		return nil
	}
	return json.NewDecoder(res.Body).Decode(v)
}

// child is the node's process.
type child struct {
	cmd   *exec.Cmd
	lines sync.WaitGroup // copies its output
	done  chan struct{}  // closed when it has ended
}

func (d *demo) start() (*child, error) {
	cmd := exec.Command(d.node, "--rtmp", d.rtmp, "--http", d.http, "--admin", d.admin,
		"--log-format", "text", "--set", "drain.deadline=1s")
	// A group of its own: Ctrl-C is for the demo, which then ends the node in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = w, w
	err = cmd.Start()
	w.Close()
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("start the node: %w (make build makes it)", err)
	}
	c := &child{cmd: cmd, done: make(chan struct{})}
	c.lines.Go(func() {
		defer r.Close()
		for s := bufio.NewScanner(r); s.Scan(); {
			d.say("     node: %s", s.Text())
		}
	})
	return c, nil
}

// wait returns when the process has ended and its last line is shown.
func (c *child) wait() error {
	c.lines.Wait()
	err := c.cmd.Wait()
	close(c.done)
	return err
}

// end asks the process to end, and kills it after a time.
func (c *child) end(within time.Duration) {
	c.cmd.Process.Signal(syscall.SIGTERM) // it may be gone already
	select {
	case <-c.done:
	case <-time.After(within):
		c.cmd.Process.Kill()
		<-c.done
	}
}
