package docs_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	copyLine    = regexp.MustCompile(`(?m)^COPY ([^-\s].*) \S+$`)
	passedLine  = regexp.MustCompile(`(?m)^!(\S+)$`)
	replaceLine = regexp.MustCompile(`=> (\.\S+)`)
)

// A builder sees only the files that .dockerignore passes.
func TestDockerfiles_CopyWhatTheBuilderSees(t *testing.T) {
	t.Parallel()
	var passed []string
	for _, m := range passedLine.FindAllStringSubmatch(read(t, ".dockerignore"), -1) {
		passed = append(passed, m[1])
	}
	files := findFiles(t, "Dockerfile")
	if len(files) < 3 {
		t.Errorf("got the Dockerfiles %q, want one for each service", files)
	}
	for _, file := range files {
		var copied []string
		for _, m := range copyLine.FindAllStringSubmatch(read(t, file), -1) {
			copied = append(copied, strings.Fields(m[1])...)
		}
		for _, source := range copied {
			if !slices.ContainsFunc(passed, func(p string) bool { return source == p || strings.HasPrefix(source, p+"/") }) {
				t.Errorf("%s copies %s, which .dockerignore leaves out", file, source)
			}
			if !exists(source) {
				t.Errorf("%s copies %s, which does not exist", file, source)
			}
		}
		module := path.Dir(file)
		for _, m := range replaceLine.FindAllStringSubmatch(read(t, module+"/go.mod"), -1) {
			if goMod := path.Join(module, m[1], "go.mod"); !slices.Contains(copied, goMod) {
				t.Errorf("%s does not copy %s, which %s/go.mod needs", file, goMod, module)
			}
		}
	}
}

// An image has no zone files, so the programs that show or check times bring the zones along.
func TestCommands_BringTimeZonesAlong(t *testing.T) {
	t.Parallel()
	for _, file := range findFiles(t, "Dockerfile") {
		service := path.Dir(file)
		if main := path.Join(service, "cmd", service, "main.go"); !strings.Contains(read(t, main), `_ "time/tzdata"`) {
			t.Errorf("%s does not import time/tzdata, and the image of %s has no zone files", main, service)
		}
	}
}
