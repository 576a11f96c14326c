package drill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"millrace/internal/flv"
	"millrace/tools/pull"
)

// frame is one frame as it came to a viewer.
type frame struct {
	at    time.Time
	media int64 // ms, as published
	time  int64 // ms, as it came
	seq   int64
	epoch int64
	key   bool
}

// viewer plays one stream over HTTP-FLV and notes each frame.
type viewer struct {
	// Fixed at construction.
	node, stream string
	asked        time.Time
	cancel       context.CancelFunc
	done         chan struct{} // closed when it plays no more

	// Guarded by mu.
	mu     sync.Mutex
	frames []frame
	check  pull.Checker
	meta   bool          // metadata came before the first frame
	err    error         // why it ended
	news   chan struct{} // closed and replaced with every frame, and at the end
}

// play starts a viewer, which plays until ctx ends or leave is called.
func play(ctx context.Context, addr, node, stream string, id uint32) *viewer {
	ctx, cancel := context.WithCancel(ctx)
	v := &viewer{
		node: node, stream: stream, asked: time.Now(), cancel: cancel, done: make(chan struct{}),
		check: pull.NewChecker(int64(id), true), news: make(chan struct{}),
	}
	go func() { // ends with ctx; leave waits for it
		defer close(v.done)
		err := v.run(ctx, "http://"+addr+"/"+stream+".flv")
		v.mu.Lock()
		defer v.mu.Unlock()
		if ctx.Err() == nil {
			v.err = err
		}
		v.tellLocked()
	}()
	return v
}

// readSize is what a viewer takes at once. A GOP of the streams here is 250 KB.
const readSize = 64 << 10

var errEnded = errors.New("the node ended the answer")

func (v *viewer) run(ctx context.Context, url string) error {
	t := &http.Transport{DisableKeepAlives: true, DisableCompression: true, ReadBufferSize: readSize}
	defer t.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := t.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("answer %s", res.Status)
	}
	parser := pull.Parser{Verify: true}
	buf := make([]byte, readSize)
	for {
		n, err := res.Body.Read(buf)
		now := time.Now()
		if n > 0 {
			if err := v.took(now, &parser, buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			return errEnded
		case err != nil:
			return err
		}
	}
}

func (v *viewer) took(now time.Time, p *pull.Parser, b []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	had := len(v.frames)
	err := p.Feed(b, func(t *pull.Tag) {
		v.meta = v.meta || t.Kind == flv.Script && len(v.frames) == 0
		if s, key, ok := v.check.Tag(t); ok {
			v.frames = append(v.frames, frame{now, s.Media, int64(t.Time), s.Seq, s.Epoch, key})
		}
	})
	if len(v.frames) > had {
		v.tellLocked()
	}
	return err
}

func (v *viewer) tellLocked() {
	close(v.news)
	v.news = make(chan struct{})
}

// await waits until ready holds, asked after each piece that came.
func (v *viewer) await(ctx context.Context, ready func() bool) error {
	for {
		v.mu.Lock()
		ok, news, err := ready(), v.news, v.err
		v.mu.Unlock()
		switch {
		case ok:
			return nil
		case err != nil:
			return fmt.Errorf("viewer of %s at %s: %w", v.stream, v.node, err)
		}
		select {
		case <-news:
		case <-ctx.Done():
			return fmt.Errorf("viewer of %s at %s waits in vain: %w", v.stream, v.node, ctx.Err())
		}
	}
}

// playing waits for the first frame.
func (v *viewer) playing(ctx context.Context) error {
	return v.await(ctx, func() bool { return len(v.frames) > 0 })
}

// leave ends the viewer and waits for it.
func (v *viewer) leave() {
	v.cancel()
	<-v.done
}
