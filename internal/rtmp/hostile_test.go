package rtmp

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"millrace/internal/flv"
	"millrace/internal/session"
	"millrace/internal/stream"
)

// TestHostile sends what no encoder would. Nothing here may end the process, cost
// more than 32 MB, live for ever, or stay in the way of a good publisher.
func TestHostile(t *testing.T) {
	const most = 32 << 20
	x := make([]byte, 8<<20)
	setSize := func(n uint32) chunks { return chunks{}.type0(2, 0, 4, typeSetChunkSize, 0).u32(n) }
	nested := bytes.Repeat([]byte{amfObject, 0, 1, 'a'}, 4<<20/4)
	// What the script itself needs is not to be measured.
	metadata := appendMessage(nil, 128, 5, typeData, 1, 0, append(encode(onMetaData, object{}), x[:1000<<10]...))
	for _, tt := range []struct {
		name      string
		handshake bool
		publish   bool
		send      func(p *peer)
		want      []session.Reason // one of them; nil: it may live
	}{
		{"random bytes", false, false, func(p *peer) { p.write(bytes.Repeat([]byte{0xa5, 3, 0x77}, 1<<20)) }, []session.Reason{session.HandshakeFailed}},
		{"random bytes after the handshake", true, false, func(p *peer) {
			b := make([]byte, 1<<20)
			for i := range b {
				b[i] = byte(i*i>>3 ^ i*7)
			}
			p.write(b)
		}, []session.Reason{session.ProtocolError, session.MessageTooBig, session.TooManyChunks, session.CommandTimeout, session.BadCommand}},
		{"a handshake that never ends", false, false, func(p *peer) { p.write(c0c1(3, [4]byte{})) }, []session.Reason{session.HandshakeTimeout}},
		{"nothing after the handshake", true, false, func(*peer) {}, []session.Reason{session.CommandTimeout}},
		{"a message of 16 MB", true, false, func(p *peer) { p.write(chunks{}.type0(4, 0, 1<<24-1, 9, 1)) }, []session.Reason{session.MessageTooBig}},
		{"64 messages of 8 MB announced", true, true, func(p *peer) {
			for id := range uint32(60) {
				p.write(chunks{}.type0(4+id, 0, 8<<20, 9, 1).raw(x[:128]...))
			}
		}, []session.Reason{session.Idle}},
		{"three messages of 8 MB before a publish", true, false, func(p *peer) {
			p.write(setSize(512 << 10))
			for id := range uint32(3) {
				p.write(chunks{}.type0(3+id, 0, 8<<20, 9, 1))
				p.write(x[:512<<10])
			}
		}, []session.Reason{session.BadCommand}},
		{"16 commands of 16 KB side by side", true, false, func(p *peer) {
			p.write(setSize(16 << 10))
			for id := range uint32(14) {
				p.write(chunks{}.type0(3+id, 0, maxCommand+1, typeCommand, 1).raw(x[:16<<10]...))
			}
		}, []session.Reason{session.PartialTooBig}},
		{"17 chunk streams before a publish", true, false, func(p *peer) {
			for id := range uint32(17) {
				p.write(chunks{}.type0(3+id, 0, 1000, 9, 1).raw(x[:128]...))
			}
		}, []session.Reason{session.TooManyChunks}},
		{"64 messages of 8 MB sent side by side", true, true, func(p *peer) {
			p.write(setSize(512 << 10))
			for id := range uint32(60) {
				p.write(chunks{}.type0(4+id, 0, 8<<20, 9, 1))
				p.write(x[:512<<10])
			}
		}, []session.Reason{session.PartialTooBig}},
		{"5,000 chunk streams", true, false, func(p *peer) {
			var wire chunks
			for id := range uint32(5000) {
				wire = wire.type0(3+id, 0, 0, 9, 1)
			}
			p.write(wire)
		}, []session.Reason{session.TooManyChunks}},
		{"chunks of one byte", true, false, func(p *peer) {
			p.write(setSize(1))
			p.write(appendMessage(nil, 1, 4, typeVideo, 1, 0, x[:1<<20]))
		}, []session.Reason{session.BadCommand}},
		{"empty messages without end", true, false, func(p *peer) {
			p.write(chunks{}.type0(4, 0, 0, 9, 1))
			p.write(bytes.Repeat([]byte{3<<6 | 4}, 4<<20))
		}, []session.Reason{session.ProtocolError}},
		{"empty pictures without end", true, true, func(p *peer) {
			p.write(chunks{}.type0(4, 0, 0, 9, 1))
			p.write(bytes.Repeat([]byte{3<<6 | 4}, 4<<20))
		}, []session.Reason{session.ProtocolError}},
		{"the chunk size, again and again", true, true, func(p *peer) { p.write(bytes.Repeat(setSize(4096), 1<<12)) }, []session.Reason{session.ProtocolError}},
		{"an array of 2^31-1 values in connect", true, false, func(p *peer) {
			p.message(3, typeCommand, 0, 0, append(encode("connect", 1), amfStrictArray, 0x7f, 0xff, 0xff, 0xff))
		}, []session.Reason{session.CommandTimeout}},
		{"4 MB of nested objects", true, false, func(p *peer) { p.message(3, typeCommand, 0, 0, append(encode("connect", 1), nested...)) }, []session.Reason{session.BadCommand}},
		{"nested objects in metadata", true, true, func(p *peer) { p.message(3, typeData, 1, 0, append(encode(onMetaData), nested...)) }, []session.Reason{session.MessageTooBig}},
		{"nested objects in metadata that is not too big", true, true, func(p *peer) { p.message(3, typeData, 1, 0, append(encode(onMetaData), nested[:maxScript-100]...)) }, nil},
		{"a command of 4 MB", true, false, func(p *peer) { p.message(3, typeCommand, 0, 0, encode("connect", 1, string(x[:4<<20]))) }, []session.Reason{session.BadCommand}},
		{"a million pings, no pong read", true, true, func(p *peer) {
			ping := appendMessage(nil, 128, 2, typeUserControl, 0, 0, []byte{0, eventPing, 0, 0, 0, 0})
			p.net.SetWriteDeadline(time.Now().Add(patience))
			for range 64 {
				p.write(bytes.Repeat(ping, 1<<14))
			}
		}, []session.Reason{session.ProtocolError}},
		{"a window of one byte", true, true, func(p *peer) {
			p.message(2, typeWindowAckSize, 0, 0, []byte{0, 0, 0, 1})
			for range 1000 {
				p.message(4, typeAudio, 1, 0, aac(1))
			}
		}, nil},
		{"createStream without end", true, false, func(p *peer) {
			p.command(0, "connect", 1, object{{"app", "live"}})
			for range 5000 {
				p.command(0, "createStream", 2, nil)
			}
		}, []session.Reason{session.BadCommand}},
		{"commands of 4,000 values", true, false, func(p *peer) {
			p.message(3, typeCommand, 0, 0, append(encode("foo", 1), bytes.Repeat([]byte{amfNull}, 4000)...))
		}, []session.Reason{session.BadCommand}},
		{"publish and unpublish without end", true, true, func(p *peer) {
			for range 1000 {
				p.command(0, "FCUnpublish", 0, nil)
				p.command(1, "publish", 0, nil, "a")
			}
		}, []session.Reason{session.BadCommand}},
		{"an aggregate of aggregates", true, true, func(p *peer) {
			wire := keyframe(1)
			for range 100 {
				wire = flv.New(typeAggregate, 0, wire).Wire
			}
			p.message(6, typeAggregate, 1, 0, wire)
		}, nil},
		{"1 MB of metadata, again and again", true, true, func(p *peer) {
			for range 30 {
				p.write(metadata)
			}
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// Where a timeout is not what ends the peer, a slow machine must not be.
			limit := func(r session.Reason) time.Duration {
				if slices.Contains(tt.want, r) {
					return time.Second
				}
				return patience
			}
			n := newNode(t, option{
				cfg: func(c *Config) {
					c.HandshakeTimeout, c.CommandTimeout, c.IdleTimeout = limit(session.HandshakeTimeout), limit(session.CommandTimeout), limit(session.Idle)
				},
				stream: func(c *stream.Config) { c.LogBytes, c.ViewerBytes = 8<<20, 4<<20 },
			})
			p := n.dialRaw(t)
			if tt.handshake {
				if err := clientHandshake(p.net, p.in); err != nil {
					t.Fatal(err)
				}
			}
			if tt.publish {
				p.command(0, "connect", 1, object{{"app", "live"}})
				p.expect("_result")
				p.publish("a")
				p.expectStatus(codePublishStart)
			}
			cost := heapPeak(func() {
				tt.send(p)
				if tt.want != nil {
					eventually(t, "the end", func() bool { return n.Stats().Connections == 0 })
				}
			})
			if cost > most {
				t.Errorf("cost %d MB", cost>>20)
			}
			ok := tt.want == nil
			for _, r := range tt.want {
				ok = ok || n.Stats().Ended[r] > 0
			}
			if !ok {
				t.Errorf("ended with %v, want one of %v", n.Stats().Ended, tt.want)
			}
			p.net.Close()
			n.publisher(t, "live", "good")
		})
	}
}
