package rtmp

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/internal/session"
)

// c0c1 is the beginning of a handshake with the given version byte and the four
// bytes that C1 has for a version.
func c0c1(c0 byte, word [4]byte) []byte {
	b := make([]byte, 1+handshakeSize)
	b[0] = c0
	copy(b[1:], []byte{1, 2, 3, 4})
	copy(b[5:], word[:])
	for i := 9; i < len(b); i++ {
		b[i] = byte(i * 7)
	}
	return b
}

// TestHandshake covers cases A1 to A4 from the field.
func TestHandshake(t *testing.T) {
	for _, tt := range []struct {
		name string
		c0   byte
		word [4]byte
		echo bool // C2 is an echo of S1
	}{
		{"zero version word", 3, [4]byte{}, true},
		{"a Flash version, no digest", 3, [4]byte{9, 0, 124, 2}, true},
		{"any version word", 3, [4]byte{0xff, 0xff, 0xff, 0xff}, true},
		{"C2 is no echo", 3, [4]byte{}, false},
		{"a newer version", 4, [4]byte{}, true},
		{"an older version", 2, [4]byte{}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newNode(t, option{}).dialRaw(t)
			c := c0c1(tt.c0, tt.word)
			p.write(c)
			s := make([]byte, 1+2*handshakeSize)
			if err := p.in.readFull(s); err != nil {
				t.Fatal(err)
			}
			if s[0] != 3 {
				t.Errorf("S0 is %d", s[0])
			}
			if !bytes.Equal(s[1+handshakeSize:], c[1:]) {
				t.Error("S2 is no echo of C1")
			}
			c2 := make([]byte, handshakeSize)
			if tt.echo {
				copy(c2, s[1:])
			}
			p.write(c2)
			p.command(0, "connect", 1, object{{"app", "live"}})
			p.expect("_result")
		})
	}
}

func TestHandshakeFails(t *testing.T) {
	for _, tt := range []struct {
		name  string
		bytes []byte
		want  session.Reason
	}{
		{"HTTP", []byte("GET / HTTP/1.1\r\n\r\n"), session.HandshakeFailed},
		{"TLS", []byte{22, 3, 1, 2, 0}, session.HandshakeFailed},
		{"encrypted RTMP", []byte{6, 0, 0}, session.HandshakeFailed},
		{"zero bytes", nil, session.HandshakeTimeout},
		{"C0 only", []byte{3}, session.HandshakeTimeout},
		{"half of C1", c0c1(3, [4]byte{})[:700], session.HandshakeTimeout},
		{"half of C2", append(c0c1(3, [4]byte{}), make([]byte, 700)...), session.HandshakeTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t, option{cfg: func(c *Config) {
				if tt.want == session.HandshakeTimeout {
					c.HandshakeTimeout = 150 * time.Millisecond
				}
			}})
			p := n.dialRaw(t)
			p.write(tt.bytes)
			drain(p.net)
			n.endsWith(t, tt.want)
			if n.table.Refusals()[session.RTMP][tt.want] != 1 {
				t.Error("not counted as refused")
			}
		})
	}
}

