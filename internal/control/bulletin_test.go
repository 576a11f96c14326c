package control

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestBulletin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBulletin(1000)
		never := make(chan struct{})
		next := func(have string, wait time.Duration) (string, time.Duration) {
			begun := time.Now()
			p, ok := b.next(have, wait, 10, never)
			if !ok {
				t.Fatal("refused")
			}
			if p == nil {
				return "", time.Since(begun)
			}
			return p.token, time.Since(begun)
		}
		check := func(name, token string, took time.Duration, want string, low, high time.Duration) {
			t.Helper()
			if token != want || took < low || took > high {
				t.Errorf("%s: %q after %v, want %q after %v to %v", name, token, took, want, low, high)
			}
		}
		token, took := next("", 0)
		check("nothing yet", token, took, "", 0, 0)
		token, took = next("", 5*time.Second)
		check("nothing comes", token, took, "", 5*time.Second, 5*time.Second)
		time.AfterFunc(2*time.Second, func() { b.publish(newPayload("a", nil)) })
		token, took = next("", 5*time.Second)
		check("the first comes", token, took, "a", 2*time.Second, 2*time.Second+time.Millisecond)
		token, took = next("", 5*time.Second)
		check("there is one", token, took, "a", 0, 0)
		token, took = next("a", 0)
		check("the same, no wait", token, took, "a", 0, 0)
		time.AfterFunc(time.Second, func() { b.publish(newPayload("a", nil)) })
		token, took = next("a", 5*time.Second)
		check("the same again is no news", token, took, "a", 5*time.Second, 5*time.Second)
		time.AfterFunc(2*time.Second, func() { b.publish(newPayload("b", nil)); b.publish(newPayload("c", nil)) })
		token, took = next("a", 5*time.Second)
		check("the newest of two", token, took, "c", 2*time.Second, 2*time.Second+time.Millisecond)
		if n := b.waiters(); n != 0 {
			t.Errorf("%d wait", n)
		}
	})
}

// TestBulletinTakesTurns: many that waited are let go at the rate, not at once.
func TestBulletinTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiting, rate = 2000, 400
		b := newBulletin(rate)
		b.publish(newPayload("a", nil))
		ended := make(chan struct{})
		at := make(chan time.Time, waiting)
		for range waiting {
			go func() {
				if p, ok := b.next("a", time.Minute, waiting, ended); !ok || p.token != "b" {
					t.Error("got no news")
				}
				at <- time.Now()
			}()
		}
		synctest.Wait()
		if p, ok := b.next("a", time.Minute, waiting, ended); ok || p.token != "a" {
			t.Error("one more than may wait waits")
		}
		if b.waiters() != waiting {
			t.Fatalf("%d wait", b.waiters())
		}
		begun := time.Now()
		b.publish(newPayload("b", nil))
		slots := map[time.Duration]int{}
		for range waiting {
			slots[(<-at).Sub(begun)/(100*time.Millisecond)]++
		}
		for slot, n := range slots {
			if slot > waiting/rate*10 || n > 2*rate/10 {
				t.Errorf("%d are let go in the tenth %d of a second", n, slot)
			}
		}
	})
}

// TestBulletinEnds: whoever waits, or waits for its turn, goes at once when the server
// closes.
func TestBulletinEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBulletin(1)
		b.publish(newPayload("a", nil))
		ended := make(chan struct{})
		done := make(chan string, 200)
		begun := time.Now()
		wait := func() { p, _ := b.next("a", time.Hour, 1000, ended); done <- p.token }
		for range 100 {
			go wait()
		}
		synctest.Wait()
		b.publish(newPayload("b", nil)) // their turns are within 100 s
		for range 100 {
			go func() { p, _ := b.next("b", time.Hour, 1000, ended); done <- p.token }()
		}
		synctest.Wait()
		close(ended)
		for range 200 {
			if token := <-done; token != "b" {
				t.Errorf("got %q", token)
			}
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("it took %v", took)
		}
	})
}
