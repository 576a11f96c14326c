package control

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
)

func followers(servers ...string) FollowerConfig {
	cfg := DefaultFollowerConfig()
	cfg.Servers = servers
	return cfg
}

func newFollower(t testing.TB, cfg FollowerConfig, n *network, keys ...string) *Follower {
	t.Helper()
	f, err := NewFollower(cfg, "e1", newCluster(t, keys...), n.dial, nil, silent)
	if err != nil {
		t.Fatal(err)
	}
	f.rota.turn = 0
	return f
}

// next asks for the next bundle, at most for within.
func next(t *testing.T, f *Follower, have *Bundle, within time.Duration) *Bundle {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	b, err := f.Next(ctx, have)
	if (b == nil) == (err == nil) {
		t.Fatalf("got %v and %v", b, err)
	}
	if b != nil {
		if _, err := b.Compile(nil); err != nil {
			t.Fatalf("got a bundle that does not compile: %v", err)
		}
	}
	return b
}

func TestFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		defer n.wg.Wait()
		s := newServer(t, newCluster(t, clusterKey))
		n.http("s1:80", s)
		one, two := bundle(t, "s1", 1, 20), bundle(t, "s1", 2, 21)
		s.Bundle(one)
		f := newFollower(t, followers("http://s1:80"), n, clusterKey)
		got := next(t, f, nil, time.Minute)
		if got.Version != one.Version || len(got.Snapshot.Nodes) != 20 {
			t.Fatalf("got %v", got.Version)
		}
		if none := next(t, f, got, time.Minute); none != nil {
			t.Errorf("got %v, which is no news", none.Version)
		}
		time.AfterFunc(10*time.Second, func() { s.Bundle(two) })
		begun := time.Now()
		got = next(t, f, got, time.Minute)
		if got == nil || got.Version != two.Version || time.Since(begun) > 11*time.Second {
			t.Fatalf("got %v after %v", got, time.Since(begun))
		}
		if got.compiled.Table == nil || got.Coverage.read == nil {
			t.Error("the coverage file of the second is not that of the first")
		}
		st := f.Status()
		if st.Version != two.Version || st.Error != "" || st.From != "http://s1:80" || st.At.IsZero() {
			t.Errorf("status %+v", st)
		}
		if c := f.Counts(); c["answered"] != 2 || c["unchanged"] != 2 || c["unreachable"] != 0 {
			t.Errorf("counts %v", c)
		}
	})
}

// TestFollowerNeverGivesUp: servers may be gone for hours.
func TestFollowerNeverGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		defer n.wg.Wait()
		cfg := followers("http://s1:80", "http://s2:80", "http://s3:80")
		f := newFollower(t, cfg, n)
		const hours = 4
		if b := next(t, f, nil, hours*time.Hour); b != nil {
			t.Fatalf("got %v from nobody", b.Version)
		}
		dials := n.dials()
		total := dials["s1:80"] + dials["s2:80"] + dials["s3:80"]
		// Three each 7.5 s to 15 s and a little.
		if low, high := 3*hours*3600/16, 3*hours*3600/7; total < low || total > high {
			t.Errorf("%d tries, want %d to %d", total, low, high)
		}
		if dials["s1:80"] < total/3-1 || dials["s3:80"] < total/3-1 {
			t.Errorf("not all are asked alike: %v", dials)
		}
		if st := f.Status(); !strings.HasPrefix(st.Error, "unreachable: ") {
			t.Errorf("status %+v", st)
		}
		s := newServer(t, newCluster(t))
		s.Bundle(bundle(t, "s2", 1, 3))
		n.http("s2:80", s)
		begun := time.Now()
		b := next(t, f, nil, time.Hour)
		if b == nil || time.Since(begun) > cfg.RetryMax+2*cfg.RetryMin {
			t.Errorf("got %v, %v after the server had come back", b, time.Since(begun))
		}
		// It stays with the server that answers.
		n.dials()
		next(t, f, b, 10*time.Minute)
		if d := n.dials(); d["s1:80"]+d["s3:80"] != 0 {
			t.Errorf("others are asked while one answers: %v", d)
		}
	})
}

