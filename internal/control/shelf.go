package control

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// shelf keeps the last good bundle on disk: the bundle in one file and its blobs
// beside it, named by their sums.
//
//	PATH             the URL it came from, a line end, the bundle as it was sent
//	PATH.SUM         a blob; the first 32 digits of its sum
//	PATH.tmp*        a file that is being written
//
// A file is written beside, brought to the disk and then renamed, so that there is at
// any moment either the old one or the new one; and the bundle is written after its
// blobs.
type shelf struct{ path string }

// ending is what follows PATH in the name of a blob.
var ending = regexp.MustCompile(`^\.[0-9a-f]{32}$`)

// load returns the bundle that is kept and the URL that it came from.
func (s shelf) load() (*Bundle, string, error) {
	text, err := readFile(s.path, MaxSnapshot+maxURL)
	if err != nil {
		return nil, "", err
	}
	from, document, ok := bytes.Cut(text, []byte("\n"))
	if !ok || len(from) > maxURL {
		return nil, "", fmt.Errorf("%s is not a snapshot", s.path)
	}
	b, err := ParseBundle(document)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", s.path, err)
	}
	for _, blob := range b.blobs() {
		if !s.has(blob) {
			return nil, "", fmt.Errorf("%s is missing or damaged", s.blobPath(blob))
		}
	}
	return b, string(from), nil
}

// maxURL is how long the URL of a server may be.
const maxURL = 2048

func (s shelf) blobPath(b *Blob) string { return s.path + "." + b.Sum[:32] }

// has reports whether the content of b is on the disk, and lets b find it there.
func (s shelf) has(b *Blob) bool {
	read := func() ([]byte, error) {
		data, err := readFile(s.blobPath(b), b.Size)
		if err == nil {
			err = b.verify(data)
		}
		return data, err
	}
	if _, err := read(); err != nil {
		return false
	}
	b.read = read
	return true
}

// put writes a blob of that content.
func (s shelf) put(b *Blob, data []byte) error {
	return writeFile(s.blobPath(b), data)
}

// save writes b, which came from a server, and removes the blobs that it does not need.
func (s shelf) save(b *Bundle, from string) error {
	if err := writeFile(s.path, []byte(from), []byte("\n"), b.document); err != nil {
		return err
	}
	needed := map[string]bool{}
	for _, blob := range b.blobs() {
		needed[filepath.Base(s.blobPath(blob))] = true
	}
	entries, err := os.ReadDir(filepath.Dir(s.path))
	if err != nil {
		return pathError(err)
	}
	base := filepath.Base(s.path)
	for _, e := range entries {
		name := e.Name()
		if len(name) > len(base) && name[:len(base)] == base && ending.MatchString(name[len(base):]) && !needed[name] {
			if err := os.Remove(filepath.Join(filepath.Dir(s.path), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return pathError(err)
			}
		}
	}
	return nil
}

// writeFile replaces the file of that name, as a whole or not at all, also when the
// machine loses its power in the middle.
func writeFile(name string, parts ...[]byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".tmp*")
	if err != nil {
		return pathError(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(pathError(err), ignoreClosed(f.Close()), os.Remove(f.Name()))
		}
	}()
	for _, b := range parts {
		if _, err := f.Write(b); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close()) // the name, too
}

func ignoreClosed(err error) error {
	if errors.Is(err, fs.ErrClosed) {
		return nil
	}
	return err
}
