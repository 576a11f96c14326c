package rtmp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/internal/session"
	"millrace/internal/stream"
)

// connectWith sends a connect command whose object is made of raw AMF0 members.
func (p *peer) connectWith(members ...[]byte) {
	body := encode("connect", 1)
	body = append(body, amfObject)
	for _, m := range members {
		body = append(body, m...)
	}
	body = append(body, 0, 0, amfObjectEnd)
	p.message(3, typeCommand, 0, 0, body)
}

func member(key string, value ...byte) []byte { return append(appendKey(nil, key), value...) }

var appLive = member("app", encode("live")...)

// TestDefects shows, for each known defect of go-rtmp v0.0.7 and go-amf0 v0.1.1,
// what a peer of ours meets instead. The numbers are those of the survey that
// found them.
func TestDefects(t *testing.T) {
	tests := []struct {
		name string
		f    func(t *testing.T)
	}{
		{"01 an array that announces 2^31-1 values costs nothing", func(t *testing.T) {
			n := newNode(t, option{})
			p := n.dial(t)
			grew := heapPeak(func() {
				p.message(3, typeCommand, 0, 0, append(encode("connect", 1), amfStrictArray, 0x7f, 0xff, 0xff, 0xff))
				p.sync()
			})
			if grew > 32<<20 {
				t.Errorf("cost %d bytes", grew)
			}
			n.publisher(t, "live", "after")
		}},
		{"02 deep nesting ends the connection, not the process", func(t *testing.T) {
			for _, size := range []int{maxCommand, 3 << 20} {
				n := newNode(t, option{})
				p := n.dial(t)
				nested := bytes.Repeat([]byte{amfObject, 0, 1, 'a'}, size/4)
				p.message(3, typeCommand, 0, 0, append(encode("connect", 1), nested...)[:size])
				n.endsWith(t, session.BadCommand)
			}
		}},
		{"03 a panic in a callback ends the connection, not the process", func(t *testing.T) {
			n := newNode(t, option{noGate: true}) // a nil pointer
			for range 2 {
				p := n.connected(t, "live")
				p.publish("a")
				p.expectEnd()
			}
			n.endsWith(t, session.Internal)
			if !strings.Contains(n.log.String(), "nil pointer") {
				t.Error("the panic is not in the log")
			}
		}},
		{"04 extended timestamps on type 3 chunks, in and out", func(t *testing.T) {
			for _, repeat := range []bool{true, false} {
				n := newNode(t, option{})
				w := n.watch(t, "live/a")
				p := n.publisher(t, "live", "a")
				payload := append(keyframe(7), bytes.Repeat([]byte{1}, 300)...)
				var wire chunks
				wire = wire.type0(6, 0xffffff, len(payload), 9, 1).u32(0x2000000).raw(payload[:128]...)
				for rest := payload[128:]; len(rest) > 0; {
					k := min(128, len(rest))
					if wire = wire.basic(3, 6); repeat {
						wire = wire.u32(0x2000000)
					}
					wire = wire.raw(rest[:k]...)
					rest = rest[k:]
				}
				p.write(wire)
				p.message(6, typeVideo, 1, 0x2000028, inter(8))
				tags := w.next(2)
				if !bytes.Equal(tags[0].Payload(), payload) || tags[1].DTS-tags[0].DTS != 40 {
					t.Errorf("repeat %v: %d bytes, then %d ms", repeat, len(tags[0].Payload()), tags[1].DTS-tags[0].DTS)
				}
			}
			var out record
			w := newChunkWriter(&out)
			var b batch
			b.add(128, 1, flv.New(flv.Video, 1<<25, make([]byte, 300)))
			if err := w.media(&b); err != nil {
				t.Fatal(err)
			}
			if want := 1 + 11 + 4 + 2*(1+4) + 300; out.Len() != want {
				t.Errorf("wrote %d bytes, want %d", out.Len(), want)
			}
		}},
		{"05 chunk stream ids of three bytes", func(t *testing.T) {
			n := newNode(t, option{})
			w := n.watch(t, "live/a")
			p := n.publisher(t, "live", "a")
			p.message(320, typeVideo, 1, 0, keyframe(1))
			p.message(65599, typeVideo, 1, 40, inter(2))
			w.next(2)
		}},
		{"06 zero-length messages; a new length in mid-message", func(t *testing.T) {
			n := newNode(t, option{})
			w := n.watch(t, "live/a")
			p := n.publisher(t, "live", "a")
			for _, kind := range []uint8{8, 9, 18, 20, 22, 4, 3} {
				p.message(6, kind, 1, 0, nil)
			}
			p.message(6, typeVideo, 1, 0, keyframe(1))
			w.next(1)
			p.write(chunks{}.type0(6, 0, 200, 9, 1).raw(make([]byte, 128)...).type0(6, 0, 100, 9, 1))
			p.expectEnd()
			n.endsWith(t, session.ProtocolError)
		}},
		{"07 all message types are survived, the useful ones used", func(t *testing.T) {
			n := newNode(t, option{})
			w := n.watch(t, "live/a")
			p := n.dial(t)
			amf3 := func(body []byte) []byte { return append([]byte{0}, body...) }
			p.message(3, typeCommandAMF3, 0, 0, amf3(encode("connect", 1, object{{"app", "live"}})))
			p.expect("_result")
			p.message(3, typeCommandAMF3, 0, 0, amf3(encode("createStream", 2, nil)))
			p.expect("_result")
			p.message(3, typeCommandAMF3, 1, 0, amf3(encode("publish", 3, nil, "a", "live")))
			p.expectStatus(codePublishStart)
			for _, kind := range []uint8{16, 19, 0, 7, 23, 99, 255} {
				p.message(3, kind, 1, 0, []byte{1, 2, 3})
			}
			p.message(5, typeDataAMF3, 1, 0, amf3(append(encode(setDataFrame, onMetaData), encode(object{{"width", 1}})...)))
			first, second := flv.New(flv.Video, 1000, keyframe(1)), flv.New(flv.Video, 1040, inter(2))
			p.message(6, typeAggregate, 1, 5000, slicesOf(first.Wire, second.Wire))
			tags := w.next(3)
			if !tags[0].Is(flv.Metadata) || tags[1].DTS == tags[2].DTS || tags[2].DTS-tags[1].DTS != 40 {
				t.Errorf("got %v", tags)
			}
		}},
		{"08 unknown user control events", func(t *testing.T) {
			n := newNode(t, option{})
			p := n.publisher(t, "live", "a")
			for _, event := range []byte{0, 1, 3, 26, 31, 32, 99} {
				p.message(2, typeUserControl, 0, 0, []byte{0, event, 0, 0, 0, 1})
				p.message(2, typeUserControl, 0, 0, []byte{0, event})
			}
			p.sync()
		}},
		{"09 the client can play", func(t *testing.T) {
			n := newNode(t, option{})
			p := n.publisher(t, "live", "a")
			p.message(6, typeVideo, 1, 0, keyframe(1))
			c := dialClient(t, n.url("/live/a"))
			if err := c.Play(context.Background()); err != nil {
				t.Fatal(err)
			}
			tag, err := c.Read()
			if err != nil || !bytes.Equal(tag.Payload(), keyframe(1)) {
				t.Errorf("got %v, %v", tag, err)
			}
		}},
		{"10 the client gives up when the server goes, and when it is told to", func(t *testing.T) {
			ln := listen(t)
			go func() {
				nc, err := ln.Accept()
				if err != nil {
					return
				}
				io.ReadFull(nc, make([]byte, 1+handshakeSize))
				nc.Close()
				ln.Close()
			}()
			if _, err := Dial(context.Background(), "rtmp://"+ln.Addr().String()+"/a/b", DefaultClientConfig()); err == nil {
				t.Error("connected to nobody")
			}
			silent := listen(t)
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			_, err := Dial(ctx, "rtmp://"+silent.Addr().String()+"/a/b", DefaultClientConfig())
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		}},
		{"11 the client sees a refusal", func(t *testing.T) {
			n := newNode(t, option{auth: func(c *auth.Config) { c.PublishKeys = map[string][]string{"live": {"secret"}} }})
			c := dialClient(t, n.url("/live/a"))
			var refused *StatusError
			if err := c.Publish(context.Background()); !errors.As(err, &refused) || refused.Code != codePublishDenied {
				t.Errorf("got %v", err)
			}
		}},
		{"12 many goroutines may write", func(t *testing.T) {
			var out record
			w := newChunkWriter(&out)
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					var b batch
					for range 100 {
						b.reset()
						b.add(w.chunkSize(), 1, flv.New(flv.Audio, int64(i), make([]byte, 200)))
						if w.media(&b) != nil || w.control(chunksControl, typeAck, 0, make([]byte, 4)) != nil {
							t.Error("write failed")
						}
					}
				})
			}
			wg.Wait()
			if got, err := readAll(newChunkReader(&out, 64, testLimits)); err != nil || len(got) != 800 {
				t.Errorf("read %d messages and %v", len(got), err)
			}
		}},
		{"13 a write to a dead connection is an error, each time", func(t *testing.T) {
			n := newNode(t, option{})
			c := dialClient(t, n.url("/live/a"))
			if err := c.Publish(context.Background()); err != nil {
				t.Fatal(err)
			}
			n.stop()
			tag := flv.New(flv.Video, 0, keyframe(1))
			eventually(t, "an error", func() bool { return c.Write(tag) != nil })
			if c.Write(tag) == nil {
				t.Error("it works again")
			}
		}},
		{"14 unfinished messages are limited", func(t *testing.T) {
			n := newNode(t, option{})
			p := n.publisher(t, "live", "a")
			size := 4 << 20
			open := chunks{}.type0(2, 0, 4, typeSetChunkSize, 0).u32(1 << 20)
			half := make([]byte, 1<<20)
			grew := heapPeak(func() {
				p.write(open)
				for id := range uint32(20) {
					p.write(chunks{}.type0(4+id, 0, size, typeVideo, 1))
					p.write(half)
				}
				n.endsWith(t, session.PartialTooBig)
			})
			if grew > 32<<20 {
				t.Errorf("cost %d bytes", grew)
			}
		}},
		{"15 abort", func(t *testing.T) {
			n := newNode(t, option{})
			w := n.watch(t, "live/a")
			p := n.publisher(t, "live", "a")
			p.write(chunks{}.type0(6, 0, 200, 9, 1).raw(make([]byte, 128)...).type0(2, 0, 4, typeAbort, 0).u32(6))
			p.message(6, typeVideo, 1, 0, keyframe(1))
			if tag := w.next(1)[0]; !bytes.Equal(tag.Payload(), keyframe(1)) {
				t.Errorf("got %x", tag.Payload())
			}
		}},
		{"16 data messages of every name reach the stream", func(t *testing.T) {
			n := newNode(t, option{})
			w := n.watch(t, "live/a")
			p := n.publisher(t, "live", "a")
			p.message(6, typeVideo, 1, 0, keyframe(1))
			names := []string{onMetaData, "onTextData", "onCuePoint", "whatever"}
			for _, name := range names {
				p.message(5, typeData, 1, 0, encode(name, object{{"a", 1}}))
			}
			for i, tag := range w.next(1 + len(names))[1:] {
				if got, _ := dataName(tag.Payload()); got != names[i] || tag.Kind != flv.Script {
					t.Errorf("got %v %q, want %q", tag.Kind, got, names[i])
				}
			}
		}},
		{"17 media never overtakes Play.Start", func(t *testing.T) {
			n := newNode(t, option{})
			p := n.publisher(t, "live", "a")
			p.message(6, typeVideo, 1, 0, keyframe(1))
			p.sync()
			for range 30 {
				q := n.connected(t, "live")
				q.command(0, "createStream", 2, nil)
				q.expect("_result")
				q.command(1, "play", 0, nil, "a")
				q.expectStatus(codePlayStart) // fails the test only if it never comes, so:
				if m := q.expectKind(typeVideo); !bytes.Equal(m.payload(), keyframe(1)) {
					t.Fatal("the first picture is not the keyframe")
				}
				q.net.Close()
			}
		}},
		{"18 ping", func(t *testing.T) { newNode(t, option{}).dial(t).sync() }},
		{"19 deleteStream of what does not exist", func(t *testing.T) {
			n := newNode(t, option{})
			p := n.connected(t, "live")
			for _, id := range []any{0, 1, 77, -1, "x", nil} {
				p.command(0, "deleteStream", 0, nil, id)
			}
			p.publish("a")
			p.expectStatus(codePublishStart)
			p.command(0, "deleteStream", 0, nil, 0)
			p.sync()
			if n.table.Len() != 1 {
				t.Error("deleteStream 0 ended the publish")
			}
		}},
		{"20 answers to nothing", func(t *testing.T) {
			p := newNode(t, option{}).connected(t, "live")
			p.command(0, "_result", 9, nil, nil)
			p.command(0, "_error", 9, nil, object{{"code", "x"}})
			p.command(0, "onStatus", 0, nil, object{{"code", "x"}})
			p.publish("a")
			p.expectStatus(codePublishStart)
		}},
		{"21 every AMF0 type in connect", func(t *testing.T) {
			n := newNode(t, option{})
			long := append([]byte{amfLongString, 0, 0, 0, 3}, "abc"...)
			for what, m := range map[string][]byte{
				"undefined":        member("pageUrl", amfUndefined),
				"long string":      member("swfUrl", long...),
				"XML":              member("x", append([]byte{amfXML, 0, 0, 0, 3}, "<a>"...)...),
				"typed object":     member("x", append([]byte{amfTypedObject, 0, 1, 'T'}, 0, 1, 'k', amfNull, 0, 0, amfObjectEnd)...),
				"not UTF-8":        member("flashVer", amfString, 0, 2, 0xff, 0xfe),
				"key not UTF-8":    member("\xff\xfe", amfNull),
				"empty key":        member("", amfNull),
				"date":             member("x", append([]byte{amfDate}, make([]byte, 10)...)...),
				"reference":        member("x", amfReference, 0, 0),
				"ECMA array":       member("x", amfECMAArray, 0, 0, 0, 9, 0, 0, amfObjectEnd),
				"strict array":     member("fourCcList", encode([]any{"hvc1", "av01"})...),
				"unsupported":      member("x", amfUnsupported),
				"app as long text": member("app", append([]byte{amfLongString, 0, 0, 0, 4}, "live"...)...),
			} {
				p := n.dial(t)
				p.connectWith(appLive, m, member("capabilities", encode(239)...))
				if code := p.expect("_result").status().code; code != codeConnectSuccess {
					t.Errorf("%s: %s", what, code)
				}
				p.net.Close()
			}
		}},
		{"22 a number where a bool is wanted, and the reverse", func(t *testing.T) {
			p := newNode(t, option{}).dial(t)
			p.connectWith(appLive, member("fpad", encode(1)...), member("audioCodecs", encode("x")...), member("videoCodecs", encode(true)...), member("tcUrl", encode(5)...))
			p.expect("_result")
		}},
		{"23 play with null for a number", func(t *testing.T) {
			n := newNode(t, option{})
			p := n.publisher(t, "live", "a")
			p.message(6, typeVideo, 1, 0, keyframe(1))
			for _, args := range [][]any{{nil, "a", nil}, {nil, "a"}, {"a"}, {nil, "a", -2, -1, false}, {nil, "a", "x"}} {
				q := n.connected(t, "live")
				q.command(0, "createStream", 2, nil)
				q.expect("_result")
				q.command(1, "play", append([]any{0}, args...)...)
				q.expectStatus(codePlayStart)
				q.net.Close()
			}
		}},
		{"24 acknowledgements: when, and past 2^31 and 2^32", func(t *testing.T) {
			n := newNode(t, option{})
			p := n.publisher(t, "live", "a")
			p.message(2, typeWindowAckSize, 0, 0, []byte{0, 0, 0, 0})
			for range 20 {
				p.message(4, typeAudio, 1, 0, aac(1))
			}
			p.message(2, typeUserControl, 0, 0, []byte{0, eventPing, 0, 0, 0, 0})
			for {
				m, err := p.read()
				if err != nil {
					t.Fatal(err)
				}
				if m.kind == typeAck {
					t.Fatal("an acknowledgement for a window of 0")
				}
				if m.kind == typeUserControl {
					break
				}
			}
			p.message(2, typeWindowAckSize, 0, 0, []byte{0, 0, 0x10, 0})
			p.message(4, typeAudio, 1, 0, make([]byte, 5000))
			if ack := binary.BigEndian.Uint32(p.expectKind(typeAck).payload()); ack < 5000 || ack > 20000 {
				t.Errorf("acknowledges %d bytes", ack)
			}
			testAckNumbers(t, n)
		}},
		{"25 errors of accept are waited out", func(t *testing.T) {
			var failing *failingListener
			n := newNode(t, option{wrap: func(ln net.Listener) net.Listener {
				failing = &failingListener{Listener: ln, times: 4}
				return failing
			}})
			n.connected(t, "live")
			if calls := failing.calls.Load(); calls > 8 {
				t.Errorf("%d calls of Accept", calls)
			}
		}},
		{"26 closing does not wait for a peer that does not read", func(t *testing.T) {
			n := newNode(t, option{})
			n.frozenPlayer(t)
			for _, s := range n.table.List() {
				n.table.Kick(s.ID, session.Kicked)
			}
			eventually(t, "no connection", func() bool { return n.Stats().Connections == 0 })
		}},
		{"27 go-rtmp is silent, or warns through our log", func(t *testing.T) {
			for _, level := range []slog.Level{slog.LevelInfo, slog.LevelDebug} {
				n := newNode(t, option{level: level})
				n.publisher(t, "live", "a")
				if strings.Contains(n.log.String(), "go-rtmp") {
					t.Errorf("at %v:\n%s", level, n.log)
				}
			}
		}},
		{"28 calls of FMLE are answered", func(t *testing.T) {
			p := newNode(t, option{}).connected(t, "live")
			for i, name := range []string{"releaseStream", "FCPublish", "getStreamLength", "_checkbw"} {
				p.command(0, name, 10+i, nil, "a")
				if cmd := p.expect("_result"); cmd.tx != float64(10+i) {
					t.Errorf("%s: answer to %v", name, cmd.tx)
				}
			}
		}},
		{"29 every message of ours begins with a full header", func(t *testing.T) {
			var out record
			w := newChunkWriter(&out)
			for range 3 {
				if err := w.send1(); err != nil {
					t.Fatal(err)
				}
			}
			third := out.Len() / 3
			b := out.Bytes()
			if !bytes.Equal(b[:third], b[third:2*third]) || b[third]>>6 != 0 {
				t.Errorf("% x", b)
			}
		}},
		{"30 a date in metadata is passed on as it came", func(t *testing.T) {
			n := newNode(t, option{})
			w := n.watch(t, "live/a")
			p := n.publisher(t, "live", "a")
			date := append([]byte{amfDate}, 0x42, 0x77, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0x01, 0x02)
			body := append(encode(onMetaData), slicesOf([]byte{amfECMAArray, 0, 0, 0, 1}, member("creationdate", date...), []byte{0, 0, amfObjectEnd})...)
			p.message(5, typeData, 1, 0, append(encode(setDataFrame), body...))
			p.message(6, typeVideo, 1, 0, keyframe(1))
			if got := w.next(2)[0].Payload(); !bytes.Equal(got, body) {
				t.Errorf("got % x, want % x", got, body)
			}
		}},
	}
	if len(tests) != 30 {
		t.Errorf("%d defects are covered", len(tests))
	}
	for _, tt := range tests {
		t.Run(tt.name, tt.f)
	}
}