// TestFollowerSpreads: a thousand followers whose only server returns do not come as one.
func TestFollowerSpreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 300
		n := &network{}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, many)
		for range many {
			f := newFollower(t, followers("http://s1:80"), n)
			go func() {
				_, err := f.Next(ctx, nil)
				done <- err
			}()
		}
		time.Sleep(5 * time.Minute)
		n.dials()
		var most, total int
		for range 300 {
			time.Sleep(100 * time.Millisecond)
			d := n.dials()["s1:80"]
			most, total = max(most, d), total+d
		}
		// Each asks every 7.5 s to 15 s: three in a tenth of a second on average.
		if total < 2*many || most > 15 {
			t.Errorf("%d tries in 30 s, %d in one tenth of a second", total, most)
		}
		cancel()
		for range many {
			<-done
		}
	})
}

// TestFollowerKeeps: the last good bundle is on disk, and a program begins from it when
// no server answers, at once.
func TestFollowerKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		defer n.wg.Wait()
		s := newServer(t, newCluster(t))
		n.http("s1:80", s)
		one, two := bundle(t, "s1", 1, 20), bundle(t, "s1", 2, 21)
		s.Bundle(one)
		cfg := followers("http://s1:80")
		cfg.File = filepath.Join(t.TempDir(), "snapshot")
		if next(t, newFollower(t, cfg, n), nil, time.Minute) == nil {
			t.Fatal("no bundle")
		}
		entries, err := os.ReadDir(filepath.Dir(cfg.File))
		if err != nil || len(entries) != 2 {
			t.Fatalf("%v, %v in the folder, want the snapshot and the coverage file", entries, err)
		}

		n.set("s1:80", nil)
		f := newFollower(t, cfg, n)
		begun := time.Now()
		kept := next(t, f, nil, time.Minute)
		if kept == nil || kept.Version != one.Version || time.Since(begun) != 0 {
			t.Fatalf("got %v after %v", kept, time.Since(begun))
		}
		if b := next(t, f, kept, time.Hour); b != nil {
			t.Errorf("got %v from nobody", b.Version)
		}
		s.Bundle(two)
		n.http("s1:80", s)
		b := next(t, f, kept, time.Minute)
		if b == nil || b.Version != two.Version || b.compiled.Table != kept.compiled.Table {
			t.Errorf("got %v", b)
		}
		if b := next(t, newFollower(t, cfg, n), nil, time.Minute); b == nil || b.Version != two.Version {
			t.Errorf("on disk is %v", b)
		}
		// A coverage file that no bundle needs goes.
		bare, err := NewBundle("s1", 3, time.Now(), Contents{Snapshot: snapshot(3)})
		if err != nil {
			t.Fatal(err)
		}
		s.Bundle(bare)
		if next(t, f, b, time.Minute) == nil {
			t.Fatal("no bundle")
		}
		if entries, err := os.ReadDir(filepath.Dir(cfg.File)); err != nil || len(entries) != 1 {
			t.Errorf("%v, %v in the folder", entries, err)
		}
	})
}

