package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"millrace/internal/config"
	"millrace/internal/run"
	"millrace/internal/runtest"
)

func TestMain(m *testing.M) { runtest.Main(m) }

// trial is a router in this process.
type trial struct {
	*router
	file string
	log  *runtest.Journal
	hup  chan os.Signal
	stop func() // ends it and waits for that
}

// built returns a router on ports of its own with text as its settings, and its state
// in dir. It does not run; its listeners are closed at the end of the test.
func built(t *testing.T, dir, text string) *trial {
	t.Helper()
	tr := &trial{file: filepath.Join(dir, "router.yaml"), log: &runtest.Journal{}, hup: make(chan os.Signal, 1)}
	runtest.Write(t, tr.file, text)
	src := config.Sources{File: tr.file, Flags: []config.Flag{{Name: "--state", Key: "state_file", Text: filepath.Join(dir, "state")}}}
	for _, scheme := range []string{"http", "admin"} {
		src.Flags = append(src.Flags, config.Flag{Name: "--" + scheme, Key: "address." + scheme, Text: "127.0.0.1:0"})
	}
	loaded, err := config.Load(config.DefaultRouter(), src)
	if err != nil {
		t.Fatal(err)
	}
	if tr.router, err = build(loaded, src, run.NewLog(loaded.Config.Log.Level, "json", tr.log)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.close)
	return tr
}

// start runs the router until stop, or the end of the test.
func (tr *trial) start(t *testing.T) {
	t.Helper()
	tr.stop = runtest.Start(t, 1, func(end <-chan os.Signal) error { return tr.Run(run.Signals{Reload: tr.hup, End: end}) })
}

// addr returns where the listener of a scheme is.
func (tr *trial) addr(scheme string) string { return tr.doors.Addr(scheme).String() }

// awaitLog waits for a line of the log.
func (tr *trial) awaitLog(t *testing.T, msg string) map[string]any {
	t.Helper()
	return tr.log.Await(t, msg)
}

// logIn logs in to the console and returns the status and the answer.
func (tr *trial) logIn(t *testing.T, name, password string) (int, string) {
	t.Helper()
	body, _ := json.Marshal(map[string]string{"name": name, "password": password})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+tr.addr("http")+"/api/login", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := runtest.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(b)
}

// TestRuns: nodes, operators and their page are answered on one port, and figures on
// another.
func TestRuns(t *testing.T) {
	tr := built(t, t.TempDir(), "id: here\n")
	tr.start(t)
	tr.awaitLog(t, "ready")
	at, admin := "http://"+tr.addr("http"), "http://"+tr.addr("admin")
	for url, want := range map[string]string{
		admin + "/healthz":       "ok",
		admin + "/v1/version":    `"role":"router"`,
		admin + "/v1/status":     `"routers"`,
		admin + "/v1/network":    `"nodes"`,
		admin + "/v1/plan":       `"pools"`,
		admin + "/v1/streams":    `"streams"`,
		admin + "/v1/events":     `"events"`,
		admin + "/metrics":       "millrace_fleet_nodes 0",
		admin + "/":              "/v1/path",
		at + "/":                 "<html",
		admin + "/v1/nodes/none": "",
		at + "/v1/nothing":       "",
	} {
		code, body := runtest.Get(t, url)
		if want == "" {
			if code != 404 {
				t.Errorf("%s answers %d %s, want 404", url, code, body)
			}
			continue
		}
		if code != 200 || !strings.Contains(body, want) {
			t.Errorf("%s answers %d %s, want %s", url, code, body, want)
		}
	}
	runtest.AwaitGet(t, admin+"/v1/status", `"leader":true`)
}

// TestFirstLogin: a router whose settings name nobody makes up a password, which stays the
// same, until they name somebody.
func TestFirstLogin(t *testing.T) {
	dir := t.TempDir()
	tr := built(t, dir, "")
	tr.start(t)
	told := tr.awaitLog(t, "the settings name nobody who may log in to the console: one password was made up; set console.users (router hash-password)")
	file, _ := told["password_in"].(string)
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the password: %v, %v", info, err)
	}
	b, _ := os.ReadFile(file)
	password := strings.TrimSpace(string(b))
	if code, body := tr.logIn(t, firstUser, password); code != 200 || !strings.Contains(body, `"operator"`) {
		t.Errorf("log-in: %d %s", code, body)
	}
	if code, body := tr.logIn(t, firstUser, "another password"); code != 401 || !strings.Contains(body, "wrong_password") {
		t.Errorf("with a wrong password: %d %s", code, body)
	}
	tr.stop()

	again := built(t, dir, "")
	again.start(t)
	if code, body := again.logIn(t, firstUser, password); code != 200 {
		t.Errorf("after a restart: %d %s", code, body)
	}
	var hash, stderr bytes.Buffer
	if code := hashPassword(nil, pipe(t, "ann's own password\n"), &hash, &stderr); code != run.OK {
		t.Fatalf("hash-password: %d %s", code, &stderr)
	}
	runtest.Write(t, again.file, "console: {users: [{name: ann, password_hash: "+strings.TrimSpace(hash.String())+", role: read-only}]}\n")
	again.hup <- syscall.SIGHUP
	again.awaitLog(t, "reloaded")
	if code, body := again.logIn(t, "ann", "ann's own password"); code != 200 || !strings.Contains(body, "read-only") {
		t.Errorf("ann: %d %s", code, body)
	}
	if code, _ := again.logIn(t, firstUser, password); code != 401 {
		t.Errorf("the password that was made up is still good: %d", code)
	}
	if strings.Contains(again.log.String(), "$2a$") {
		t.Error("a hash is in the log")
	}
}

