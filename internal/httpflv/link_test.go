package httpflv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/yutopp/go-amf0"
	"pgregory.net/rapid"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/internal/stream"
)

var someLink = Link{
	Node: "relay-1", State: LinkLive, Epoch: 1_800_000_000_123, Head: 1<<32 + 40, Idle: true, Sent: 1_800_000_001_000,
	Path: []stream.Hop{{Node: "center-1", Delay: 1500 * time.Microsecond}},
}

// A link tag is plain AMF0, so that any player can pass over it, and travels in an
// FLV stream without upsetting its clock.
func TestLinkIsATag(t *testing.T) {
	tag := AppendLink([]byte("before"), someLink)
	if tag.Kind != flv.Script || tag.Flags != 0 || tag.DTS != someLink.Head {
		t.Errorf("tag %+v", tag)
	}
	dec := amf0.NewDecoder(bytes.NewReader(tag.Payload()))
	var name string
	if err := dec.Decode(&name); err != nil || name != "@millrace" {
		t.Errorf("name %q %v", name, err)
	}
	// The library cannot read a long string.
	text := tag.Payload()[linkHead:]
	want := binary.BigEndian.AppendUint32([]byte{amfLong}, uint32(len(text)))
	if got := tag.Payload()[linkHead-len(want) : linkHead]; !bytes.Equal(got, want) || text[0] != '{' || text[len(text)-1] != '}' {
		t.Errorf("long string %x %q, want %x", got, text, want)
	}

	const near = 1<<31 - 10 // where the time from another clock would jump by 2^32
	in := flv.AppendFileHeader(nil, true, true)
	for i := range 5 {
		at := near + int64(i)*10
		in = append(in, flv.New(flv.Audio, at, aacHeader).Wire...)
		l := someLink
		l.Head = at
		in = append(in, AppendLink(nil, l).Wire...)
	}
	r := flv.NewReader(bytes.NewReader(in), 1<<20)
	for i := range 10 {
		got, err := r.Read()
		if want := near + int64(i/2)*10; err != nil || got.DTS != want {
			t.Fatalf("tag %d: time %d %v, want %d", i, got.DTS, err, want)
		}
		if l, ok, err := ParseLink(got); ok != (i%2 == 1) || err != nil || ok && l.Head != got.DTS {
			t.Fatalf("tag %d: %+v %v %v", i, l, ok, err)
		}
	}
}

func TestLinkUsesItsBuffer(t *testing.T) {
	buf := make([]byte, 0, 1024)
	tag := AppendLink(buf, someLink)
	if &tag.Wire[0] != &buf[:1][0] {
		t.Error("there was room, but the tag is elsewhere")
	}
}

func TestLinkRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Link{
			Node: nodeIDs.Draw(t, "node"), State: rapid.SampledFrom([]string{LinkLocating, LinkLive, LinkGrace, LinkEnded}).Draw(t, "state"),
			Epoch: rapid.Int64Range(0, auth.MaxEpoch).Draw(t, "epoch"), Head: rapid.Int64().Draw(t, "head"), Idle: rapid.Bool().Draw(t, "idle"),
			Sent: rapid.Int64Min(0).Draw(t, "sent"),
		}
		for range rapid.IntRange(0, maxPath).Draw(t, "hops") {
			want.Path = append(want.Path, stream.Hop{Node: nodeIDs.Draw(t, "hop"), Delay: time.Duration(rapid.Int64().Draw(t, "delay"))})
		}
		tag := AppendLink(nil, want)
		got, ok, err := ParseLink(tag)
		if err != nil || !ok || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v %v %v, want %+v", got, ok, err, want)
		}
	})
}

// linkOf returns a tag with the given text where a link has its JSON.
func linkOf(text string) flv.Tag {
	p := append([]byte(linkPrefix), amfLong)
	p = binary.BigEndian.AppendUint32(p, uint32(len(text)))
	return flv.New(flv.Script, 0, append(p, text...))
}

