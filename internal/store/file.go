package store

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// file is a journal on the disk, and the lock that keeps other processes away:
//
//	FILE            the journal
//	FILE.lock       locked while a process uses it; has its number
//	FILE.published  what was published, written late and as a whole
//	FILE.tmp*       a file that is being written
//
// From time to time the journal is written anew, without what was replaced. That is done
// beside it, brought to the disk and renamed: there is always a whole one.
type file struct {
	path string
	lock *os.File
	f    *os.File
	size int64 // of the journal, all of it good
	live int64 // of it, when it was written anew
	bad  error // why nothing can be written any more
}

// slack is how much a journal may grow before it is written anew, beyond twice what
// lives in it.
const slack = 16 << 20

// sweepFiles removes what a process has left that ended while it wrote. The lock is held.
func sweepFiles(path string) {
	for _, of := range []string{path, path + ".published"} {
		left, _ := filepath.Glob(of + ".tmp*") // fails for a bad pattern alone: then all stays
		for _, name := range left {
			_ = os.Remove(name) // it is in nobody's way
		}
	}
}

// openFile locks and reads the journal of that path, or begins one. All errors say what
// to do, and leave everything as it was.
func openFile(path string, log *slog.Logger, take func(record) error) (_ *file, err error) {
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, err
	}
	j := &file{path: path, lock: lock}
	defer func() {
		if err != nil {
			err = errors.Join(err, j.close())
			return
		}
		sweepFiles(path)
	}()
	j.f, err = os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return j, j.rewrite(nil)
	} else if err != nil {
		return nil, err
	}
	info, err := j.f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file: give the router a state file of its own", path)
	}
	j.size, err = readJournal(j.f, info.Size(), take)
	switch {
	case errors.Is(err, errForeign):
		return nil, fmt.Errorf("%s: %w, and is left alone: give the router another name for its state", path, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w. Nothing was changed: put a copy of the file from a backup in its place, or move it away to begin with nothing",
			path, err)
	case j.size == 0:
		return j, j.rewrite(nil)
	case j.size < info.Size():
		log.Warn("the last write of the state file was cut short, and is left out: nobody was told that it is kept",
			"file", path, "bytes", info.Size()-j.size)
		if err := j.f.Truncate(j.size); err != nil {
			return nil, err
		}
	}
	j.live = j.size
	return j, nil
}

// lockFile holds the lock of that name until it is closed.
func lockFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		// It is not made here: a disk that is not mounted would go unnoticed, and what
		// operators edit into a new state with it.
		dir := filepath.Dir(name)
		return nil, fmt.Errorf("there is no folder %s for the state file: make it (mkdir -p %s), mount its disk, or name another place", dir, dir)
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		var pid [20]byte
		n, _ := f.ReadAt(pid[:], 0)
		return nil, errors.Join(fmt.Errorf("%s is used by process %s: stop it, or give this router a state file of its own",
			strings.TrimSuffix(name, ".lock"), strings.TrimSpace(string(pid[:n]))), f.Close())
	}
	if err := f.Truncate(0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// add appends a record. It is on the disk when add returns without an error; with one it
// is not in the journal, and will not be.
func (j *file) add(r record) error {
	if j.bad != nil {
		return j.unwritable(j.bad)
	}
	b, err := appendRecord(nil, r)
	if err != nil {
		return err
	}
	_, err = j.f.WriteAt(b, j.size)
	if err == nil {
		err = j.f.Sync()
	}
	if err != nil {
		// What the kernel still holds of it must not come back with the next record.
		if undo := errors.Join(j.f.Truncate(j.size), j.f.Sync()); undo != nil {
			j.bad = err
		}
		return j.unwritable(err)
	}
	j.size += int64(len(b))
	return nil
}

func (j *file) unwritable(err error) error {
	return fmt.Errorf("%w: %w: nothing was changed; make room on the disk or mend it, and try again", ErrUnavailable, err)
}

// grown reports whether it is time to write the journal anew.
func (j *file) grown() bool { return j.size > 2*j.live+slack }

// rewrite replaces the journal by one of these records.
func (j *file) rewrite(records []record) error {
	all := append([]record{{Kind: recordBegin, Format: format}}, records...)
	f, size, err := writeRecords(j.path, all)
	if f == nil {
		j.live = j.size // not again with every record
		return err
	}
	if j.f != nil {
		err = errors.Join(err, j.f.Close())
	}
	j.f, j.size, j.live = f, size, size
	j.bad = err // the old one may come back with the power: what is added would be lost
	return err
}

func (j *file) close() error {
	var err error
	if j.f != nil {
		err = j.f.Close()
	}
	return errors.Join(err, j.lock.Close())
}

// writeRecords replaces the file of that name, as a whole or not at all, also when the
// machine stops in the middle, and returns it open. With a file and an error the new one
// stands there, but the old one may be there again after a loss of power.
func writeRecords(name string, records []record) (f *os.File, size int64, err error) {
	f, err = os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".tmp*")
	if err != nil {
		return nil, 0, err
	}
	size, err = fill(f, records)
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return f, size, err
	}
	return f, size, errors.Join(dir.Sync(), dir.Close()) // the name, too
}

// fill brings records to the disk.
func fill(f *os.File, records []record) (size int64, err error) {
	var b []byte
	for _, r := range records {
		if b, err = appendRecord(b[:0], r); err != nil {
			return 0, err
		}
		if _, err = f.Write(b); err != nil {
			return 0, err
		}
		size += int64(len(b))
	}
	return size, f.Sync()
}
