// Package internal_test holds the rules of the repository that a compiler does not:
// who may import whom, what is pure, that packages are described and files short,
// and that the README tells the truth about the commands it shows.
package internal_test

import (
	"bytes"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "millrace/internal/"

// may lists, for each package, the packages of ours that it may import. A package
// that is missing here fails the test: add it on purpose.
var may = map[string][]string{
	"flv":      {},
	"session":  {},
	"stream":   {"flv", "session"},
	"address":  {},
	"setting":  {},
	"socket":   {},
	"auth":     {"address", "setting", "session", "stream"},
	"listen":   {"address", "setting", "session", "socket"},
	"serve":    {"listen"},
	"rtmp":     {"setting", "flv", "session", "stream", "auth"},
	"quality":  {"address", "session", "stream"},
	"trunk":    {},
	"httpflv":  {"socket", "trunk", "flv", "session", "stream", "auth", "quality", "serve"},
	"failover": {"flv", "session"},
	"ring":     {"stream"},
	"geo":      {},
	"sched":    {"geo", "stream"},
	"plan":     {"ring", "sched", "stream"},
	"watch":    {},
	"document": {},
	"upstream": {"trunk", "flv", "session", "stream", "auth", "failover", "ring", "rtmp", "httpflv"},
	"admin":    {"flv", "listen", "serve", "session", "stream", "rtmp", "httpflv", "upstream", "sched", "control", "probe", "plan", "fleet", "measure"},
	"probe":    {"auth", "sched", "stream"},
	"control":  {"document", "session", "stream", "auth", "geo", "sched", "plan"},
	"store":    {},
	"console":  {"geo", "stream", "sched", "plan", "store", "fleet"},
	"fleet":    {"auth", "control", "geo", "plan", "sched", "store", "stream"},
	"measure":  {"address", "setting", "session", "auth", "plan", "upstream"},
	"config":   {"document", "session", "stream", "auth", "listen", "rtmp", "httpflv", "admin", "upstream", "control", "frontend", "probe", "plan", "store", "fleet", "console", "run"},

	"run": {"listen"}, // what programs have around their components

	"frontend": {"address", "setting", "geo", "sched", "auth", "session", "stream", "serve"},

	"faultnet": {}, // of tests and tools
	"runtest":  {}, // of tests
}

// onlyCmd are the packages that nothing under internal may import, but config,
// which reads the settings of all.
var onlyCmd = []string{"config", "admin", "run"}

// pure packages compute: they do no I/O, read no clock and start nothing.
var pure = []string{"flv", "session", "stream", "address", "setting", "auth", "failover", "ring", "geo", "sched", "plan", "quality"}

// impure is what a pure package must not import. net/netip, and math/rand/v2 with
// a source of its own, are values, not I/O.
var impure = []string{
	"net", "net/http", "os", "os/exec", "os/signal", "syscall", "log", "log/slog", "math/rand",
	"crypto/rand", "unsafe", "golang.org/x/sys/unix",
}

// clocks are the functions that a pure package must not call.
var clocks = map[string][]string{
	"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	"math/rand/v2": {
		"Int", "IntN", "Int32", "Int32N", "Int64", "Int64N", "Uint32", "Uint32N", "Uint64", "Uint64N",
		"UintN", "N", "Float32", "Float64", "Perm", "Shuffle", "ExpFloat64", "NormFloat64",
	},
}

// maxLines is how long a file may be; STYLE asks for far less.
const maxLines = 600

func packages(t *testing.T) []string {
	t.Helper()
	dirs, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range dirs {
		if files, _ := filepath.Glob(filepath.Join(d.Name(), "*.go")); d.IsDir() && len(files) > 0 {
			out = append(out, d.Name())
		}
	}
	return out
}

func TestImports(t *testing.T) {
	for _, name := range packages(t) {
		allowed, ok := may[name]
		if !ok {
			t.Errorf("%s is not in the table of this test", name)
			continue
		}
		p, err := build.ImportDir(name, 0)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, imp := range p.Imports {
			if ours, ok := strings.CutPrefix(imp, module); ok && !slices.Contains(allowed, ours) {
				t.Errorf("%s imports %s, which the table does not allow", name, ours)
			}
			if slices.Contains(pure, name) && slices.Contains(impure, imp) {
				t.Errorf("%s is pure but imports %q", name, imp)
			}
		}
	}
}

func TestTable(t *testing.T) {
	for name, allowed := range may {
		for _, a := range allowed {
			if _, ok := may[a]; !ok {
				t.Errorf("%s may import %s, which is not in the table", name, a)
			}
			if slices.Contains(onlyCmd, a) && name != "config" {
				t.Errorf("%s may import %s, which is for cmd alone", name, a)
			}
			if slices.Contains(pure, name) && !slices.Contains(pure, a) {
				t.Errorf("%s is pure but may import %s, which is not", name, a)
			}
		}
	}
}

func TestFlat(t *testing.T) {
	for _, name := range packages(t) {
		nested, err := filepath.Glob(filepath.Join(name, "*", "*.go"))
		if err != nil || len(nested) > 0 {
			t.Errorf("%s: a second level of packages: %v %v", name, nested, err)
		}
	}
}

