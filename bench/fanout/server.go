package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// process is a program that was started here and is stopped here.
type process struct {
	cmd  *exec.Cmd
	done chan error // capacity 1
	log  string     // file with its output
}

// start runs a program with its output in a file.
func (b *bench) start(env []string, name string, args ...string) (*process, error) {
	log, err := os.CreateTemp(b.dir, "log-*")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Dir = b.dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan error, 1), log: log.Name()}
	go func() { p.done <- cmd.Wait() }()
	return p, nil
}

// stop ends the program and waits for it.
func (p *process) stop() {
	p.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-p.done:
	case <-time.After(3 * time.Second):
		p.cmd.Process.Kill()
		<-p.done
	}
}

// tail returns the end of what the program said.
func (p *process) tail() string {
	b, _ := os.ReadFile(p.log)
	return string(b[max(0, len(b)-2000):])
}

// server is a server under measurement.
type server struct {
	*process
	center *process // that the server fetches from; nil if it is published to itself
	rtmp   string   // where flvgen publishes, with %d; "" if it makes its streams itself
	http   string   // where flvpull plays, with %d
}

// serve starts the server that the trial names and waits until it listens.
func (b *bench) serve(ctx context.Context, t trial) (*server, error) {
	media, web, admin := freePort(), freePort(), freePort()
	s := &server{rtmp: "rtmp://" + media + "/live/s%d", http: "http://" + web + "/live/s%d.flv"}
	var err error
	switch t.server {
	case "node":
		var env []string
		if t.interval > 0 {
			env = []string{"MILLRACE_HTTPFLV_MERGE_MIN=" + t.interval.String(), "MILLRACE_HTTPFLV_MERGE_MAX=" + t.interval.String()}
		}
		s.process, err = b.start(env, b.node, "--rtmp", media, "--http", web, "--admin", admin)
	case "relay":
		above := freePort()
		merge := t.interval.String()
		s.center, err = b.start(nil, b.node, "--role", "center", "--id", "center", "--rtmp", media, "--http", above, "--admin", freePort())
		if err != nil {
			break
		}
		if err = awaitPort(ctx, above); err != nil {
			break
		}
		s.process, err = b.start(nil, b.node, "--role", "relay", "--id", "relay", "--upstream", "http://"+above, "--rtmp", freePort(), "--http", web, "--admin", admin,
			"--set", "httpflv.merge_min="+merge, "--set", "httpflv.merge_max="+merge)
	case "floor":
		s.rtmp = ""
		s.process, err = b.start(nil, b.path("floor"), "--http", web, "--interval", t.interval.String(),
			"--streams", fmt.Sprint(t.streams), "--video-kbps", fmt.Sprint(t.kbps))
	case "lalserver":
		var conf string
		if conf, err = b.lalConfig(media, web); err == nil {
			s.process, err = b.start(nil, b.lal, "-c", conf)
		}
	default:
		err = fmt.Errorf("no server %q", t.server)
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	if err := awaitPort(ctx, web); err != nil {
		s.stop()
		return nil, fmt.Errorf("%s does not listen: %w\n%s", t.server, err, s.tail())
	}
	return s, nil
}

// stop ends the server, and what it fetches from.
func (s *server) stop() {
	if s.process != nil {
		s.process.stop()
	}
	if s.center != nil {
		s.center.stop()
	}
}

// lalConfig writes a configuration for lalserver: as it ships, low delay, without
// merging, but with everything off that is not RTMP in and HTTP-FLV out, and quiet.
// All of that is in its favour.
func (b *bench) lalConfig(media, web string) (string, error) {
	off := map[string]any{"enable": false, "enable_https": false}
	conf := map[string]any{
		"conf_version": "v0.4.1",
		"rtmp":         map[string]any{"enable": true, "addr": media, "gop_num": 0, "merge_write_size": 0},
		"default_http": map[string]any{"http_listen_addr": web},
		"httpflv":      map[string]any{"enable": true, "enable_https": false, "url_pattern": "/", "gop_num": 0},
		"hls":          off, "httpts": off, "http_api": off, "pprof": off, "rtsp": off, "record": off,
		"relay_push": off, "static_relay_pull": off, "http_notify": off,
		"log": map[string]any{"level": 3, "filename": b.path("lal.log"), "is_to_stdout": false},
	}
	j, err := json.Marshal(conf)
	if err != nil {
		return "", err
	}
	return b.path("lal.json"), os.WriteFile(b.path("lal.json"), j, 0o644)
}

// freePort returns a loopback address that nobody listens on.
func freePort() string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "127.0.0.1:0"
	}
	defer ln.Close()
	return ln.Addr().String()
}

func awaitPort(ctx context.Context, addr string) (err error) {
	for range 100 {
		var c net.Conn
		if c, err = net.Dial("tcp", addr); err == nil {
			return c.Close()
		}
		if !pause(ctx, 50*time.Millisecond) {
			return ctx.Err()
		}
	}
	return err
}

// pause waits and reports whether ctx is still good.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