// TestFollowerDamagedDisk: what is broken on disk is told of and not used.
func TestFollowerDamagedDisk(t *testing.T) {
	dir := t.TempDir()
	cfg := followers("http://s1:80")
	cfg.File = filepath.Join(dir, "snapshot")
	b := bundle(t, "s1", 1, 20)
	sh := shelf{cfg.File}
	write := func(document, coverage string) {
		t.Helper()
		if err := os.WriteFile(cfg.File, []byte(document), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(sh.blobPath(b.Coverage), []byte(coverage), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	good := "http://s1:80\n" + string(b.document)
	cases := []struct{ name, document, coverage, want string }{
		{"good", good, coverageText, ""},
		{"empty", "", coverageText, "is not a snapshot"},
		{"half", good[:len(good)/2], coverageText, "not a snapshot"},
		{"a changed letter", strings.Replace(good, "edge-1", "edge-x", 1), coverageText, "damaged"},
		{"half of the coverage", good, coverageText[:10], "is missing or damaged"},
		{"another coverage", good, strings.ToUpper(coverageText), "is missing or damaged"},
		{"a coverage that is longer", good, coverageText + "#", "is missing or damaged"},
		{"of a later program", strings.Replace(good, `"format":1`, `"format":9`, 1), coverageText, "format 9"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				write(tc.document, tc.coverage)
				var log strings.Builder
				n := &network{}
				f, err := NewFollower(cfg, "e1", newCluster(t), n.dial, nil, slog.New(slog.NewTextHandler(&log, nil)))
				if err != nil {
					t.Fatal(err)
				}
				got := next(t, f, nil, time.Minute)
				if (got != nil) != (tc.want == "") || !strings.Contains(log.String(), tc.want) {
					t.Errorf("got %v, log %s", got, log.String())
				}
			})
		})
	}
}

// TestFollowerDistrusts: none of these answers is taken, each has its outcome, and the
// next server is asked.
func TestFollowerDistrusts(t *testing.T) {
	have := bundle(t, "router", 10, 20)
	newer, older, other := bundle(t, "router", 11, 21), bundle(t, "router", 9, 22), bundle(t, "scheduler", 1, 23)
	cluster := newCluster(t, clusterKey)
	serving := func(b *Bundle, keys ...string) func(*testing.T, *network) {
		return func(t *testing.T, n *network) {
			s := newServer(t, newCluster(t, keys...))
			s.Bundle(b)
			n.http("s1:80", s)
		}
	}
	// signed answers with what f makes of the question, signed as our servers do.
	signed := func(f func(ctx *fasthttp.RequestCtx) *body) func(*testing.T, *network) {
		return func(t *testing.T, n *network) {
			s := newServer(t, cluster)
			n.handle("s1:80", func(ctx *fasthttp.RequestCtx) {
				s.send(ctx, string(ctx.Request.Header.Peek(signatureField)), 200, "token", f(ctx))
			})
		}
	}
	const head = "HTTP/1.1 200 OK\r\nConnection: close\r\nETag: \"x\"\r\n"
	raw := func(text string) func(*testing.T, *network) {
		return func(_ *testing.T, n *network) { n.raw("s1:80", text) }
	}
	cases := []struct {
		name  string
		serve func(*testing.T, *network)
		want  Outcome
	}{
		{"nobody", func(*testing.T, *network) {}, Unreachable},
		{"silence", func(_ *testing.T, n *network) {
			n.set("s1:80", func(c net.Conn) { defer c.Close(); _, _ = c.Read(make([]byte, 4096)); _, _ = c.Read(make([]byte, 1)) })
		}, Unreachable},
		{"breaks off", raw(head + "Content-Length: 100\r\n\r\nhalf"), Unreachable},
		{"a server without the key", serving(newer), Forged},
		{"a server with another key", serving(newer, "the-key-of-another-cluster"), Refused},
		{"unsigned", raw(head + "\r\n" + string(newer.document)), Forged},
		{"not modified, unsigned", raw("HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n"), Forged},
		{"signed for another question", signed(func(ctx *fasthttp.RequestCtx) *body {
			ctx.Request.Header.Set(signatureField, "1:ab")
			return newPayload("", bytesOf(newer.document)).in(identity)
		}), Forged},
		{"body changed after it was signed", signed(func(*fasthttp.RequestCtx) *body {
			b := *newPayload("", bytesOf(newer.document)).in(identity)
			b.bytes = []byte(strings.Replace(string(b.bytes), "edge-1", "edge-x", 1))
			return &b
		}), Forged},
		{"a redirect", raw("HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: http://s2:80/\r\n\r\n"), Refused},
		{"an error page", raw("HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\n\r\n<html>"), Refused},
		{"a length beyond reason", raw(head + "Content-Length: 999999999999\r\n\r\n"), Damaged},
		{"nonsense, signed", signed(func(*fasthttp.RequestCtx) *body { return newPayload("", bytesOf([]byte("hello"))).in(identity) }), Faulty},
		{"a snapshot with faults", signed(func(*fasthttp.RequestCtx) *body {
			s := snapshot(3)
			s.Nodes[0].Capacity = 0
			b, err := NewBundle("router", 11, time.Now(), Contents{Snapshot: s})
			if err != nil {
				panic(err)
			}
			return newPayload("", bytesOf(b.document)).in(identity)
		}), Faulty},
		{"a coverage file with faults", func(t *testing.T, n *network) {
			b, err := NewBundle("router", 11, time.Now(), Contents{Snapshot: snapshot(3), Coverage: NewBlob([]byte("hello"))})
			if err != nil {
				t.Fatal(err)
			}
			serving(b, clusterKey)(t, n)
		}, Faulty},
		{"a coverage file that is not what it should be", func(t *testing.T, n *network) {
			s := newServer(t, cluster)
			b, err := NewBundle("router", 11, time.Now(), Contents{Snapshot: snapshot(3), Coverage: NewBlob([]byte("192.0.2.0/25 south mobile\n"))})
			if err != nil {
				t.Fatal(err)
			}
			s.Bundle(b)
			blobs := map[string]*payload{b.Coverage.Sum: newPayload("", bytesOf([]byte("192.0.2.0/26 south mobile\n")))}
			s.blobs.Store(&blobs)
			n.http("s1:80", s)
		}, Damaged},
		{"older, of the same origin", serving(older, clusterKey), Older},
		{"the same under another name", signed(func(*fasthttp.RequestCtx) *body { return newPayload("", bytesOf(have.document)).in(identity) }), Damaged},
		{"older, of another origin", serving(other, clusterKey), Answered},
		{"newer", serving(newer, clusterKey), Answered},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &network{}
				defer n.wg.Wait()
				tc.serve(t, n)
				f := newFollower(t, followers("http://s1:80", "http://s2:80"), n, clusterKey)
				have := bundle(t, "router", 10, 20)
				if _, err := have.Compile(nil); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				n.set("s2:80", func(c net.Conn) { cancel(); c.Close() })
				got, err := f.Next(ctx, have)
				if (got != nil) != (tc.want == Answered) || (got == nil) != (err != nil) {
					t.Errorf("got %v, %v", got, err)
				}
				counts := f.Counts()
				if counts[tc.want.String()] == 0 {
					t.Errorf("outcomes %v, want %v", counts, tc.want)
				}
				if tc.want != Answered && n.dials()["s2:80"] == 0 {
					t.Error("the other server is not asked")
				}
			})
		})
	}
}

