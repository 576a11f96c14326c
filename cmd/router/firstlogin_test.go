package main

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"millrace/internal/runtest"
)

const another = "the settings name nobody who may log in to the console: the password that another router made up is good here, too; set console.users (router hash-password)"

// passwordOf returns what is in the file of a router, "" if there is none.
func passwordOf(t *testing.T, tr *trial) string {
	t.Helper()
	b, err := os.ReadFile(tr.login.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// TestSharedLogin: routers of one Redis have one password that was made up, that of the
// first, also after all of them were started again.
func TestSharedLogin(t *testing.T) {
	mini := miniredis.RunT(t)
	text := "redis: {url: \"redis://" + mini.Addr() + "\", look: 100ms}\nid: "
	dirs := map[string]string{"one": t.TempDir(), "two": t.TempDir()}
	one, two := built(t, dirs["one"], text+"one\n"), built(t, dirs["two"], text+"two\n")
	one.start(t)
	two.start(t) // at the same time
	runtest.Until(t, "both have agreed", func() bool {
		return len(one.log.Lines(t, madeUp))+len(one.log.Lines(t, another)) == 1 && len(two.log.Lines(t, madeUp))+len(two.log.Lines(t, another)) == 1
	})
	maker, other := one, two
	if len(two.log.Lines(t, madeUp)) == 1 {
		maker, other = two, one
	}
	password := passwordOf(t, maker)
	good := func(tr *trial) {
		t.Helper()
		if code, body := tr.logIn(t, firstUser, password); code != 200 {
			t.Errorf("log-in at %s: %d %s", tr.id, code, body)
		}
	}
	good(maker)
	good(other)
	if l := other.log.Lines(t, another); len(l) != 1 || l[0]["made_up_by"] != maker.id || !strings.Contains(l[0]["password_in"].(string), maker.login.file+" on ") {
		t.Errorf("the other one tells %v", l)
	}
	if passwordOf(t, other) != "" {
		t.Error("the other one has left a password that is good nowhere")
	}
	maker.stop()
	other.stop()
	again := built(t, dirs[other.id], text+other.id+"\n")
	again.start(t)
	again.awaitLog(t, another)
	good(again)
	again.stop()

	// Whoever made it up makes another one when its file is gone, and all take that.
	other, maker = built(t, dirs[other.id], text+other.id+"\n"), built(t, dirs[maker.id], text+maker.id+"\n")
	if err := os.Remove(maker.login.file); err != nil {
		t.Fatal(err)
	}
	other.start(t)
	other.awaitLog(t, another)
	maker.start(t)
	maker.awaitLog(t, madeUp)
	runtest.Until(t, "the other one has heard of it", func() bool { return len(other.log.Lines(t, another)) == 2 })
	if next := passwordOf(t, maker); next == password {
		t.Error("the password is the same")
	} else {
		password = next
	}
	good(maker)
	good(other)
	if strings.Contains(maker.log.String()+other.log.String(), "$2a$") {
		t.Error("a hash is in the log")
	}
	if code, body := runtest.Get(t, "http://"+other.addr("http")+"/api/documents/"+keyLogin); code == 200 {
		t.Errorf("the hash can be read: %s", body)
	}
}

// TestOwnLoginWithoutRedis: while Redis cannot be reached the router's own password is
// good; when Redis has another one, that counts.
func TestOwnLoginWithoutRedis(t *testing.T) {
	mini := miniredis.RunT(t)
	text := "redis: {url: \"redis://" + mini.Addr() + "\", look: 100ms}\nid: "
	first := built(t, t.TempDir(), text+"first\n")
	first.start(t)
	first.awaitLog(t, madeUp)
	shared := passwordOf(t, first)
	first.stop()
	mini.Close()
	late := built(t, t.TempDir(), text+"late\n")
	late.start(t)
	runtest.Until(t, "its own password", func() bool {
		password := passwordOf(t, late)
		if password == "" {
			return false
		}
		code, _ := late.logIn(t, firstUser, password)
		return code == 200
	})
	if err := mini.Restart(); err != nil {
		t.Fatal(err)
	}
	late.awaitLog(t, another)
	if code, body := late.logIn(t, firstUser, shared); code != 200 || passwordOf(t, late) != "" {
		t.Errorf("the shared one: %d %s, and its own is still %q", code, body, passwordOf(t, late))
	}
}
