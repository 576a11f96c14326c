// Package procstat reads what Linux tells of a process under /proc: the CPU time
// and the memory it used, and what it has open. The measuring tools share it.
package procstat

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc: sysconf(_SC_CLK_TCK) is 100 on every Linux
// that Go runs on. The kernel keeps the sum of both times exactly and rounds only here.
const tick = 10 * time.Millisecond

// CPU returns the user and system time that the process used so far (proc(5), stat).
func CPU(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseCPU(b)
}

func parseCPU(stat []byte) (time.Duration, error) {
	// The second field is the name in parentheses, which may hold anything.
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) < 13 {
		return 0, fmt.Errorf("stat has %d fields", len(f)+2)
	}
	utime, err1 := strconv.ParseInt(string(f[11]), 10, 64)
	stime, err2 := strconv.ParseInt(string(f[12]), 10, 64)
	if err1 != nil || err2 != nil {
		return 0, fmt.Errorf("stat: times %q %q", f[11], f[12])
	}
	return time.Duration(utime+stime) * tick, nil
}

// Memory is what a process holds, in bytes.
type Memory struct {
	RSS int64 `json:"rss"`
	PSS int64 `json:"pss"`
}

// ReadMemory returns the resident memory of the process (proc(5), smaps_rollup).
func ReadMemory(pid int) (Memory, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return Memory{}, err
	}
	return parseMemory(string(b))
}

func parseMemory(rollup string) (m Memory, err error) {
	found := 0
	for line := range strings.Lines(rollup) {
		name, rest, _ := strings.Cut(line, ":")
		dst := map[string]*int64{"Rss": &m.RSS, "Pss": &m.PSS}[name]
		f := strings.Fields(rest)
		if dst == nil || len(f) != 2 || f[1] != "kB" {
			continue
		}
		if *dst, err = strconv.ParseInt(f[0], 10, 64); err != nil {
			return Memory{}, err
		}
		*dst <<= 10
		found++
	}
	if found != 2 {
		return Memory{}, fmt.Errorf("smaps_rollup has no Rss or no Pss")
	}
	return m, nil
}

// Descriptors returns how many files the process has open.
func Descriptors(pid int) (int, error) {
	d, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(d), err
}