// pipe returns a file that has some text.
func pipe(t *testing.T, text string) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString(text); err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Cleanup(func() { r.Close() })
	return r
}

// TestCommands: passwords and tokens that the settings take, and no others.
func TestCommands(t *testing.T) {
	var out, errs bytes.Buffer
	if code := hashPassword(nil, pipe(t, "short\n"), &out, &errs); code != run.Refused || !strings.Contains(errs.String(), "has 5 bytes") {
		t.Errorf("a short password: %d %s", code, &errs)
	}
	if code := hashPassword([]string{"secret"}, nil, &out, &errs); code != run.Refused {
		t.Error("a password on the command line is taken")
	}
	out.Reset()
	if code := newToken(nil, &out, &errs); code != run.OK {
		t.Fatalf("new-token: %d", code)
	}
	m := regexp.MustCompile(`token: (\S+)\nhash:  (\S+)\n`).FindStringSubmatch(out.String())
	if m == nil {
		t.Fatalf("new-token prints %s", &out)
	}
	tr := built(t, t.TempDir(), "console: {tokens: [{name: script, hash: \""+m[2]+"\", role: operator}]}\n")
	tr.start(t)
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+tr.addr("http")+"/api/plan", nil)
	for token, want := range map[string]int{m[1]: 200, m[1] + "x": 401} {
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := runtest.Client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("with a token: %d, want %d", res.StatusCode, want)
		}
	}
}

// TestSeeds: files become documents once, and stay what operators make of them.
func TestSeeds(t *testing.T) {
	dir := t.TempDir()
	network := filepath.Join(dir, "network.yaml")
	runtest.Write(t, network, "regions:\n  - {name: north}\n")
	text := "seed: {network: " + network + "}\n"
	tr := built(t, dir, text)
	if err := check(tr.cfg); err != nil {
		t.Errorf("good seeds: %v", err)
	}
	tr.start(t)
	tr.awaitLog(t, "document begun from a file: from now on it is edited in the console")
	d, err := tr.fleet.Document(t.Context(), "network", 0)
	if err != nil || d.Version != 1 || !strings.Contains(d.Body, "north") || d.Author != tr.id {
		t.Errorf("the document is %+v, %v", d, err)
	}
	tr.stop()
	runtest.Write(t, network, "regions:\n  - {name: south}\n")
	again := built(t, dir, text)
	again.start(t)
	runtest.AwaitGet(t, "http://"+again.addr("admin")+"/v1/status", `"leader":true`)
	if d, err := again.fleet.Document(t.Context(), "network", 0); err != nil || d.Version != 1 || !strings.Contains(d.Body, "north") {
		t.Errorf("after a restart it is %+v, %v", d, err)
	}
	runtest.Write(t, network, "regions:\n  - {nam: south}\n")
	if err := check(again.cfg); err == nil || !strings.Contains(err.Error(), "nam") {
		t.Errorf("a bad seed: %v", err)
	}
}

// TestOneStateOneRouter: a second router does not take the file of the first.
func TestOneStateOneRouter(t *testing.T) {
	dir := t.TempDir()
	tr := built(t, dir, "")
	if _, err := openState(tr.cfg, tr.out.Log); err == nil {
		t.Error("a second router has opened the state of the first")
	}
}

// TestRefusesUnread: what is too big to be read is refused with a word, which arrives even
// if the client sends all of it first.
func TestRefusesUnread(t *testing.T) {
	tr := built(t, t.TempDir(), "")
	tr.start(t)
	tr.awaitLog(t, "ready")
	f := func(what, text string, status int) {
		t.Helper()
		conn, err := net.Dial("tcp", tr.addr("http"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		if res.StatusCode != status || !strings.Contains(string(b), `"reason":"too_big"`) {
			t.Errorf("%s: %d %s", what, res.StatusCode, b)
		}
	}
	post := func(size int, head string) string {
		return fmt.Sprintf("POST /v1/heartbeat HTTP/1.1\r\nHost: router\r\nContent-Length: %d\r\n%s\r\n", size, head)
	}
	body := strings.Repeat("x", 8<<20)
	for range 20 {
		f("a body", post(len(body), "")+body, 413)
	}
	f("a body of which nothing comes", post(maxBody+1, ""), 413)
	f("a body with a bad signature", post(len(body), "Millrace-Digest: "+strings.Repeat("0", 64)+"\r\nMillrace-Signature: 1:2\r\n")+body, 413)
	head := "GET / HTTP/1.1\r\nHost: router\r\nX-Long: "
	f("a head", head+body, 431)
	f("a head that is just too long", head+strings.Repeat("x", maxHead-len(head)), 431)
}
