package console

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
)

var update = flag.Bool("update", false, "write testdata anew")

// samples are the requests whose answers testdata has, by the name of the file.
var samples = []struct{ file, method, target, body string }{
	{"login", "POST", "/api/login", `{"name":"ana","password":"` + password + `"}`},
	{"login-wrong-password", "POST", "/api/login", `{"name":"ana","password":"a bad password"}`},
	{"session", "GET", "/api/session", ""},
	{"network", "GET", "/api/network", ""},
	{"node-edge-2", "GET", "/api/nodes/edge-2", ""},
	{"node-unknown", "GET", "/api/nodes/nobody", ""},
	{"link-relay-2-edge-2", "GET", "/api/link?from=relay-2&to=edge-2", ""},
	{"path", "GET", "/api/path?node=edge-2&stream=live/show", ""},
	{"plan", "GET", "/api/plan", ""},
	{"dryrun", "POST", "/api/plan/dryrun", `{"edits":{"pins":[{"node":"edge-2","upstreams":["relay-1"]}]}}`},
	{"dryrun-invalid", "POST", "/api/plan/dryrun", `{"edits":{"weights":[{"from":"relay-1","to":"edge-2","weight":-1}]}}`},
	{"documents", "GET", "/api/documents", ""},
	{"document-edits", "GET", "/api/documents/edits", ""},
	{"document-none", "GET", "/api/documents/domains", ""},
	{"history", "GET", "/api/documents/edits/history", ""},
	{"put-conflict", "PUT", "/api/documents/edits", `{"based":1,"body":{"drains":[{"node":"edge-1"}]},"comment":"maintenance"}`},
	{"put", "PUT", "/api/documents/edits", `{"based":3,"body":{"drains":[{"node":"edge-1"}]},"comment":"maintenance"}`},
	{"rollback", "POST", "/api/documents/edits/rollback", `{"version":3,"based":4,"comment":"maintenance is over"}`},
	{"check", "POST", "/api/documents/edits/check", `{"body":"{}"}`},
	{"check-faults", "POST", "/api/documents/network/check", `{"body":"bad: true"}`},
	{"streams", "GET", "/api/streams?q=live&limit=10", ""},
	{"stream", "GET", "/api/stream?name=live/show", ""},
	{"scheduling", "GET", "/api/scheduling", ""},
	{"explain", "GET", "/api/scheduling/explain?domain=play.example.com&ip=198.51.100.7&stream=live/show", ""},
	{"events", "GET", "/api/events?limit=3", ""},
	{"events-filtered", "GET", "/api/events?kind=switch&stream=live/show", ""},
}

var secrets = regexp.MustCompile(`("csrf": )"[^"]+"`)

// TestSamples keeps testdata, and with it API.md, true.
func TestSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, testConfig())
		ana := b.login("ana")
		var files []string
		for _, s := range samples {
			a := ana.ask(s.method, s.target, s.body)
			var text bytes.Buffer
			if err := json.Indent(&text, []byte(a.body), "", "  "); err != nil {
				t.Errorf("%s: %v: %s", s.file, err, a.body)
				continue
			}
			got := secrets.ReplaceAllString(strings.TrimSpace(text.String())+"\n", `$1"xQ2f…"`)
			file := filepath.Join("testdata", s.file+".json")
			files = append(files, file)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(file); err != nil || string(want) != got {
				t.Errorf("%s is not what %s %s gives (%v): see what changed, and run with -update", file, s.method, s.target, err)
			}
		}
		have, _ := filepath.Glob(filepath.Join("testdata", "*.json"))
		for _, f := range have {
			if !slices.Contains(files, f) {
				t.Errorf("%s is of no request", f)
			}
		}
	})
}

// TestManual wants all paths and reasons in API.md, and no file that is not there.
func TestManual(t *testing.T) {
	b, err := os.ReadFile("API.md")
	if err != nil {
		t.Fatal(err)
	}
	manual := string(b)
	for _, r := range newBench(t, testConfig()).routes {
		words := regexp.QuoteMeta(r.method+" /api/") + strings.ReplaceAll(strings.Join(r.path, "/"), "*", "[A-Z]+")
		if !regexp.MustCompile("`" + words + "[`?]").MatchString(manual) {
			t.Errorf("API.md has no `%s /api/%s`", r.method, strings.Join(r.path, "/"))
		}
	}
	for _, r := range Reasons() {
		if !strings.Contains(manual, "| `"+r.String()+"` | "+strconv.Itoa(statuses[r])+" |") {
			t.Errorf("API.md has no row of the reason %v with its status %d", r, statuses[r])
		}
	}
	for _, m := range regexp.MustCompile(`testdata/[a-z0-9-]+\.json`).FindAllString(manual, -1) {
		if _, err := os.Stat(m); err != nil {
			t.Errorf("API.md: %v", err)
		}
	}
	for _, s := range samples {
		if !strings.Contains(manual, "testdata/"+s.file+".json") {
			t.Errorf("API.md does not name testdata/%s.json", s.file)
		}
	}
}