// TestFollowerSetBack: an older number is taken from the server that is followed, which
// was set back on purpose, and of no other.
func TestFollowerSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		defer n.wg.Wait()
		first, second := newServer(t, newCluster(t)), newServer(t, newCluster(t))
		n.http("s1:80", first)
		n.http("s2:80", second)
		first.Bundle(bundle(t, "router", 10, 20))
		second.Bundle(bundle(t, "router", 9, 19))
		cfg := followers("http://s1:80", "http://s2:80")
		cfg.File = filepath.Join(t.TempDir(), "snapshot")
		f := newFollower(t, cfg, n)
		b := next(t, f, nil, time.Minute)
		first.Bundle(bundle(t, "router", 8, 18))
		if b = next(t, f, b, time.Minute); b == nil || b.Version.Number != 8 {
			t.Fatalf("set back to %v", b)
		}
		first.Bundle(bundle(t, "router", 11, 21))
		if b = next(t, f, b, time.Minute); b == nil || b.Version.Number != 11 {
			t.Fatalf("on to %v", b)
		}
		n.set("s1:80", nil)
		if got := next(t, f, b, time.Hour); got != nil {
			t.Errorf("the other server, which lags, gave %v", got.Version)
		}
		if f.Counts()["older"] == 0 {
			t.Errorf("outcomes %v", f.Counts())
		}
		// The same after a start from disk: it is known whom the snapshot came from.
		f = newFollower(t, cfg, n)
		b = next(t, f, nil, time.Minute)
		if got := next(t, f, b, time.Hour); got != nil {
			t.Errorf("after a start, the other server gave %v", got.Version)
		}
		first.Bundle(bundle(t, "router", 7, 17))
		n.http("s1:80", first)
		if got := next(t, f, b, time.Hour); got == nil || got.Version.Number != 7 {
			t.Errorf("after a start, the server itself gave %v", got)
		}
	})
}

