package measure

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"millrace/internal/auth"
	"millrace/internal/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	keyA = "0123456789abcdef-a"
	keyB = "0123456789abcdef-b"
)

var t0 = time.Unix(1_800_000_000, 0)

func cluster(t testing.TB, keys ...string) *auth.Cluster {
	t.Helper()
	c, err := auth.NewCluster(auth.ClusterConfig{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// asked returns a signed question to a node.
func asked(c *auth.Cluster, now time.Time, node string) packet {
	p := packet{kind: question, index: 3, train: 77}
	p.sign(now, c, node, nil)
	return p
}

func TestPacketThereAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := packet{
			kind:  rapid.SampledFrom([]byte{question, answer}).Draw(t, "kind"),
			index: rapid.Uint16Range(0, maxPackets-1).Draw(t, "index"),
			train: rapid.Uint64().Draw(t, "train"), at: rapid.Int64Range(0, 1<<40).Draw(t, "at"),
		}
		copy(p.mac[:], rapid.SliceOfN(rapid.Byte(), macSize, macSize).Draw(t, "mac"))
		b := p.append(nil)
		if len(b) != packetSize {
			t.Fatalf("%d bytes", len(b))
		}
		if got, err := parse(b); err != nil || got != p {
			t.Fatalf("%+v became %+v: %v", p, got, err)
		}
	})
}

func TestParseRefuses(t *testing.T) {
	good := (&packet{kind: question}).append(nil)
	change := func(at int, to byte) []byte {
		b := bytes.Clone(good)
		b[at] = to
		return b
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "short": good[:packetSize-1], "long": append(bytes.Clone(good), 0),
		"other magic": change(3, '2'), "other kind": change(4, 'x'), "flags": change(5, 1),
		"index": change(7, maxPackets), "before 1970": change(16, 0x80), "a tail": change(packetSize-1, 1),
	} {
		if _, err := parse(b); !errors.Is(err, errMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := parse(good); err != nil {
		t.Error(err)
	}
}

func TestSignature(t *testing.T) {
	a, b, open := cluster(t, keyA), cluster(t, keyB), cluster(t)
	q := asked(a, t0, "relay-1")
	with := func(change func(*packet)) packet {
		p := q
		change(&p)
		return p
	}
	for _, c := range []struct {
		name string
		p    packet
		by   *auth.Cluster
		node string
		at   time.Time
		want session.Reason
	}{
		{"good", q, a, "relay-1", t0, session.None},
		{"both keys", q, cluster(t, keyB, keyA), "relay-1", t0, session.None},
		{"30 s ago", q, a, "relay-1", t0.Add(30 * time.Second), session.None},
		{"31 s ago", q, a, "relay-1", t0.Add(31 * time.Second), session.ClockSkew},
		{"31 s ahead", q, a, "relay-1", t0.Add(-31 * time.Second), session.ClockSkew},
		{"to another node", q, a, "relay-2", t0, session.BadSignature},
		{"another key", q, b, "relay-1", t0, session.BadSignature},
		{"another packet", with(func(p *packet) { p.index = 4 }), a, "relay-1", t0, session.BadSignature},
		{"another train", with(func(p *packet) { p.train++ }), a, "relay-1", t0, session.BadSignature},
		{"another time", with(func(p *packet) { p.at++ }), a, "relay-1", t0, session.BadSignature},
		{"turned round", with(func(p *packet) { p.kind = answer }), a, "relay-1", t0, session.BadSignature},
		{"none", asked(open, t0, "relay-1"), a, "relay-1", t0, session.BadSignature},
		{"nobody has a key", asked(open, t0, "relay-1"), open, "relay-1", t0, session.None},
	} {
		err := c.p.verify(c.at, c.by, c.node, nil)
		denied, ok := errors.AsType[*auth.Denied](err)
		if ok != (c.want != session.None) || ok && denied.Reason != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// An answer answers one question of one node.
func TestAnswerIsOfOneQuestion(t *testing.T) {
	a := cluster(t, keyA)
	q, other := asked(a, t0, "relay-1"), asked(a, t0.Add(time.Second), "relay-1")
	r := packet{kind: answer, index: q.index, train: q.train}
	r.sign(t0, a, "relay-1", &q)
	if err := r.verify(t0, a, "relay-1", &q); err != nil {
		t.Error(err)
	}
	if r.verify(t0, a, "relay-1", &other) == nil || r.verify(t0, a, "relay-2", &q) == nil || r.verify(t0, a, "relay-1", nil) == nil {
		t.Error("it answers another question too")
	}
}

func FuzzParse(f *testing.F) {
	c := cluster(f, keyA)
	q := asked(c, t0, "relay-1")
	f.Add(q.append(nil))
	f.Add([]byte(magic))
	f.Add([]byte{})
	r, err := NewResponder(DefaultResponderConfig(), "relay-1", c, slog.New(slog.DiscardHandler))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		given := bytes.Clone(b)
		p, err := parse(b)
		if err == nil && !bytes.Equal(p.append(nil), given) {
			t.Errorf("%x became %+v", given, p)
		}
		out, _, ok := r.reply(t0, newLimiter(1000, 1000), source("192.0.2.1"), b)
		if ok && (len(out) > len(given) || p != q) {
			t.Errorf("%x is answered with %x", given, out)
		}
	})
}
