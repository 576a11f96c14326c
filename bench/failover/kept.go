package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"millrace/tools/drill"
)

// kept are the runs of a case that were made already, a line of JSON each.
type kept struct {
	file    *os.File
	results map[uint64]drill.Result // by seed
}

func openKept(path string) (*kept, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	k := &kept{file: f, results: map[uint64]drill.Result{}}
	s := bufio.NewScanner(f)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		var r drill.Result
		if json.Unmarshal(s.Bytes(), &r) == nil { // the last one may have been cut off
			k.results[r.Seed] = r
		}
	}
	if err := s.Err(); err != nil {
		f.Close()
		return nil, err
	}
	return k, nil
}

func (k *kept) add(r drill.Result) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = k.file.Write(append(append([]byte{'\n'}, b...), '\n')) // the line before may have been cut off
	k.results[r.Seed] = r
	return err
}

// fingerprint tells one build of the node from another: runs of two are not mixed.
func fingerprint(program string) (string, error) {
	f, err := os.Open(program)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:6]), nil
}
