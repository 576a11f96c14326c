package rtmp

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/bluenviron/gortmplib"
	lib "github.com/bluenviron/gortmplib/pkg/message"

	"millrace/internal/flv"
)

// The other implementation in Go, as a second opinion: it publishes to our server
// and plays from it, and our client does both with its server.

const codecH264, codecAAC = 7, 10

func video(i int) *lib.Video {
	return &lib.Video{
		ChunkStreamID: 6, MessageStreamID: 1, DTS: time.Duration(i) * 40 * time.Millisecond, Codec: codecH264, IsKeyFrame: i == 0,
		Type: lib.VideoTypeAU, PTSDelta: time.Duration(i%3) * 40 * time.Millisecond, AU: bytes.Repeat([]byte{byte(i), 1}, 500+i*100),
	}
}

func audio(i int) *lib.Audio {
	return &lib.Audio{
		ChunkStreamID: 4, MessageStreamID: 1, DTS: time.Duration(i) * 40 * time.Millisecond, Codec: codecAAC, Rate: lib.AudioRate44100,
		Depth: lib.AudioDepth16, IsStereo: true, AACType: lib.AudioAACTypeAU, AU: bytes.Repeat([]byte{byte(i)}, 300),
	}
}

// other connects with the other client.
func other(t *testing.T, addr string, publish bool) *gortmplib.Client {
	t.Helper()
	u, err := url.Parse(addr)
	if err != nil {
		t.Fatal(err)
	}
	c := &gortmplib.Client{URL: u, Publish: publish}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.Initialize(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	c.NetConn().SetDeadline(time.Now().Add(patience))
	return c
}

func TestOtherClient(t *testing.T) {
	n := newNode(t, option{})
	pub := other(t, n.url("/live/show"), true)
	const frames = 60
	for i := range frames / 2 {
		if err := errors.Join(pub.Write(video(i)), pub.Write(audio(i))); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the first half", func() bool { return n.table.List()[0].Tags == frames })
	play := other(t, n.url("/live/show"), false)
	for i := frames / 2; i < frames; i++ {
		if err := errors.Join(pub.Write(video(i)), pub.Write(audio(i))); err != nil {
			t.Fatal(err)
		}
	}
	for v, a := 0, 0; v < frames || a < frames; {
		m, err := play.Read()
		if err != nil {
			t.Fatalf("after %d pictures and %d audio frames: %v", v, a, err)
		}
		switch m := m.(type) {
		case *lib.Video:
			if want := video(v); !bytes.Equal(m.AU, want.AU) || m.DTS != want.DTS || m.PTSDelta != want.PTSDelta || m.IsKeyFrame != want.IsKeyFrame {
				t.Fatalf("picture %d differs: at %v, composition %v, %d bytes", v, m.DTS, m.PTSDelta, len(m.AU))
			}
			v++
		case *lib.Audio:
			if want := audio(a); !bytes.Equal(m.AU, want.AU) || m.DTS != want.DTS {
				t.Fatalf("audio frame %d differs: at %v, %d bytes", a, m.DTS, len(m.AU))
			}
			a++
		}
	}
}

// TestOtherServer publishes to the other server, over the point from which on times
// are extended, and plays back from it.
func TestOtherServer(t *testing.T) {
	ln := listen(t)
	failed := make(chan error, 2)
	received := make(chan *lib.Video, 100)
	serve := func() error {
		nc, err := ln.Accept()
		if err != nil {
			return err
		}
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(patience))
		sc := &gortmplib.ServerConn{RW: nc}
		for _, step := range []func() error{sc.Initialize, sc.AcceptConn, sc.AcceptAction} {
			if err := step(); err != nil {
				return err
			}
		}
		for i := 0; ; i++ {
			if !sc.Publish {
				if i == 20 {
					_, err := sc.Read()
					return err
				}
				if err := sc.Write(video(i)); err != nil {
					return err
				}
				continue
			}
			m, err := sc.Read()
			if err != nil {
				return err
			}
			if v, ok := m.(*lib.Video); ok {
				received <- v
			}
		}
	}
	ctx := context.Background()
	addr := "rtmp://" + ln.Addr().String() + "/live/show"

	go func() { failed <- serve() }()
	pub := dialClient(t, addr)
	if err := pub.Publish(ctx); err != nil {
		t.Fatal(err)
	}
	payload := append(keyframe(1), make([]byte, 90_000)...)
	at := func(i int) int64 { return extendedTime - 400 + int64(i)*40 }
	for i := range 20 {
		if err := pub.Write(flv.New(flv.Video, at(i), payload)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		select {
		case v := <-received:
			if !bytes.Equal(v.AU, payload[5:]) || v.DTS != time.Duration(at(i))*time.Millisecond {
				t.Errorf("picture %d: %d bytes at %v", i, len(v.AU), v.DTS)
			}
		case err := <-failed:
			t.Fatal(err)
		}
	}
	pub.Close()
	<-failed // the end of the connection

	go func() { failed <- serve() }()
	play := dialClient(t, addr)
	if err := play.Play(ctx); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		tag, err := play.Read()
		if err != nil {
			t.Fatal(err)
		}
		if want := video(i); !bytes.Equal(tag.Payload()[5:], want.AU) || tag.DTS != want.DTS.Milliseconds() {
			t.Errorf("picture %d: %d bytes at %d", i, len(tag.Payload()), tag.DTS)
		}
	}
	play.Close()
	<-failed
}
