package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const repository = "../../.."

// copyTree copies the repository without what git ignores.
func copyTree(t *testing.T) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	tree := os.DirFS(repository)
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && isIgnored(d.Name()):
			return fs.SkipDir
		case d.IsDir():
			return root.MkdirAll(name, 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		return root.WriteFile(name, text, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// runGo runs the go command in a folder and returns what it prints.
func runGo(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func renameTo(t *testing.T, root *os.Root, path string) {
	t.Helper()
	if err := rename(root.Name(), path); err != nil {
		t.Fatal(err)
	}
}

func TestRename(t *testing.T) {
	t.Parallel()
	root := copyTree(t)
	before, _, err := readModules(root)
	if err != nil {
		t.Fatal(err)
	}
	const path = "example.org/house/locks"
	renameTo(t, root, path)

	t.Run("no file has the old path", func(t *testing.T) {
		t.Parallel()
		files, err := findFiles(root)
		if err != nil {
			t.Fatal(err)
		}
		// Folders of settings, labels and container images keep their names.
		kept := regexp.MustCompile(`/` + before + `/|` + before + `/(calls-|[a-z-]+:|\[a-z-\])`)
		for _, file := range files {
			text, err := root.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text = kept.ReplaceAll(text, nil)
			if strings.Contains(string(text), before+"/") || file == ".golangci.yml" && strings.Contains(string(text), before) {
				t.Errorf("%s has %s", file, before)
			}
		}
	})
	t.Run("every import is found", func(t *testing.T) {
		t.Parallel()
		runGo(t, root.Name(), "list", "-test", "-deps", "work")
		for name := range strings.Lines(runGo(t, root.Name(), "list", "work")) {
			if !strings.HasPrefix(name, path+"/") {
				t.Errorf("the package is named %s", name)
			}
		}
	})
	t.Run("code builds and keeps its rules", func(t *testing.T) {
		t.Parallel()
		runGo(t, root.Name(), "build", "./schemas/...", "./resource-locks/internal/locket/locketpb")
		runGo(t, root.Name(), "vet", "./config/...", "./resource-locks/mutex")
		runGo(t, filepath.Join(root.Name(), "web"), "mod", "tidy", "-diff")
		runGo(t, filepath.Join(root.Name(), "integration-tests"), "mod", "tidy", "-diff")
		out, err := exec.CommandContext(t.Context(), "gofmt", "-l", root.Name()).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("gofmt would change %s, %v", out, err)
		}
	})
	t.Run("a second rename starts from the first one's path", func(t *testing.T) {
		t.Parallel()
		twice := copyTree(t)
		renameTo(t, twice, "example.net/z")
		renameTo(t, twice, path)
		files, err := findFiles(root)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			want, errOnce := root.ReadFile(file)
			got, errTwice := twice.ReadFile(file)
			if errOnce != nil || errTwice != nil || !bytes.Equal(got, want) {
				t.Errorf("%s differs, %v, %v", file, errOnce, errTwice)
			}
		}
	})
}

func TestRename_RefusesWhatIsNoAddress(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "locks", "https://example.org/locks", "example.org/locks/", "example.org/a b"} {
		if err := rename(t.TempDir(), path); err == nil || !strings.Contains(err.Error(), "such as example.org/locks") {
			t.Errorf("%q: got %v, want an error with an example", path, err)
		}
	}
}