func slicesOf(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// send1 sends the same small message each time.
func (w *chunkWriter) send1() error {
	return w.control(chunksStatus, typeCommand, 1, encode("onStatus", 0, nil))
}

// testAckNumbers counts bytes over the wraps of the 32-bit sequence number.
func testAckNumbers(t *testing.T, n *node) {
	near, far := net.Pipe()
	defer near.Close()
	go drain(far)
	c := newConn(n.Server, near, time.Now())
	var out record
	c.out = newChunkWriter(&out)
	c.hand = nil
	for _, at := range []uint64{1<<31 - 10, 1<<32 - 10, 1<<33 - 10} {
		out.Reset()
		c.received.Store(at)
		c.acked = at
		c.window = 100
		if err := c.count(99); err != nil || out.Len() != 0 {
			t.Errorf("acknowledged too early: %v", err)
		}
		if err := c.count(1); err != nil {
			t.Fatal(err)
		}
		got, err := readAll(newChunkReader(&out, 64, testLimits))
		if err != nil || len(got) != 1 || binary.BigEndian.Uint32([]byte(got[0].payload)) != uint32(at+100) {
			t.Errorf("at %d: %v %v", at, got, err)
		}
	}
}

func dialClient(t *testing.T, url string) *Client {
	t.Helper()
	c, err := Dial(context.Background(), url, DefaultClientConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

// failingListener is out of descriptors a few times.
type failingListener struct {
	net.Listener
	times int
	calls atomic.Int32
}

func (l *failingListener) Accept() (net.Conn, error) {
	l.calls.Add(1)
	if l.times > 0 {
		l.times--
		return nil, os.NewSyscallError("accept4", syscall.EMFILE)
	}
	return l.Listener.Accept()
}

// frozenPlayer is a player that takes nothing, of a stream that has filled its socket.
func (n *node) frozenPlayer(t *testing.T) (*peer, *stream.Publisher) {
	t.Helper()
	pub, err := n.hub.Publish(time.Now(), "live/frozen", "owner", nil)
	if err != nil {
		t.Fatal(err)
	}
	q := n.connected(t, "live")
	q.command(0, "createStream", 2, nil)
	q.expect("_result")
	q.command(1, "play", 0, nil, "frozen")
	q.expectStatus(codePlayStart)
	big := make([]byte, 256<<10)
	copy(big, keyframe(0))
	// It is frozen when what it was given no longer grows.
	var last uint64
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for i, same := 0, 0; same < 100; i++ {
		if err := pub.Write(time.Now(), flv.New(flv.Video, int64(i), big)); err != nil {
			t.Fatal(err)
		}
		<-tick.C
		got := n.table.List()[0].Bytes
		if same++; got != last {
			last, same = got, 0
		}
	}
	return q, pub
}
