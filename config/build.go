package config

import (
	"cmp"
	"runtime/debug"
	"strings"
)

// The linker sets version and revision where the build cannot know them: version in releases,
// because Go knows tags only of a module in the repository's root, and both in images, which are
// built without the repository. The Makefile and the Dockerfiles have the flags.
var version, revision string

// Devel is the version of a build that is no release.
const Devel = "devel"

// Build describes the build of a program. What is not known is empty.
type Build struct {
	Version  string // without a v; Devel for no release
	Revision string // of the repository
	Time     string // of the revision, RFC 3339
	Modified bool   // files differ from the revision
	Go       string
}

// ReadBuild returns the build of the running program.
func ReadBuild() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return readBuild(info, version, revision)
}

// readBuild returns the build with what the linker set, which comes first.
func readBuild(info *debug.BuildInfo, version, revision string) Build {
	known := map[string]string{}
	for _, s := range info.Settings {
		known[s.Key] = s.Value
	}
	module := info.Main.Version
	if module == "(devel)" {
		module = ""
	}
	return Build{
		Version:  strings.TrimPrefix(cmp.Or(version, module, Devel), "v"),
		Revision: cmp.Or(revision, known["vcs.revision"]),
		Time:     known["vcs.time"],
		Modified: known["vcs.modified"] == "true",
		Go:       info.GoVersion,
	}
}

// String returns the version and the beginning of the revision, such as "1.0.0 (4b067afa1c3d)".
func (b Build) String() string {
	if b.Revision == "" {
		return b.Version
	}
	text := b.Version + " (" + b.Revision[:min(12, len(b.Revision))]
	if b.Modified {
		text += ", modified"
	}
	return text + ")"
}