// TestFollowerEarly: a server that answers at once and has nothing new is not asked in a
// circle.
func TestFollowerEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		defer n.wg.Wait()
		s := newServer(t, newCluster(t))
		b := bundle(t, "s1", 1, 3)
		s.Bundle(b)
		s.cfg.MaxWait = 0
		n.http("s1:80", s)
		f := newFollower(t, followers("http://s1:80"), n)
		have := next(t, f, nil, time.Minute)
		next(t, f, have, 10*time.Minute)
		if c := f.Counts(); c["early"] == 0 || c["early"] > 100 {
			t.Errorf("outcomes %v", c)
		}
	})
}

func TestFollowerLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		defer n.wg.Wait()
		var log strings.Builder
		f, err := NewFollower(followers("http://s1:80", "http://s2:80"), "e1", newCluster(t), n.dial, nil, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		next(t, f, nil, time.Hour)
		// Of each server one in the first seconds, which is no warning, and one after them.
		if lines := strings.Count(log.String(), "\n"); lines != 4 || strings.Count(log.String(), "level=WARN") != 2 || !strings.Contains(log.String(), "reason=unreachable") {
			t.Errorf("an hour without servers is %d lines:\n%s", lines, log.String())
		}
		s := newServer(t, newCluster(t))
		s.Bundle(bundle(t, "s1", 1, 3))
		n.http("s1:80", s)
		next(t, f, nil, time.Hour)
		if !strings.Contains(log.String(), `msg="snapshots are followed" server=http://s1:80`) || strings.Contains(log.String(), "again") {
			t.Errorf("the first answer is not told:\n%s", log.String())
		}
		have := bundle(t, "s1", 1, 3)
		n.set("s1:80", nil)
		next(t, f, have, time.Hour)
		n.http("s1:80", s)
		next(t, f, have, time.Hour)
		if strings.Count(log.String(), `msg="snapshots are followed again" server=http://s1:80`) != 1 {
			t.Errorf("the return is not told:\n%s", log.String())
		}
	})
}

func TestFollowerConfig(t *testing.T) {
	if err := DefaultFollowerConfig().Validate(); err != nil {
		t.Error(err)
	}
	if _, err := NewFollower(DefaultFollowerConfig(), "e1", newCluster(t), nil, nil, silent); err == nil || !strings.Contains(err.Error(), "servers is empty") {
		t.Errorf("nobody to follow: %v", err)
	}
	err := FollowerConfig{Wait: time.Hour, RetryMin: time.Second}.Validate()
	for _, want := range []string{"wait is 1h0m0s: use 1s to 5m", "retry_max is 0s: use retry_min, 1s, to 10m"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	for _, url := range []string{"", "s1:80", "ftp://s1", "http://", "http://s1/path", "http://s1?x=1", "http://u:p@s1", "http://s1/" + strings.Repeat("x", maxURL)} {
		if err := followers(url).Validate(); err == nil {
			t.Errorf("%.40q is taken for a server", url)
		}
	}
	for _, url := range []string{"http://s1", "https://s1:8443/", "http://[2001:db8::1]:80"} {
		if err := followers(url).Validate(); err != nil {
			t.Error(err)
		}
	}
	many := make([]string, maxServers+1)
	for i := range many {
		many[i] = fmt.Sprintf("http://s%d", i)
	}
	if err := followers(many...).Validate(); err == nil {
		t.Error("too many servers are taken")
	}
}
