package run

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version returns the version and the revision of the source, as far as the build
// knows them. linked is what the linker has set, or "".
func Version(linked string) (name, revision string) {
	name = linked
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return orDev(name), ""
	}
	if name == "" && info.Main.Version != "(devel)" {
		name = info.Main.Version
	}
	var dirty string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	if revision != "" {
		revision += dirty
	}
	return orDev(name), revision
}

func orDev(name string) string {
	if name == "" {
		return "dev"
	}
	return name
}

// VersionLine is what --version prints. A build outside a clone knows no revision.
func VersionLine(linked string) string {
	name, revision := Version(linked)
	if revision != "" {
		revision += ", "
	}
	return fmt.Sprintf("%s (%s%s %s/%s)", name, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
