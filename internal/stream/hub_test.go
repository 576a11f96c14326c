package stream

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/flv"
	"millrace/internal/session"
)

type counter struct{ n atomic.Int64 }

func (c *counter) Wake() { c.n.Add(1) }

func TestPublisherSlot(t *testing.T) {
	h, _ := NewHub(DefaultConfig())
	a, err := h.Publish(epoch, "live/a", "ann", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Publish(epoch, "live/a", "bob", nil); !errors.Is(err, ErrBusy) {
		t.Errorf("another owner gets %v, want ErrBusy", err)
	}
	first := a.Stream().Epoch()
	b, err := h.Publish(epoch, "live/a", "ann", nil)
	if err != nil {
		t.Fatalf("the same owner again: %v", err)
	}
	select {
	case <-a.Done():
	default:
		t.Error("the ghost is not told")
	}
	if a.Reason() != session.Displaced || b.Reason() != session.None || b.Stream().Epoch() <= first {
		t.Errorf("reasons %v, %v; epochs %d, %d", a.Reason(), b.Reason(), first, b.Stream().Epoch())
	}
	tag := flv.New(flv.Audio, 0, []byte{0xaf, 1, 2})
	if err := a.Write(epoch, tag); !errors.Is(err, ErrDisplaced) {
		t.Errorf("the ghost writes: %v", err)
	}
	a.Close(epoch) // must not end b
	if err := b.Write(epoch, tag); err != nil {
		t.Error(err)
	}
	b.Close(epoch)
	b.Close(epoch)
	if err := b.Write(epoch, tag); !errors.Is(err, ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
	if _, err := h.Publish(epoch, "live/a", "bob", nil); err != nil {
		t.Errorf("another owner after the first has gone: %v", err)
	}
}

func TestGraceKeepsReadersAndGivesJoinersNothingOld(t *testing.T) {
	f := newFeed(t, nil)
	s, err := f.hub.Attach("live/a", Demand{})
	if err != nil {
		t.Fatal(err)
	}
	var w counter
	s.Watch(&w)
	f.videoHeader() // 1
	f.key(5000)     // 2
	f.inter(5040)   // 3
	c := s.NewCursor(CursorOptions{})
	wantNumbers(t, drain(&c, 8), 1, 2, 3)
	f.pub.Close(epoch)
	f.hub.Sweep(epoch.Add(14 * time.Second))
	if s.State() != Grace || c.Ended() {
		t.Errorf("within the grace time: %v, ended %v", s.State(), c.Ended())
	}
	joiner := s.NewCursor(CursorOptions{})
	if got := drain(&joiner, 8); len(got) != 0 {
		t.Errorf("a joiner in the grace time reads %v", numbers(got))
	}

	f.publish()
	f.videoHeader() // 4
	f.inter(0)      // 5, left out
	f.key(10)       // 6
	if n := w.n.Load(); n != 8 {
		t.Errorf("woken %d times, want 8: five tags, the end, the return, and the tag left out", n)
	}
	got := drain(&c, 8)
	wantNumbers(t, got, 4, 6)
	if got[1].DTS != 80 {
		t.Errorf("the reader's clock is at %d, want a frame later, 80", got[1].DTS)
	}
	wantNumbers(t, drain(&joiner, 8), 4, 6)

	f.pub.Close(epoch)
	f.hub.Sweep(epoch.Add(16 * time.Second))
	if s.State() != Idle || !c.Ended() || !joiner.Ended() {
		t.Errorf("after the grace time: %v, ended %v %v", s.State(), c.Ended(), joiner.Ended())
	}
	if _, ok := f.hub.Lookup("live/a"); ok {
		t.Error("an ended stream is found")
	}
	if later := s.NewCursor(CursorOptions{}); later.Ended() {
		t.Error("a reader that came after the end has ended too")
	}
	s.Unwatch(&w)
	f.hub.Detach(s)
	if n := len(f.hub.Streams()); n != 0 {
		t.Errorf("%d streams left", n)
	}
}

func TestReadersMayComeFirst(t *testing.T) {
	f := newFeed(t, nil)
	s, err := f.hub.Attach("live/later", Demand{})
	if err != nil {
		t.Fatal(err)
	}
	c := s.NewCursor(CursorOptions{})
	if _, ok := f.hub.Lookup("live/later"); ok {
		t.Error("a stream that is only waited for is found")
	}
	p, err := f.hub.Publish(epoch, "live/later", "", nil)
	if err != nil || p.Stream() != s {
		t.Fatalf("publish makes another stream: %v", err)
	}
	p.Write(epoch, flv.New(flv.Video, 0, []byte{0x17, 1, 0, 0, 0, 0, 0, 0, 9}))
	wantNumbers(t, drain(&c, 8), 9)
}

func TestLimitsOfTheHub(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxStreams = 2
	h, _ := NewHub(cfg)
	p, _ := h.Publish(epoch, "live/1", "", nil)
	h.Publish(epoch, "live/2", "", nil)
	if _, err := h.Publish(epoch, "live/3", "", nil); !errors.Is(err, ErrTooManyStreams) {
		t.Errorf("third stream: %v", err)
	}
	p.Close(epoch)
	if _, err := h.Publish(epoch, "live/3", "", nil); !errors.Is(err, ErrTooManyStreams) {
		t.Errorf("with one in its grace time: %v", err)
	}
	if _, err := h.Publish(epoch, "live/1", "", nil); err != nil {
		t.Errorf("that one comes back: %v", err)
	}
	p.Stream().pub.End(epoch)
	h.Sweep(epoch)
	if _, err := h.Publish(epoch, "live/3", "", nil); err != nil {
		t.Errorf("after one has gone: %v", err)
	}
	cfg.MaxStreams = 5
	h.SetConfig(cfg)
	if _, err := h.Publish(epoch, "live/4", "", nil); err != nil {
		t.Errorf("after the limit was raised: %v", err)
	}
	h.Drain()
	if _, err := h.Publish(epoch, "live/5", "", nil); !errors.Is(err, ErrDraining) {
		t.Errorf("while draining: %v", err)
	}
}

// TestWaitingDoesNotTakeThePlaceOfPublishers: what readers wait for is bounded by
// itself.
func TestWaitingDoesNotTakeThePlaceOfPublishers(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxStreams, cfg.MaxWaited = 1, 2
	h, _ := NewHub(cfg)
	one, _ := h.Attach("live/1", Demand{})
	h.Attach("live/2", Demand{})
	if _, err := h.Attach("live/3", Demand{}); !errors.Is(err, ErrTooManyWaited) {
		t.Errorf("a third name to wait for: %v", err)
	}
	if _, err := h.Attach("live/2", Demand{}); err != nil {
		t.Errorf("a second reader of one that is waited for: %v", err)
	}
	p, err := h.Publish(epoch, "live/4", "", nil)
	if err != nil {
		t.Fatalf("a publisher while viewers wait: %v", err)
	}
	if _, err := h.Publish(epoch, "live/1", "", nil); !errors.Is(err, ErrTooManyStreams) {
		t.Errorf("a second publisher, of a stream that is waited for: %v", err)
	}
	if _, err := h.Attach("live/4", Demand{}); err != nil {
		t.Errorf("a reader of the live one: %v", err)
	}
	h.Detach(one)
	if _, err := h.Attach("live/3", Demand{}); err != nil {
		t.Errorf("after one has given up: %v", err)
	}
	p.End(epoch)
	if _, err := h.Publish(epoch, "live/2", "", nil); err != nil {
		t.Errorf("after the publisher has gone: %v", err)
	}
}

// TestUnreadLogIsClearedAtOnce: a publisher that goes from name to name leaves nothing
// behind.
func TestUnreadLogIsClearedAtOnce(t *testing.T) {
	h, _ := NewHub(DefaultConfig())
	fill := func(n Name) *Publisher {
		p, err := h.Publish(epoch, n, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		p.Write(epoch, flv.New(flv.Script, 0, append([]byte("\x02\x00\x0aonMetaData"), make([]byte, 1<<20)...)))
		for range 8 {
			p.Write(epoch, flv.New(flv.Video, 0, append([]byte{0x17, 1, 0, 0, 0}, make([]byte, 1<<20)...)))
		}
		return p
	}
	p := fill("live/unread")
	if n := h.sum.bytes.Load(); n < 9<<20 {
		t.Fatalf("the logs hold %d bytes", n)
	}
	p.Close(epoch)
	st := h.Stats(p.Stream(), epoch)
	if n := h.sum.bytes.Load(); n != 0 || st.LogBytes != 0 || st.Meta.Wire != nil || st.State != Grace {
		t.Errorf("after the publish: %d bytes in all logs, %d in its own, state %v", n, st.LogBytes, st.State)
	}
	if h.Cleared() < 9<<20 {
		t.Errorf("%d bytes cleared", h.Cleared())
	}
	s, _ := h.Attach("live/read", Demand{})
	fill("live/read").Close(epoch)
	if n := h.sum.bytes.Load(); n < 9<<20 {
		t.Errorf("what a reader may not have read yet is gone: %d bytes", n)
	}
	h.Sweep(epoch.Add(time.Minute))
	h.Detach(s)
	if n := h.sum.bytes.Load(); n != 0 || len(h.Streams()) != 0 {
		t.Errorf("%d bytes and %d streams left", n, len(h.Streams()))
	}
}

// TestLogsAreBoundedTogether: beyond total_bytes each stream has an equal share, those
// too whose publishers show nothing any more.
func TestLogsAreBoundedTogether(t *testing.T) {
	cfg := DefaultConfig()
	cfg.LogBytes, cfg.ViewerBytes, cfg.TotalBytes = 8<<20, 1<<20, 16<<20
	h, _ := NewHub(cfg)
	payload := append([]byte{0x17, 1, 0, 0, 0}, make([]byte, 100_000)...)
	var all []*Publisher
	for i := range 8 {
		p, err := h.Publish(epoch, Name("live/"+string(rune('a'+i))), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
		for range 100 {
			p.Write(epoch, flv.New(flv.Video, 0, payload))
		}
		h.Sweep(epoch)
		if n := h.sum.bytes.Load(); n > cfg.TotalBytes {
			t.Errorf("%d streams hold %d bytes, %d are allowed", i+1, n, cfg.TotalBytes)
		}
	}
	if st := h.Stats(all[7].Stream(), epoch); st.LogBytes < 1<<20 {
		t.Errorf("the newest stream has %d bytes", st.LogBytes)
	}
	for _, p := range all[1:] {
		p.End(epoch)
	}
	for range 100 {
		all[0].Write(epoch, flv.New(flv.Video, 0, payload))
	}
	if st := h.Stats(all[0].Stream(), epoch); st.LogBytes < 6<<20 {
		t.Errorf("alone again a stream has %d bytes", st.LogBytes)
	}
}

func TestConfigSaysTheRange(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	for i, change := range []func(*Config){
		func(c *Config) { c.ViewerDelay = 0 },
		func(c *Config) { c.LogDuration = time.Second },
		func(c *Config) { c.LogBytes = 1 },
		func(c *Config) { c.ViewerBytes = c.LogBytes + 1 },
		func(c *Config) { c.Grace = -1 },
		func(c *Config) { c.MaxStreams = 0 },
		func(c *Config) { c.MaxWaited = 0 },
		func(c *Config) { c.TotalBytes = c.LogBytes - 1 },
	} {
		c := DefaultConfig()
		change(&c)
		if err := c.Validate(); err == nil {
			t.Errorf("change %d is accepted", i)
		} else if _, err := NewHub(c); err == nil {
			t.Errorf("change %d: the hub takes it", i)
		}
	}
}

// TestManyReadersWhilePublishersComeAndGo runs readers against publishers that
// take the stream from one another: each reader sees rising numbers and a clock
// that never goes back, up to the last tag.
func TestManyReadersWhilePublishersComeAndGo(t *testing.T) {
	h, _ := NewHub(DefaultConfig())
	s, _ := h.Attach("live/a", Demand{})
	var end atomic.Uint32 // number of the last tag, once it is published
	var readers, publishers sync.WaitGroup
	for r := range 4 {
		readers.Go(func() {
			c := s.NewCursor(CursorOptions{})
			buf := make([]flv.Tag, 4+r*8)
			last, clock := uint32(0), int64(-1)
			for end.Load() == 0 || last < end.Load() {
				n := c.Peek(buf)
				for _, x := range buf[:n] {
					if number(x) <= last || x.DTS < clock {
						t.Errorf("after tag %d at %d: tag %d at %d", last, clock, number(x), x.DTS)
						return
					}
					last, clock = number(x), x.DTS
				}
				c.Advance(n)
				runtime.Gosched()
			}
		})
	}
	var mu sync.Mutex
	count := uint32(0)
	write := func(p *Publisher, i int) {
		head := byte(0x27)
		if i%10 == 0 {
			head = 0x17
		}
		mu.Lock() // numbers must enter in order
		defer mu.Unlock()
		count++
		p.Write(epoch, flv.New(flv.Video, int64(i*40), []byte{head, 1, 0, 0, 0, byte(count >> 24), byte(count >> 16), byte(count >> 8), byte(count)}))
	}
	for range 2 {
		publishers.Go(func() {
			for range 50 {
				p, err := h.Publish(epoch, "live/a", "me", nil)
				if err != nil {
					t.Error(err)
					return
				}
				for i := range 40 {
					write(p, i)
				}
				p.Close(epoch)
			}
		})
	}
	publishers.Wait()
	p, err := h.Publish(epoch, "live/a", "me", nil)
	if err != nil {
		t.Fatal(err)
	}
	write(p, 0)
	end.Store(count)
	readers.Wait()
}

func TestStats(t *testing.T) {
	tbl := session.NewTable()
	by := tbl.Open(session.Info{Action: session.Publish}, func(session.Reason) {})
	h, _ := NewHub(DefaultConfig())
	p, _ := h.Publish(epoch, "live/a", "", by)
	write := func(kind flv.Kind, ms int64, b ...byte) {
		p.Write(epoch.Add(time.Duration(ms)*time.Millisecond), flv.New(kind, ms, append(b, make([]byte, 985)...)))
	}
	write(flv.Video, 0, 0x17, 0, 0, 0, 0)
	for ms := int64(0); ms <= 6000; ms += 40 {
		head := byte(0x27)
		if ms%2000 == 0 {
			head = 0x17
		}
		write(flv.Video, ms, head, 1, 0, 0, 0)
		write(flv.Audio, ms, 0x2f, 1, 0, 0, 0)
	}
	st := h.Stats(p.Stream(), epoch.Add(6*time.Second))
	if st.FPS != 25 || st.GOP != 2*time.Second || !st.HasAudio || !st.HasVideo || st.Publisher != by.ID ||
		st.VideoCodec != flv.H264 || st.AudioCodec != flv.MP3 || st.State != Live || st.Epoch != 1 {
		t.Errorf("stats = %+v", st)
	}
	if want := int64(50 * 1005 * 8); st.Bitrate < want*95/100 || st.Bitrate > want*105/100 {
		t.Errorf("bitrate = %d, want about %d", st.Bitrate, want)
	}
	if st.BytesIn != st.TagsIn*1005 || st.TagsIn != 303 {
		t.Errorf("%d bytes in %d tags", st.BytesIn, st.TagsIn)
	}
}

// patient is a Waiter that says what it needs.
type patient struct {
	counter
	picture bool
}

func (p *patient) AwaitsPicture() bool { return p.picture }

func TestAwaitsPicture(t *testing.T) {
	s := newStream("live/a", new(Config), new(tally))
	f := func(want bool, what string) {
		t.Helper()
		if s.AwaitsPicture() != want {
			t.Errorf("%s: sound may wait: %v", what, !want)
		}
	}
	a, b, c := &patient{picture: true}, &patient{}, &counter{}
	f(true, "nobody reads")
	s.Watch(a)
	f(true, "one that awaits the picture")
	s.Watch(b)
	f(false, "and one that does not")
	s.Unwatch(b)
	f(true, "without it")
	s.Watch(c)
	f(false, "and one that does not say")
}