// TestPublishOrders covers A14 to A18: what encoders send, in their orders.
func TestPublishOrders(t *testing.T) {
	type step func(p *peer)
	cmd := func(stream uint32, name string, args ...any) step {
		return func(p *peer) { p.command(stream, name, args...) }
	}
	connect := cmd(0, "connect", 1, object{{"app", "live"}})
	result := step(func(p *peer) { p.expect("_result") })
	tests := []struct {
		name  string
		steps []step
		media uint32 // message stream
	}{
		{"ffmpeg", []step{
			connect, result, cmd(0, "releaseStream", 2, nil, "a"), cmd(0, "FCPublish", 3, nil, "a"),
			cmd(0, "createStream", 4, nil), result, result, result, cmd(1, "publish", 5, nil, "a", "live"),
		}, 1},
		{"OBS", []step{
			connect, result, cmd(0, "releaseStream", 2, nil, "a"), cmd(0, "FCPublish", 3, nil, "a"), cmd(0, "createStream", 4, nil),
			cmd(0, "_checkbw", 5, nil), cmd(1, "publish", 6, nil, "a", "live"),
		}, 1},
		{"createStream first", []step{
			connect, result, cmd(0, "createStream", 2, nil), cmd(0, "FCPublish", 3, nil, "a"), cmd(0, "releaseStream", 4, nil, "a"),
			cmd(1, "publish", 0, nil, "a", "live"),
		}, 1},
		{"waits for onFCPublish", []step{
			connect, result, cmd(0, "FCPublish", 0, nil, "a"), func(p *peer) { p.expect("onFCPublish") },
			cmd(0, "createStream", 2, nil), result, cmd(1, "publish", 0, nil, "a", "live"),
		}, 1},
		{"all at once", []step{connect, cmd(0, "createStream", 2, nil), cmd(1, "publish", 3, nil, "a", "live")}, 1},
		{"without createStream", []step{connect, cmd(0, "releaseStream", math.NaN(), nil, "a"), cmd(1, "publish", 3, nil, "a")}, 1},
		{"on message stream 0", []step{connect, result, cmd(0, "publish", 3, nil, "a", "live")}, 0},
		{"on a message stream of its own choice", []step{connect, cmd(7, "publish", 3, nil, "a", "live")}, 7},
		{"transaction ids 0 and NaN", []step{
			connect, result, cmd(0, "releaseStream", 0, nil, "a"), cmd(0, "FCPublish", math.NaN(), nil, "a"), cmd(0, "_checkbw", math.Inf(1)),
			cmd(0, "getStreamLength", 0, nil, "a"), cmd(0, "createStream", 0, nil), result, cmd(1, "publish", 0, nil, "a", "live"),
		}, 1},
		{"unknown commands", []step{
			connect, cmd(0, "setPeerInfo", 9, nil, object{}), cmd(0, "", 0), cmd(0, "FCSubscribe", 0, nil, "a"), cmd(0, "pause", 0, nil, true, 0),
			cmd(0, "createStream", 2, nil), cmd(1, "publish", 0, nil, "a"),
		}, 1},
		{"no null before the name", []step{connect, cmd(0, "createStream", 2), cmd(1, "publish", 0, "a")}, 1},
		{"connect twice", []step{connect, result, connect, cmd(0, "createStream", 2, nil), result, cmd(1, "publish", 0, nil, "a")}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t, option{})
			w := n.watch(t, "live/a")
			p := n.dial(t)
			for _, s := range tt.steps {
				s(p)
			}
			p.expectStatus(codePublishStart)
			p.message(6, typeVideo, tt.media, 0, avcHeader)
			p.message(6, typeVideo, tt.media, 0, keyframe(1))
			w.next(2)
		})
	}
}

// TestNames covers A20: ten spellings of an app and a key, and what is refused.
func TestNames(t *testing.T) {
	for _, tt := range []struct{ app, tcURL, key, want string }{
		{"live", "", "show", "live/show"},
		{"/live/", "", "/show/", "live/show"},
		{"live?token=x", "", "show", "live/show"},
		{"live", "", "show?token=x", "live/show"},
		{"live/show", "", "", "live/show"},
		{"live/show?token=x", "", "", "live/show"},
		{"live", "", "rtmp://host/live/show", "live/show"},
		{"rtmp://host/live", "", "show", "live/show"},
		{"live", "", "a/b/c", "live/a/b/c"},
		{"", "", "live/show", "live/show"},
		{"", "rtmp://host:1935/live", "show", "live/show"},
		{"live", "rtmp://host/live?token=x", "show", "live/show"},
		{"live", "", "", ""},
		{"", "", "", ""},
		{"live", "", "..", ""},
	} {
		t.Run(fmt.Sprintf("%q %q %q", tt.app, tt.tcURL, tt.key), func(t *testing.T) {
			n := newNode(t, option{})
			p := n.dial(t)
			p.command(0, "connect", 1, object{{"app", tt.app}, {"tcUrl", tt.tcURL}})
			p.expect("_result")
			p.publish(tt.key)
			if tt.want == "" {
				if s := p.expect("onStatus").status(); s.code != codePublishBadName || s.level != levelError || s.text == "" {
					t.Errorf("got %+v", s)
				}
				p.expectEnd()
				n.endsWith(t, session.BadName)
				return
			}
			p.expectStatus(codePublishStart)
			if s := n.table.List(); len(s) != 1 || s[0].Info.Stream != tt.want {
				t.Errorf("sessions %+v, want %s", s, tt.want)
			}
		})
	}
	t.Run("an impossible app", func(t *testing.T) {
		n := newNode(t, option{})
		p := n.dial(t)
		p.command(0, "connect", 3, object{{"app", "a/../b"}})
		if cmd := p.expect("_error"); cmd.status().code != codeConnectRejected || cmd.tx != 3 || cmd.status().text == "" {
			t.Errorf("got %+v", cmd)
		}
		p.expectEnd()
		n.endsWith(t, session.BadName)
	})
	t.Run("a token in tcUrl", func(t *testing.T) {
		n := newNode(t, option{auth: func(c *auth.Config) { c.PublishKeys = map[string][]string{"live": {"secret"}} }})
		p := n.dial(t)
		p.command(0, "connect", 1, object{{"app", "live"}, {"tcUrl", "rtmp://host/live?key=secret"}})
		p.expect("_result")
		p.publish("show")
		p.expectStatus(codePublishStart)
	})
}

