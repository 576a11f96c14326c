package procstat

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// Machine is one line about where and when something is measured: cores, kernel, version of
// Go, commit of the working tree, and what else the machine had to do.
func Machine() string {
	model := "unknown processor"
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.HasPrefix(name, "model name") {
			model = strings.TrimSpace(value)
			break
		}
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	commit, _ := exec.Command("git", "describe", "--always", "--dirty").Output()
	load, _ := os.ReadFile("/proc/loadavg")
	one, _, _ := strings.Cut(string(load), " ")
	return fmt.Sprintf("machine: %d cores of %s, Linux %s, %s; commit %s; load before: %s; %s", runtime.NumCPU(), model,
		strings.TrimSpace(string(kernel)), runtime.Version(), strings.TrimSpace(string(commit)), one,
		time.Now().UTC().Format("2006-01-02 15:04 MST"))
}
