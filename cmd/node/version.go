package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the linker: -ldflags '-X main.version=v1.2.3'.
var version = ""

// versions returns the version and the revision of the source, as far as the build
// knows them.
func versions() (name, revision string) {
	name = version
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

// versionLine is what --version prints.
func versionLine() string {
	name, revision := versions()
	if revision == "" {
		revision = "unknown revision"
	}
	return fmt.Sprintf("%s (%s, %s %s/%s)", name, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
