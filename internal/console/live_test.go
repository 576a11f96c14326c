package console

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"millrace/internal/fleet"

	"golang.org/x/crypto/bcrypt"
)

func TestLive(t *testing.T) {
	for _, encoding := range []string{"", "gzip"} {
		running(t, testConfig(), func(t *testing.T, b *bench) {
			p, err := b.login("ben").follow(t, "Accept-Encoding", encoding)
			if err != nil {
				t.Fatal(err)
			}
			n, id := p.begin()
			if len(n.Nodes) != 7 || id != fmt.Sprint(b.fleet.events[0].Number) {
				t.Errorf("%d nodes, events to %s", len(n.Nodes), id)
			}
			for _, part := range []string{"HTTP/1.1 200 OK", "Content-Type: text/event-stream", "Connection: close"} {
				if !strings.Contains(p.head, part) {
					t.Errorf("the head lacks %s: %s", part, p.head)
				}
			}
			if strings.Contains(p.head, "Content-Length") {
				t.Error("the head has a length")
			}

			// What is new comes, and only that.
			time.Sleep(time.Second)
			b.fleet.tick(time.Second)
			p.want("network", &n)
			if !n.At.Equal(start.Add(time.Second)) {
				t.Errorf("the map is of %v", n.At)
			}
			e := b.fleet.happen("node_up")
			b.fleet.tick(2 * time.Second)
			p.want("network", &n)
			var events fleet.Events
			if got := p.want("events", &events); got.id != fmt.Sprint(e.Number) || len(events.Events) != 1 || events.Events[0].Kind != "node_up" {
				t.Errorf("events: %+v", got)
			}

			// Long silence has comments: the next event comes after all of it.
			after := make(chan event)
			go func() {
				e, _ := p.next()
				after <- e
			}()
			time.Sleep(time.Minute)
			b.fleet.tick(time.Minute)
			if e := <-after; e.name != "network" {
				t.Errorf("after a silence: %+v", e)
			}
			_ = p.conn.Close()
			b.fleet.tick(2 * time.Minute)
			<-p.done
			if b.Stats().Left["lost"] != 1 {
				t.Errorf("left: %v", b.Stats().Left)
			}
		})
	}
}

func TestLiveLateAndBack(t *testing.T) {
	running(t, testConfig(), func(t *testing.T, b *bench) {
		ana := b.login("ana")
		first, err := ana.follow(t, "Accept-Encoding", "gzip")
		if err != nil {
			t.Fatal(err)
		}
		_, id := first.begin()
		go func() { _, _ = io.Copy(io.Discard, first.conn) }()
		for i := range 5 {
			b.fleet.happen(fmt.Sprint("kind", i))
			b.fleet.tick(time.Duration(i) * time.Second)
			time.Sleep(time.Second)
		}
		// One that comes late reads the shared stream from there.
		late, err := ana.follow(t, "Accept-Encoding", "gzip")
		if err != nil {
			t.Fatal(err)
		}
		late.begin()
		var n fleet.Network
		b.fleet.tick(time.Minute)
		late.want("network", &n)
		// One that was away is told what it missed.
		back, err := ana.follow(t, "Last-Event-ID", id)
		if err != nil {
			t.Fatal(err)
		}
		var events fleet.Events
		var news planNews
		back.want("network", &n)
		back.want("plan", &news)
		back.want("events", &events)
		if len(events.Events) != 5 || events.Events[0].Kind != "kind4" {
			t.Errorf("missed: %+v", events.Events)
		}
		if _, err := ana.follow(t, "Last-Event-ID", "x"); refusalOf(err).reason != BadRequest {
			t.Errorf("a bad id: %v", err)
		}
		go func() { _, _ = io.Copy(io.Discard, late.conn) }()
		go func() { _, _ = io.Copy(io.Discard, back.conn) }()
		_ = b.Close()
		<-first.done
		<-late.done
		<-back.done
		if b.Stats().Left["closing"] != 3 {
			t.Errorf("left: %v", b.Stats().Left)
		}
	})
}

func TestLiveSlowIsLetGo(t *testing.T) {
	cfg := testConfig()
	cfg.Listeners = 2
	running(t, cfg, func(t *testing.T, b *bench) {
		ana := b.login("ana")
		slow, err := ana.follow(t)
		if err != nil {
			t.Fatal(err)
		}
		slow.begin() // and reads no more
		good, err := ana.follow(t)
		if err != nil {
			t.Fatal(err)
		}
		good.begin()
		if _, err := ana.follow(t); refusalOf(err).reason != TooMany {
			t.Errorf("a third one: %v", err)
		}
		for i := range 10 {
			time.Sleep(time.Second)
			b.fleet.tick(time.Duration(i) * time.Second)
			var n fleet.Network
			good.want("network", &n)
			if want := start.Add(time.Duration(i) * time.Second); !n.At.Equal(want) {
				t.Errorf("the good one is at %v, want %v", n.At, want)
			}
		}
		<-slow.done
		if s := b.Stats(); s.Left["slow"] != 1 || s.Listeners != 1 {
			t.Errorf("%+v", s)
		}
		_ = good.conn.Close()
	})
}

func TestLiveEndsWithTheSession(t *testing.T) {
	running(t, testConfig(), func(t *testing.T, b *bench) {
		ana := b.login("ana")
		p, err := ana.follow(t)
		if err != nil {
			t.Fatal(err)
		}
		p.begin()
		ana.ask("POST", "/api/logout", "")
		b.fleet.tick(time.Second)
		if e, err := p.next(); err != io.EOF {
			t.Errorf("after the log-out: %+v %v", e, err)
		}
		<-p.done

		// An open page is used: it comes again before its session would end by time.
		ben := b.login("ben")
		begun := time.Now()
		p, err = ben.follow(t)
		if err != nil {
			t.Fatal(err)
		}
		p.begin()
		_, err = p.next()
		<-p.done
		if took := time.Since(begun); err != io.EOF || took != liveFor {
			t.Errorf("the page was let go after %v: %v", took, err)
		}
		if s := b.Stats().Left; s["ended"] != 1 || s["renew"] != 1 {
			t.Errorf("left: %v", s)
		}
	})
}

// TestLiveEndsWithThePassword: who may is asked again when that has changed.
func TestLiveEndsWithThePassword(t *testing.T) {
	running(t, testConfig(), func(t *testing.T, b *bench) {
		ana := b.login("ana")
		p, err := ana.follow(t)
		if err != nil {
			t.Fatal(err)
		}
		p.begin()
		cfg := testConfig()
		if cfg.Users[0].PasswordHash, err = hashAt("another password", bcrypt.MinCost); err != nil {
			t.Fatal(err)
		}
		if err := b.Reload(cfg); err != nil {
			t.Fatal(err)
		}
		b.fleet.tick(time.Second)
		if e, err := p.next(); err != io.EOF {
			t.Errorf("after the reload: %+v %v", e, err)
		}
		<-p.done
		if _, err := ana.follow(t); err == nil {
			t.Error("the page is let in again")
		}
	})
}

func TestPause(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0: liveGap, 20 * time.Millisecond: liveGap, 100 * time.Millisecond: time.Second, time.Hour: liveMost,
	} {
		if got := pause(took); got != want {
			t.Errorf("after %v: %v, want %v", took, got, want)
		}
	}
}
