package clip

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/flv"
)

// TestLoopHasNoSeam goes three times round and wants the distance between frames of
// each track the same over the joints as within the clip, to a rounding.
func TestLoopHasNoSeam(t *testing.T) {
	l, err := NewLoop()
	if err != nil {
		t.Fatal(err)
	}
	last := map[flv.Kind]int64{}
	count := map[flv.Kind]int{}
	first, order := true, int64(0)
	for count[flv.Video] < 3*240 {
		tag := l.Next()
		if !tag.Is(flv.Frame) {
			if !first {
				t.Fatalf("%v %v after the first frame", tag.Kind, tag.Flags)
			}
			continue
		}
		first = false
		if tag.DTS < order {
			t.Fatalf("%v at %d ms comes after %d ms", tag.Kind, tag.DTS, order)
		}
		order = tag.DTS
		if n := count[tag.Kind]; n > 0 {
			step, want := tag.DTS-last[tag.Kind], int64(33) // 1000/30
			if tag.Kind == flv.Audio {
				want = 21 // 1024/48
			}
			if step < want || step > want+1 {
				t.Errorf("%v frame %d is %d ms after the one before it, want about %d", tag.Kind, n, step, want)
			}
		}
		if key := tag.Is(flv.Keyframe); tag.Kind == flv.Video && key != (count[flv.Video]%60 == 0) {
			t.Errorf("video frame %d: keyframe is %v; a GOP has 60 frames", count[flv.Video], key)
		}
		last[tag.Kind] = tag.DTS
		count[tag.Kind]++
	}
	if a := count[flv.Audio]; a < 3*375-2 || a > 3*375 {
		t.Errorf("%d audio frames in three rounds, want about %d", a, 3*375)
	}
}

func TestHeadersComeFirst(t *testing.T) {
	l, err := NewLoop()
	if err != nil {
		t.Fatal(err)
	}
	f := func(kind flv.Kind, codec flv.Codec, flags flv.Flags) {
		t.Helper()
		if got := l.Next(); got.Kind != kind || got.Codec != codec || !got.Is(flags) {
			t.Errorf("got %v %v %08b, want %v %v %08b", got.Kind, got.Codec, got.Flags, kind, codec, flags)
		}
	}
	f(flv.Script, flv.None, flv.Metadata)
	f(flv.Video, flv.H264, flv.Header)
	f(flv.Audio, flv.AAC, flv.Header)
	f(flv.Video, flv.H264, flv.Frame|flv.Keyframe)
}

// TestPlayKeepsTime: a minute of clip takes a minute, also when writes are slow.
func TestPlayKeepsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := NewLoop()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		var last int64
		err = l.Play(ctx, func(tag flv.Tag) error {
			if late := time.Since(start) - time.Duration(tag.DTS)*time.Millisecond; late < 0 || late > 60*time.Millisecond {
				t.Errorf("the tag of %d ms is written %v late", tag.DTS, late)
			}
			last = tag.DTS
			if tag.Is(flv.Keyframe) {
				time.Sleep(50 * time.Millisecond)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if last < 59_900 || last > 60_000 {
			t.Errorf("after a minute the clip is at %d ms", last)
		}
	})
}

func TestPlayEndsWithWrite(t *testing.T) {
	l, err := NewLoop()
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	if err := l.Play(t.Context(), func(flv.Tag) error { return gone }); err != gone {
		t.Errorf("got %v, want the error of write", err)
	}
}