func TestParseLinkRefuses(t *testing.T) {
	long := strings.Repeat("x", 65)
	const good = `"node":"r1","state":"live"`
	for _, s := range []string{
		``, `{}`, `[]`, `null`, `{"node":"r1"}`, `{"node":"r 1","state":"live"}`, `{"node":"` + long + `","state":"live"}`,
		`{"node":"r1","state":"a b"}`, `{"node":"r1","state":"` + long + `"}`, `{` + good + `,"epoch":-1}`, `{` + good + `,"sent":-1}`, `{` + good + `,"epoch":9223372036854775807}`,
		`{` + good + `,"epoch":1e400}`, `{` + good + `,"head":1.5}`, `{` + good + `} {}`, `{` + good,
		`{` + good + `,"path":[{"node":""}]}`, `{` + good + `,"path":[` + strings.Repeat(`{"node":"a"},`, 16) + `{"node":"a"}]}`,
		`{` + good + strings.Repeat(" ", maxLink) + `}`, strings.Repeat("[", maxLink-1),
	} {
		if l, ok, err := ParseLink(linkOf(s)); !ok || !errors.Is(err, ErrLink) || !reflect.DeepEqual(l, Link{}) {
			t.Errorf("%.60q: %+v %v %v", s, l, ok, err)
		}
	}
	for _, s := range []string{`{` + good + `}`, `{` + good + `,"state":"moving","new":[1]}`} {
		if _, ok, err := ParseLink(linkOf(s)); !ok || err != nil {
			t.Errorf("%q: %v %v", s, ok, err)
		}
	}
	whole := AppendLink(nil, someLink).Payload()
	for n := range whole {
		_, ok, err := ParseLink(flv.New(flv.Script, 0, whole[:n]))
		if want := n >= len(linkPrefix); ok != want || (err != nil) != want {
			t.Errorf("cut to %d bytes: %v %v", n, ok, err)
		}
	}
	if _, ok, err := ParseLink(flv.New(flv.Script, 0, append(bytes.Clone(whole), 0))); !ok || err == nil {
		t.Errorf("a byte more: %v %v", ok, err)
	}
	if _, ok, _ := ParseLink(flv.New(flv.Audio, 0, whole)); ok {
		t.Error("audio is a link")
	}
}

func TestParseLinkPassesOverFramesAtNoCost(t *testing.T) {
	tags := []flv.Tag{flv.New(flv.Video, 0, picture(true, 100, 0)), flv.New(flv.Script, 0, []byte("\x02\x00\x0aonMetaData"))}
	if n := testing.AllocsPerRun(100, func() {
		for _, tag := range tags {
			if _, ok, err := ParseLink(tag); ok || err != nil {
				t.Fatal(ok, err)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParseLink(f *testing.F) {
	f.Add(AppendLink(nil, someLink).Payload())
	f.Add(linkOf(`{"node":"r1","state":"live","path":[{"node":"a","delay_ns":-1}]}`).Payload())
	f.Add([]byte(linkPrefix))
	f.Add([]byte("\x02\x00\x0aonMetaData"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		if len(payload) > flv.MaxPayload {
			return
		}
		l, ok, err := ParseLink(flv.New(flv.Script, 0, payload))
		if !ok || err != nil {
			if err != nil && (!ok || !errors.Is(err, ErrLink)) {
				t.Fatalf("%v %v", ok, err)
			}
			return
		}
		again, ok, err := ParseLink(AppendLink(nil, l))
		if !ok || err != nil || fmt.Sprint(l) != fmt.Sprint(again) {
			t.Fatalf("%+v became %+v %v %v", l, again, ok, err)
		}
	})
}

func BenchmarkLink(b *testing.B) {
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok, err := ParseLink(AppendLink(buf, someLink)); !ok || err != nil {
			b.Fatal(err)
		}
	}
}