// TestChunkCases covers A12, A13 and A15 over a socket.
func TestChunkCases(t *testing.T) {
	t.Run("A12 the peer's chunk size is its own", func(t *testing.T) {
		n := newNode(t, option{})
		w := n.watch(t, "live/a")
		p := n.publisher(t, "live", "a") // the server has announced 60,000; we stay at 128
		if p.in.size != 60000 {
			t.Errorf("the server announced %d", p.in.size)
		}
		big := append(keyframe(1), make([]byte, 100_000)...)
		p.message(6, typeVideo, 1, 0, big)
		if got := w.next(1)[0].Payload(); !bytes.Equal(got, big) {
			t.Errorf("got %d bytes", len(got))
		}
	})
	t.Run("A13 a chunk size that was not announced", func(t *testing.T) {
		n := newNode(t, option{})
		p := n.publisher(t, "live", "a")
		p.write(appendMessage(nil, 60000, 6, typeVideo, 1, 0, bytes.Repeat([]byte{0xd5}, 5000)))
		p.expectEnd()
		n.endsWith(t, session.ProtocolError)
		eventually(t, "the cause in the log", func() bool { return strings.Contains(n.log.String(), "chunk size") })
	})
	t.Run("A16 short audio and video is no reason to close", func(t *testing.T) {
		n := newNode(t, option{})
		w := n.watch(t, "live/a")
		p := n.publisher(t, "live", "a")
		for _, payload := range [][]byte{nil, {0x17}, {0x17, 2, 0, 0, 0}, {0x17, 1, 0, 0, 0}, {0x90}} {
			p.message(6, typeVideo, 1, 0, payload)
		}
		for _, payload := range [][]byte{nil, {0xaf}, {0xaf, 1}, {0x90}} {
			p.message(4, typeAudio, 1, 0, payload)
		}
		p.message(6, typeVideo, 1, 0, keyframe(1))
		eventually(t, "the keyframe", func() bool {
			tag := w.next(1)[0]
			return bytes.Equal(tag.Payload(), keyframe(1))
		})
		if n.Stats().Dropped[session.BadTag] != 2 {
			t.Errorf("dropped %v", n.Stats().Dropped)
		}
	})
	t.Run("A10 a negative delta", func(t *testing.T) {
		n := newNode(t, option{})
		w := n.watch(t, "live/a")
		p := n.publisher(t, "live", "a")
		p.message(6, typeVideo, 1, 1000, keyframe(1))
		p.write(chunks{}.type1(6, 0xffffff, len(inter(2)), typeVideo).u32(0xffffffd8).raw(inter(2)...))
		tags := w.next(2)
		if tags[1].DTS < tags[0].DTS {
			t.Errorf("time goes back from %d to %d", tags[0].DTS, tags[1].DTS)
		}
	})
	t.Run("A9 the clock passes 2^32", func(t *testing.T) {
		n := newNode(t, option{})
		w := n.watch(t, "live/a")
		p := n.publisher(t, "live", "a")
		p.message(6, typeVideo, 1, math.MaxUint32-79, keyframe(0))
		for i := range uint32(3) {
			p.message(6, typeVideo, 1, math.MaxUint32-39+i*40, inter(int(i)))
		}
		tags := w.next(4)
		for i := 1; i < 4; i++ {
			if d := tags[i].DTS - tags[i-1].DTS; d != 40 {
				t.Errorf("step %d is %d ms", i, d)
			}
		}
	})
}

