package locktopus

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestServer_ServesThePublishedClient runs the client of npm through Node. The lock file
// pins the client and what it needs by their checksums.
func TestServer_ServesThePublishedClient(t *testing.T) {
	t.Parallel()
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Fatalf("the published client of Locktopus runs in Node: install npm: %v", err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "npm"))); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	run := func(program string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	_, url := startTCP(t)
	if out := run("node", "session.js", strings.TrimPrefix(url, "ws://")); !strings.Contains(out, "session complete") {
		t.Errorf("the session ended early: %s", out)
	}
}