// TestPackageComments wants each package of the repository described, and in one place.
func TestPackageComments(t *testing.T) {
	for dir := range goFiles(t) {
		p, err := build.ImportDir(dir, 0)
		if err != nil {
			if _, none := err.(*build.NoGoError); !none {
				t.Errorf("%s: %v", dir, err)
			}
			continue
		}
		if p.Doc == "" && len(p.GoFiles) > 0 {
			t.Errorf("%s: package %s has no package comment", dir, p.Name)
		}
	}
}

func TestPureReadsNoClock(t *testing.T) {
	for _, name := range pure {
		files, err := filepath.Glob(filepath.Join(name, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range clockCalls(t, file, src) {
				t.Error(found)
			}
		}
	}
}

func TestClockCallsFindsThem(t *testing.T) {
	f := func(body string, want int) {
		t.Helper()
		src := "package p\nimport (\n\"time\"\nr \"math/rand/v2\"\n)\nvar _ = r.New\nfunc f() { " + body + " }"
		if got := clockCalls(t, "p.go", []byte(src)); len(got) != want {
			t.Errorf("%s: found %v, want %d", body, got, want)
		}
	}
	f("time.Now()", 1)
	f("_ = time.Since(time.Now())", 2)
	f("now := time.Now; now()", 1)
	f("_ = r.IntN(4)", 1)
	f("r.New(src).IntN(4)", 0)
	f("_ = time.Duration(4) * time.Second", 0)
}

// clockCalls returns where src uses a function of clocks.
func clockCalls(t *testing.T, file string, src []byte) (found []string) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	banned := map[string][]string{} // by the name that the file gives to the package
	for _, imp := range f.Imports {
		path, _ := strconv.Unquote(imp.Path.Value)
		names, ok := clocks[path]
		if !ok {
			continue
		}
		local := strings.TrimSuffix(path, "/v2")
		local = local[strings.LastIndexByte(local, '/')+1:]
		if imp.Name != nil {
			local = imp.Name.Name
		}
		banned[local] = names
	}
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(banned[x.Name], sel.Sel.Name) {
			found = append(found, fset.Position(n.Pos()).String()+": "+x.Name+"."+sel.Sel.Name+" in a pure package")
		}
		return true
	})
	return found
}

func TestFilesAreShort(t *testing.T) {
	for dir, files := range goFiles(t) {
		for _, name := range files {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if n := bytes.Count(b, []byte("\n")); n > maxLines {
				t.Errorf("%s/%s has %d lines, at most %d are allowed", dir, name, n, maxLines)
			}
		}
	}
}

// goFiles returns the Go files of the whole repository by folder.
func goFiles(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "node_modules" || name == "testdata" || name == "bin" ||
			strings.HasPrefix(name, ".") && name != "..") {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".go") {
			out[filepath.Dir(path)] = append(out[filepath.Dir(path)], d.Name())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var (
	makeTarget  = regexp.MustCompile(`\bmake ([a-z][a-z0-9]*)`)
	programCall = regexp.MustCompile("(?:^|[ `(])bin/([a-z]+)((?: +[^`\n|;&#]+)?)")
	programFlag = regexp.MustCompile(`(?:^|\s)--([a-z][a-z-]*)`)
	link        = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	code        = regexp.MustCompile("(?s)```.*?```|`[^`\n]+`")
)

// TestReadme looks up what the README mentions: make targets, programs and their
// flags, and files. A command that does not exist is the worst thing to show.
func TestReadme(t *testing.T) {
	readme := read(t, "../README.md")
	makefile := read(t, "../Makefile")
	for _, block := range code.FindAllString(readme, -1) {
		for _, m := range makeTarget.FindAllStringSubmatch(block, -1) {
			if !regexp.MustCompile(`(?m)^` + m[1] + `:`).MatchString(makefile) {
				t.Errorf("README: `make %s` is not in the Makefile", m[1])
			}
		}
		for _, m := range programCall.FindAllStringSubmatch(block, -1) {
			src := program(t, m[1])
			if src == "" {
				t.Errorf("README: bin/%s is not built from cmd or tools", m[1])
			}
			for _, f := range programFlag.FindAllStringSubmatch(m[2], -1) {
				if !mentions(src, f[1]) {
					t.Errorf("README: bin/%s has no flag --%s", m[1], f[1])
				}
			}
		}
	}
	for _, m := range link.FindAllStringSubmatch(readme, -1) {
		if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
			t.Errorf("README links to %s: %v", m[1], err)
		}
	}
}

// program returns the source of a program, with the flags that all of cmd have, or "".
func program(t *testing.T, name string) (src string) {
	t.Helper()
	for _, dir := range []string{"../cmd/", "../tools/"} {
		files, err := filepath.Glob(dir + name + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			src += read(t, f)
		}
		if len(files) > 0 && dir == "../cmd/" {
			src += read(t, "run/run.go")
		}
	}
	return src
}

// mentions reports whether src declares a flag: by its name in a string or tag, or
// by a field whose name in kebab case it is, as kong reads it.
func mentions(src, flag string) bool {
	if strings.Contains(src, `"`+flag+`"`) {
		return true
	}
	field := strings.ReplaceAll(flag, "-", "")
	return regexp.MustCompile(`(?im)^\s+` + field + `\s+\S+\s+` + "`").MatchString(src)
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
