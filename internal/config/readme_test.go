package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"millrace/internal/console"
	"millrace/internal/control"
)

// readmeBlocks returns the YAML of the README, what begins with start.
func readmeBlocks(t *testing.T, start string) [][]string {
	t.Helper()
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile("(?s)```yaml\n("+start+".*?)```").FindAllStringSubmatch(string(b), -1)
}

// TestReadmeLoads loads what the README shows of each role, and wants the sample of
// the role to show the same.
func TestReadmeLoads(t *testing.T) {
	blocks := readmeBlocks(t, "role:")
	if len(blocks) != len(roles) {
		t.Fatalf("%d configurations, want one of each role", len(blocks))
	}
	for i, role := range roles {
		path := filepath.Join(t.TempDir(), role+".yaml")
		if err := os.WriteFile(path, []byte(blocks[i][1]), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := Load(DefaultNode(), Sources{File: path})
		if err != nil {
			t.Errorf("the README's %s: %v", role, err)
			continue
		}
		if l.Config.Role.String() != role {
			t.Errorf("configuration %d is of role %v, want %s", i+1, l.Config.Role, role)
		}
		head, _, _ := strings.Cut(sample(t, role), marker)
		for line := range strings.Lines(blocks[i][1]) {
			line, _, _ = strings.Cut(strings.TrimRight(line, "\n"), " # ")
			if !strings.HasPrefix(line, "role:") && !strings.Contains(head, "#   "+line+"\n") {
				t.Errorf("%s.yaml does not begin with the README's %q", role, line)
			}
		}
	}
}

// TestReadmeFilesLoad loads the files of a scheduler that the README shows, each under
// its name in a comment at the top: the scheduler reads them together.
func TestReadmeFilesLoad(t *testing.T) {
	dir := t.TempDir()
	files := control.FilesConfig{}
	for _, b := range readmeBlocks(t, `# [a-z]+\.yaml\n`) {
		name := strings.TrimPrefix(strings.SplitN(b[1], "\n", 2)[0], "# ")
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(b[1]), 0o600); err != nil {
			t.Fatal(err)
		}
		switch name {
		case "nodes.yaml":
			files.Nodes = path
		case "domains.yaml":
			files.Domains = path
		case "scheduler.yaml":
			if _, err := Load(DefaultScheduler(), Sources{File: path}); err != nil {
				t.Errorf("the README's %s: %v", name, err)
			}
		case "router.yaml":
			// Nobody must have a user whose password stands in the README, or is not known.
			if _, err := Load(DefaultRouter(), Sources{File: path}); err == nil || !strings.Contains(err.Error(), "router hash-password") {
				t.Errorf("the README's %s as it stands there: got %v, want that it says how to make a hash", name, err)
			}
			hash, err := console.Hash("of ann or ben")
			if err != nil {
				t.Fatal(err)
			}
			text := regexp.MustCompile("HASH-FOR-[A-Z]+").ReplaceAllLiteralString(b[1], hash)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(DefaultRouter(), Sources{File: path}); err != nil {
				t.Errorf("the README's %s: %v", name, err)
			}
		default:
			t.Errorf("the README shows a file %s, which nobody reads", name)
		}
	}
	if files.Nodes == "" && files.Domains == "" {
		return // configs/ shows them
	}
	if _, err := files.Load(); err != nil {
		t.Errorf("the README's files: %v", err)
	}
}
