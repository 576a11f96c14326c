package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"millrace/internal/flv"
	"millrace/internal/rtmp"
	"millrace/tools/clip"
)

// browser starts a headless Chromium with an empty profile, for one test.
func browser(t *testing.T) context.Context {
	t.Helper()
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(Program(t, "chromium")),
		chromedp.NoSandbox, // tests may run as root
		chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
	)
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	return ctx
}

// page is a tab that shows something of the node's.
type page struct {
	t   *testing.T
	ctx context.Context

	// Guarded by mu.
	mu     sync.Mutex
	thrown []string // exceptions of the page's scripts, and what the policy forbade
}

// open shows a URL in a new tab, which is closed with the test.
func open(t *testing.T, browser context.Context, url string) *page {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	p := &page{t: t, ctx: ctx}
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	messages := chromedp.Console(ctx)
	read := make(chan struct{})
	go func() {
		defer close(read)
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.IsException() || strings.Contains(m.Text, "Content Security Policy") {
				p.mu.Lock()
				p.thrown = append(p.thrown, m.String())
				p.mu.Unlock()
			}
		}
	}()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the page says %q", p.text("#cover"))
		}
		cancel()
		<-read
		for _, m := range p.thrown {
			t.Errorf("the page's console: %s", m)
		}
	})
	if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
		t.Fatalf("open %s: %v", url, err)
	}
	return p
}

// eval returns the value of a JavaScript expression.
func eval[T any](p *page, js string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](js))
	if err != nil {
		p.t.Fatalf("evaluate %s: %v", js, err)
	}
	return v
}

func (p *page) text(selector string) string {
	p.t.Helper()
	return eval[string](p, fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ""`, selector))
}

func (p *page) number(js string) float64 {
	p.t.Helper()
	return eval[float64](p, "Number("+js+")")
}

// figure returns one of the live figures.
func (p *page) figure(id string) float64 {
	p.t.Helper()
	return eval[float64](p, fmt.Sprintf(`(v => Number.isFinite(v) ? v : -1)(Number(document.getElementById(%q).dataset.value))`, id))
}

// await waits until a condition holds in the page, over changes of the page too.
func (p *page) await(what, js string) {
	p.t.Helper()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-look.C {
		// An error is a page that is just being left.
		if ok, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("Boolean("+js+")")); err == nil && ok {
			return
		}
	}
	p.t.Fatalf("%s: not within %v; state is %q: %q", what, patience, p.state(), p.text("#cover"))
}

func (p *page) state() string {
	p.t.Helper()
	return eval[string](p, `document.body.dataset.state ?? ""`)
}

func (p *page) awaitState(state string) {
	p.t.Helper()
	p.await("state "+state, fmt.Sprintf("document.body.dataset.state === %q", state))
}

// awaitPictures waits until n more frames are decoded and the clock has moved on.
func (p *page) awaitPictures(n int) {
	p.t.Helper()
	now := p.number(`document.getElementById("video").currentTime`)
	frames := p.number(`document.getElementById("video").getVideoPlaybackQuality().totalVideoFrames`)
	p.await(fmt.Sprintf("%d frames more than %v, after %.2f s", n, frames, now), fmt.Sprintf(
		`(v => v.currentTime > %v + %v/60 && v.getVideoPlaybackQuality().totalVideoFrames >= %v)(document.getElementById("video"))`,
		now, n, frames+float64(n)))
}

func (p *page) click(selector string) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, chromedp.Click(selector)); err != nil {
		p.t.Fatalf("click %s: %v", selector, err)
	}
}

func (p *page) key(keys string) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, chromedp.KeyEvent(keys)); err != nil {
		p.t.Fatalf("press %q: %v", keys, err)
	}
}

// leave goes to an empty page, as somebody does who has seen enough.
func (p *page) leave() {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, chromedp.Navigate("about:blank")); err != nil {
		p.t.Fatal(err)
	}
}

// show sets the size of the window and the theme.
func (p *page) show(width, height int64, theme string) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600,
	})
	if err == nil {
		_, err = chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
		})
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// picture saves a screenshot of the whole page, for people to look at.
func (p *page) picture(name string) {
	p.t.Helper()
	png, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		p.t.Fatal(err)
	}
	dir := filepath.Join(os.TempDir(), "millrace-pages")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.t.Fatal(err)
	}
	file := filepath.Join(dir, name+".png")
	if err := os.WriteFile(file, png, 0o644); err != nil {
		p.t.Fatal(err)
	}
	p.t.Logf("screenshot: %s", file)
}

// publishClip publishes the demo's clip until stop is called or the test ends.
func publishClip(t *testing.T, url string) (stop func()) {
	t.Helper()
	loop, err := clip.NewLoop()
	if err != nil {
		t.Fatal(err)
	}
	return publishWith(t, url, loop.Play)
}

// publishWith publishes what play writes.
func publishWith(t *testing.T, url string, play func(context.Context, func(flv.Tag) error) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cfg := rtmp.DefaultClientConfig()
	cfg.Timeout = patience
	c, err := rtmp.Dial(ctx, url, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Publish(ctx); err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		defer c.Close()
		if err := play(ctx, c.Write); err != nil {
			t.Errorf("publish to %s: %v", url, err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); done.Wait() })
	t.Cleanup(stop)
	return stop
}
