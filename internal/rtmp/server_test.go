package rtmp

import (
	"bytes"
	"context"
	"testing"

	"millrace/internal/flv"
)

func TestPublishAndPlay(t *testing.T) {
	n := newNode(t, option{})
	ctx := context.Background()
	pub, err := Dial(ctx, n.url("/live/show"), DefaultClientConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer pub.Close()
	if err := pub.Publish(ctx); err != nil {
		t.Fatal(err)
	}
	meta := flv.New(flv.Script, 0, append(encode(onMetaData), encode(object{{"width", 640}})...))
	sent := []flv.Tag{meta, flv.New(flv.Video, 0, avcHeader), flv.New(flv.Audio, 0, aacHeader)}
	for i := range 50 {
		payload := inter(i)
		if i == 0 {
			payload = keyframe(i)
		}
		payload = append(payload, make([]byte, 3000)...)
		sent = append(sent, flv.New(flv.Video, int64(i*40), payload), flv.New(flv.Audio, int64(i*40), aac(i)))
	}
	for _, tag := range sent[:10] {
		if err := pub.Write(tag); err != nil {
			t.Fatal(err)
		}
	}
	play, err := Dial(ctx, n.url("/live/show"), DefaultClientConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer play.Close()
	if err := play.Play(ctx); err != nil {
		t.Fatal(err)
	}
	for _, tag := range sent[10:] {
		if err := pub.Write(tag); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range sent {
		got, err := play.Read()
		if err != nil {
			t.Fatalf("tag %d: %v", i, err)
		}
		if got.Kind != want.Kind || !bytes.Equal(got.Payload(), want.Payload()) || got.DTS != want.DTS {
			t.Fatalf("tag %d: got %v of %d bytes at %d, want %v of %d bytes at %d",
				i, got.Kind, len(got.Payload()), got.DTS, want.Kind, len(want.Payload()), want.DTS)
		}
	}
	if s := n.Stats(); s.Connections != 2 || s.Handshakes != 2 || n.table.Len() != 2 {
		t.Errorf("stats %+v, %d sessions", s, n.table.Len())
	}
}