// TestMetadata covers what encoders call metadata, and B9.
func TestMetadata(t *testing.T) {
	body := object{{"width", 640}}
	array := append(encode(onMetaData), amfECMAArray, 0, 0, 0, 0, 0, 0, amfObjectEnd)
	for _, tt := range []struct {
		name    string
		kind    uint8
		payload []byte
		want    []byte // nil: dropped
	}{
		{"in a call", typeData, encode(setDataFrame, onMetaData, body), encode(onMetaData, body)},
		{"bare", typeData, encode(onMetaData, body), encode(onMetaData, body)},
		{"of type 15", typeDataAMF3, append([]byte{0}, encode(setDataFrame, onMetaData, body)...), encode(onMetaData, body)},
		{"an array with the wrong count", typeData, append(encode(setDataFrame), array...), array},
		{"B9 a name without an object", typeData, encode(setDataFrame, onMetaData), emptyMetadata},
		{"B9 bare, without an object", typeData, encode(onMetaData), emptyMetadata},
		{"null for an object", typeData, encode(onMetaData, nil), emptyMetadata},
		{"an object that ends early", typeData, encode(onMetaData, body)[:20], emptyMetadata},
		{"other data", typeData, encode("onTextData", body), encode("onTextData", body)},
		{"other data in a call", typeData, encode(setDataFrame, "x", body), encode("x", body)},
		{"a name and no more", typeData, encode("onPing"), encode("onPing")},
		{"clear", typeData, encode(clearDataFrame, onMetaData), nil},
		{"a call of nothing", typeData, encode(setDataFrame), nil},
		{"no name", typeData, encode(5, body), nil},
		{"garbage after a name", typeData, append(encode("x"), 0xff, 1, 2), nil},
		{"nothing", typeData, nil, nil},
		{"real AMF3", typeDataAMF3, []byte{0x11, 6, 3, 'x'}, nil},
		{"nothing of type 15", typeDataAMF3, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := message{kind: tt.kind, time: 77, wire: flv.New(flv.Kind(tt.kind), 0, tt.payload).Wire}
			tag, r := mediaTag(&m)
			if tt.want == nil {
				if r != session.BadTag {
					t.Errorf("got %v", r)
				}
				return
			}
			if r != session.None || tag.Kind != flv.Script || tag.DTS != 77 {
				t.Fatalf("got %v of kind %v at %d", r, tag.Kind, tag.DTS)
			}
			if want := flv.New(flv.Script, 0, tt.want).Wire; !bytes.Equal(tag.Wire[8:], want[8:]) || !bytes.Equal(tag.Wire[:4], want[:4]) {
				t.Errorf("got  % x\nwant % x", tag.Wire, want)
			}
		})
	}
}

func TestAggregate(t *testing.T) {
	sub := func(kind flv.Kind, time int64, payload string) []byte {
		return flv.New(kind, time, []byte(payload)).Wire
	}
	whole := slicesOf(sub(9, 100, "ab"), sub(8, 110, ""), sub(20, 115, "cmd"), sub(9, 140, "c"))
	for _, tt := range []struct {
		name    string
		payload []byte
		want    []got
	}{
		{"whole", whole, []got{{9, 1, 5000, "ab"}, {8, 1, 5010, ""}, {9, 1, 5040, "c"}}},
		{"without the last size", whole[:len(whole)-4], []got{{9, 1, 5000, "ab"}, {8, 1, 5010, ""}, {9, 1, 5040, "c"}}},
		{"cut in a payload", whole[:len(whole)-5], []got{{9, 1, 5000, "ab"}, {8, 1, 5010, ""}}},
		{"cut in a header", whole[:20], []got{{9, 1, 5000, "ab"}}},
		{"empty", nil, nil},
		{"over the wrap of the tags' clock", slicesOf(sub(9, 1<<32-10, "a"), sub(9, 1<<32+10, "b")), []got{{9, 1, 5000, "a"}, {9, 1, 5020, "b"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := message{kind: typeAggregate, stream: 1, time: 5000, wire: flv.New(typeAggregate, 0, tt.payload).Wire}
			var out []got
			if err := splitAggregate(&m, func(p *message) error {
				if want := flv.New(flv.Kind(p.kind), 0, p.payload()).Wire; !bytes.Equal(p.wire[8:], want[8:]) {
					t.Errorf("laid out as % x, want % x", p.wire, want)
				}
				out = append(out, got{p.kind, p.stream, p.time, string(p.payload())})
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(out) != fmt.Sprint(tt.want) {
				t.Errorf("got %v, want %v", out, tt.want)
			}
		})
	}
	if err := splitAggregate(&message{wire: flv.New(typeAggregate, 0, whole).Wire}, func(*message) error { return io.EOF }); err != io.EOF {
		t.Errorf("the error of emit is lost: %v", err)
	}
}

// TestFirstPicture covers A19: a publish that begins in mid-GOP.
func TestFirstPicture(t *testing.T) {
	n := newNode(t, option{})
	w := n.watch(t, "live/a")
	p := n.publisher(t, "live", "a")
	p.message(6, typeVideo, 1, 0, inter(1))
	p.message(6, typeVideo, 1, 40, avcHeader)
	p.message(6, typeVideo, 1, 40, keyframe(2))
	if tags := w.next(2); !tags[0].Is(flv.Header) || !bytes.Equal(tags[1].Payload(), keyframe(2)) {
		t.Errorf("got %v", tags)
	}
}
