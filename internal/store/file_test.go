package store

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

// writerEnv makes a process of this test one that writes documents until it is killed.
const writerEnv = "MILLRACE_TEST_WRITER"

func TestMain(m *testing.M) {
	if file := os.Getenv(writerEnv); file != "" {
		write(file)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// write edits documents as fast as it can, and prints the version of each edit that has
// returned.
func write(file string) {
	m, err := NewMemory(MemoryConfig{File: file}, silent)
	for n := uint64(0); err == nil; n++ {
		if d, ok := m.newestOf("edits"); ok {
			n = d.Version
		}
		if _, err = m.Edit(context.Background(), "edits", n, bytes.Repeat([]byte{byte(n + 1)}, 20_000), anna); err == nil {
			fmt.Println(n + 1)
		}
	}
	fmt.Println(err)
}

// TestKilledWhileWriting kills a process that writes, at once and again and again.
func TestKilledWhileWriting(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	told := uint64(0)
	for round := range 5 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), writerEnv+"="+file)
		out := must[interface{ Read([]byte) (int, error) }](t)(cmd.StdoutPipe())
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			version, err := strconv.ParseUint(lines.Text(), 10, 64)
			if err != nil {
				t.Fatalf("the writer says %q", lines.Text())
			}
			told = version
			if n == 10+3*round {
				_ = cmd.Process.Kill() // what it has printed by now is still read
			}
		}
		_ = cmd.Wait() // its error tells that it was killed
		m := must[*Memory](t)(NewMemory(MemoryConfig{File: file}, silent))
		d, _ := m.newestOf("edits")
		if d.Version < told || d.Version > told+1 {
			t.Fatalf("version %d was told to be kept, and the newest is %d", told, d.Version)
		}
		for _, v := range m.versions("edits") {
			if !bytes.Equal(v.Body, bytes.Repeat([]byte{byte(v.Version)}, 20_000)) {
				t.Fatalf("version %d has another body", v.Version)
			}
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// copyTo is a crash: it copies what is on the disk to another place.
func copyTo(t interface {
	Helper()
	Fatal(...any)
}, from, to string,
) {
	t.Helper()
	for _, ending := range []string{"", ".published"} {
		b, err := os.ReadFile(from + ending)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(to+ending, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestSecondProcessIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	first := openMemory(t, file)
	_, err := NewMemory(MemoryConfig{File: file}, silent)
	want := fmt.Sprintf("%s is used by process %d: stop it, or give this router a state file of its own", file, os.Getpid())
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	must[Document](t)(first.Edit(t.Context(), "edits", 0, nil, anna))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := openMemory(t, file)
	must[Document](t)(second.Edit(t.Context(), "edits", 1, nil, anna))
}

// TestFileCannotBeUsed opens what is no state file of ours, and finds it unchanged.
func TestFileCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	good, ends := journalOf(t, sampleRecords())
	damaged := bytes.Clone(good)
	damaged[ends[2]+40] ^= 1
	newer := []byte(`{"kind":"begin","format":2}` + "\n")
	f := func(name string, content []byte, want string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the lock is given up again
			_, err := NewMemory(MemoryConfig{File: file}, silent)
			if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", name, err, want)
			}
		}
		if got := must[[]byte](t)(os.ReadFile(file)); !bytes.Equal(got, content) {
			t.Errorf("%s was changed", name)
		}
	}
	f("damaged", damaged, "Nothing was changed: put a copy of the file from a backup in its place")
	f("foreign", []byte("nodes:\n- id: edge-1\n"), "give the router another name for its state")
	f("newer", seal(newer, len(newer)), "use the version that wrote it")
	if _, err := NewMemory(MemoryConfig{File: dir}, silent); err == nil {
		t.Error("a directory is a state file")
	}
	none := filepath.Join(dir, "none")
	if _, err := NewMemory(MemoryConfig{File: filepath.Join(none, "state")}, silent); err == nil ||
		!strings.Contains(err.Error(), "mkdir -p "+none) || strings.Contains(err.Error(), ".lock") {
		t.Errorf("a state file in a folder that is not there: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestLeftFilesAreRemoved: a process that ended while it wrote leaves nothing for ever.
func TestLeftFilesAreRemoved(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	for _, name := range []string{file + ".tmp123", file + ".published.tmp456", file + "2.tmp789"} {
		if err := os.WriteFile(name, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	openMemory(t, file)
	left, _ := filepath.Glob(file + "*.tmp*")
	if want := []string{file + "2.tmp789"}; !slices.Equal(left, want) { // that is somebody else's
		t.Errorf("left: %v, want %v", left, want)
	}
}

// TestCutShortIsTold opens a file whose last write was cut short, and goes on with it.
func TestCutShortIsTold(t *testing.T) {
	b, ends := journalOf(t, sampleRecords()[:6])
	for _, lost := range []int{1, 20, ends[5] - ends[4] - 1} {
		file := filepath.Join(t.TempDir(), "state")
		if err := os.WriteFile(file, b[:len(b)-lost], 0o600); err != nil {
			t.Fatal(err)
		}
		var told bytes.Buffer
		m := must[*Memory](t)(NewMemory(MemoryConfig{File: file}, slog.New(slog.NewTextHandler(&told, nil))))
		if n := strings.Count(told.String(), "\n"); n != 1 || !strings.Contains(told.String(), "cut short") {
			t.Errorf("%d bytes lost: told %q", lost, told.String())
		}
		must[Document](t)(m.Edit(t.Context(), "edits", 2, []byte("goes on"), anna))
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		d := must[Document](t)(openMemory(t, file).Current(t.Context(), "edits"))
		if d.Version != 3 || string(d.Body) != "goes on" {
			t.Errorf("%d bytes lost: then %+v", lost, d)
		}
	}
}

// TestDiskFails takes the disk away from an open store.
func TestDiskFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	m := must[*Memory](t)(NewMemory(MemoryConfig{File: file}, silent))
	ctx := t.Context()
	must[Document](t)(m.Edit(ctx, "edits", 0, []byte("kept"), anna))
	if err := m.file.f.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := m.Edit(ctx, "edits", 1, []byte("lost"), anna)
		wantErr(t, "an edit without a disk", err, ErrUnavailable)
	}
	if d := must[Document](t)(m.Current(ctx, "edits")); d.Version != 1 || string(d.Body) != "kept" {
		t.Errorf("what was refused is there: %+v", d)
	}
	fence, _, _ := m.Lease(ctx, "a", time.Minute)
	_, err := m.Publish(ctx, fence, "plan", nil)
	wantErr(t, "a publication whose number cannot be set aside", err, ErrUnavailable)
	if err := m.Close(); err == nil {
		t.Error("closing tells of nothing")
	}
	if d := must[Document](t)(openMemory(t, file).Current(ctx, "edits")); d.Version != 1 {
		t.Errorf("then %+v", d)
	}
}

// TestPublicationsOutliveTheProcess ends a store in an orderly way, and by a crash.
func TestPublicationsOutliveTheProcess(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "state")
	var last Published
	synctest.Test(t, func(t *testing.T) {
		m := openMemory(t, file)
		running := make(chan error, 1)
		go func() { running <- m.Run(t.Context()) }()
		fence, _, _ := m.Lease(t.Context(), "a", time.Hour)
		last = must[Published](t)(m.Publish(t.Context(), fence, "plan", []byte("first")))
		time.Sleep(flushEvery + time.Second)
		last = must[Published](t)(m.Publish(t.Context(), fence, "plan", []byte("second")))
		copyTo(t, file, filepath.Join(dir, "crashed"))
		copyTo(t, file, filepath.Join(dir, "crashed-twice"))
	})
	f := func(name, wantBody string, wantNext func(number uint64) bool) {
		t.Helper()
		m := openMemory(t, filepath.Join(dir, name))
		if p := must[Published](t)(m.Published(t.Context(), "plan")); string(p.Body) != wantBody {
			t.Errorf("%s: then %q is published", name, p.Body)
		}
		fence, _, _ := m.Lease(t.Context(), "a", time.Hour)
		if fence <= last.Fence {
			t.Errorf("%s: fence %d after %d", name, fence, last.Fence)
		}
		p := must[Published](t)(m.Publish(t.Context(), fence, "plan", nil))
		if !wantNext(p.Number) {
			t.Errorf("%s: number %d follows %d", name, p.Number, last.Number)
		}
	}
	f("state", "second", func(n uint64) bool { return n == last.Number+1 })
	f("crashed", "first", func(n uint64) bool { return n > last.Number })
	openMemory(t, filepath.Join(dir, "crashed-twice")).Close() // and ends in order, with nothing published
	f("crashed-twice", "first", func(n uint64) bool { return n > last.Number })

	// What cannot be read is no reason not to begin.
	if err := os.WriteFile(filepath.Join(dir, "other.published"), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	copyTo(t, filepath.Join(dir, "crashed"), filepath.Join(dir, "other"))
	if err := os.WriteFile(filepath.Join(dir, "other.published"), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := openMemory(t, filepath.Join(dir, "other"))
	_, err := m.Published(t.Context(), "plan")
	wantErr(t, "a damaged publication", err, ErrNotFound)
}

// TestReservesAreNotKept: a router that publishes and is never edited does not grow its
// journal for ever.
func TestReservesAreNotKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	records := []record{{Kind: recordBegin, Format: format}}
	for i := range maxReserves - 1 {
		records = append(records, record{Kind: recordReserve, Key: "plan", Number: uint64(i+1) * reserve, Fence: 1})
	}
	b, _ := journalOf(t, records)
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	m := openMemory(t, file)
	fence, _, err := m.Lease(t.Context(), "a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	p := must[Published](t)(m.Publish(t.Context(), fence, "plan", nil))
	if want := uint64(maxReserves-1)*reserve + 1; p.Number != want {
		t.Errorf("number %d, want %d", p.Number, want)
	}
	if info := must[os.FileInfo](t)(os.Stat(file)); info.Size() > 1000 {
		t.Errorf("the journal has %d bytes, of %d before", info.Size(), len(b))
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	again := openMemory(t, file)
	fence, _, err = again.Lease(t.Context(), "a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if next := must[Published](t)(again.Publish(t.Context(), fence, "plan", nil)); next.Number != p.Number+1 {
		t.Errorf("after a restart the number is %d, want %d", next.Number, p.Number+1)
	}
}
