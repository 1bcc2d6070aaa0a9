package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	workModule  = regexp.MustCompile(`(?m)^\t\.(/\S+)$`)
	lintVersion = regexp.MustCompile(`(?m)^LINT_VERSION := v(\S+)$`)
)

func TestMakeTools(t *testing.T) {
	t.Parallel()
	makefile := read(t, "Makefile")
	version := lintVersion.FindStringSubmatch(makefile)[1]
	for _, tt := range []struct{ name, inPath, want string }{
		{name: "takes the right version from the PATH", inPath: version, want: "from the PATH"},
		{name: "takes a version that go install has built", inPath: "v" + version, want: "from the PATH"},
		{name: "compiles beside another version", inPath: "1" + version, want: "compiled"},
		{name: "compiles beside a longer version", inPath: version + "-rc.1", want: "compiled"},
		{name: "compiles if there is none", inPath: "", want: "compiled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			bin := filepath.Join(dir, "path")
			write(t, filepath.Join(dir, "Makefile"), makefile)
			if tt.inPath != "" {
				write(t, filepath.Join(bin, "golangci-lint"), "#!/bin/sh\necho "+tt.inPath+" # from the PATH\n")
			}
			write(t, filepath.Join(bin, "go"), "#!/bin/sh\nmkdir -p $GOBIN && echo compiled >$GOBIN/golangci-lint\n")
			cmd := exec.CommandContext(t.Context(), "make", "tools")
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "MAKEFLAGS=", "PATH="+bin+":/usr/bin:/bin")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			linter, err := filepath.Glob(filepath.Join(dir, ".tools", "*", "*"))
			if err != nil || len(linter) != 1 {
				t.Fatalf("got the files %q, %v, want the linter alone", linter, err)
			}
			got, err := os.ReadFile(linter[0])
			if err != nil || !strings.Contains(string(got), tt.want) {
				t.Errorf("got %q, %v, want the one %s; make said:\n%s", got, err, tt.want, out)
			}
			if tt.want == "compiled" && !strings.Contains(string(out), "compiling") || strings.Contains(string(out), "cp:") {
				t.Errorf("make said:\n%s", out)
			}
		})
	}
}

// The stand-in for go answers what go env -w has set, and notes how each other command is called.
func TestMakeRelease_LeavesOutWhatGoEnvHasSet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bin := filepath.Join(dir, "path")
	write(t, filepath.Join(dir, "Makefile"), read(t, "Makefile"))
	for _, service := range []string{"circulation", "circulation-storage", "resource-locks"} {
		write(t, filepath.Join(dir, service, "go.mod"), "")
	}
	write(t, filepath.Join(dir, "config", "go.mod"), "module config\n")
	write(t, filepath.Join(bin, "git"), "#!/bin/sh\n")
	write(t, filepath.Join(bin, "go"), `#!/bin/sh
[ "$1" = env ] && echo "$2 of the file" && exit
echo "$1, $GOENV, $GOPROXY, $GOPRIVATE, $GOSUMDB, $GOEXPERIMENT" >>"`+dir+`/dist/called"
`)
	cmd := exec.CommandContext(t.Context(), "make", "release")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "MAKEFLAGS=", "PATH="+bin+":/usr/bin:/bin", "GOENV=", "GOEXPERIMENT=x")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const settings = ", off, GOPROXY of the file, GOPRIVATE of the file, GOSUMDB of the file, \n"
	called, err := os.ReadFile(filepath.Join(dir, "dist", "called"))
	if want := strings.Repeat("build"+settings+"run"+settings, 6); err != nil || string(called) != want {
		t.Errorf("go was called with %s (%v), want %s", called, err, want)
	}
}

// write makes a program and its folder.
func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// The root of the workspace is no module, so "go test ./..." fails there.
func TestContributing_NamesTheTestsOfAllModules(t *testing.T) {
	t.Parallel()
	if !regexp.MustCompile(`(?m)^go test .*\bwork\b`).MatchString(read(t, "CONTRIBUTING.md")) {
		t.Error("CONTRIBUTING.md does not say how to test all modules")
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Module.Dir}}", "work")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range workModule.FindAllStringSubmatch(read(t, "go.work"), -1) {
		if !strings.Contains(string(out), m[1]+"\n") {
			t.Errorf("go test work leaves out %s", m[1])
		}
	}
}
