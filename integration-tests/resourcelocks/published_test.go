package resourcelocks

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"checkoutlock/integration-tests/mutualtls"
)

// runTimeout bounds a program that may download and compile what it needs.
const runTimeout = 5 * time.Minute

// runIn runs a program in a folder and returns what it prints.
func runIn(t *testing.T, dir string, environ []string, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environ...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestPublishedClient_OfLocket runs the published Go client and its runners against two
// instances. They are a module of their own, because they require other versions of
// libraries.
func TestPublishedClient_OfLocket(t *testing.T) {
	t.Parallel()
	tls, err := mutualtls.WriteFiles(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	databaseURL := createDatabase(t)
	mutual := []string{
		"LOCKET_PLAINTEXT=false", "LOCKET_TLS_CERT=" + tls.Cert, "LOCKET_TLS_KEY=" + tls.Key, "LOCKET_TLS_CA=" + tls.Cert,
	}
	first, second := startInstance(t, databaseURL, mutual...), startInstance(t, databaseURL, mutual...)
	out := runIn(t, filepath.Join("..", "locketclient"), []string{
		"GOWORK=off", "LOCKET_ADDRESSES=" + first["locket"] + " " + second["locket"],
		"LOCKET_CA=" + tls.Cert, "LOCKET_CERT=" + tls.Cert, "LOCKET_KEY=" + tls.Key,
	}, "go", "test", "-vet=off", "-count=1", "-v", ".")
	if strings.Contains(out, "--- SKIP") || !strings.Contains(out, "--- PASS: TestLockRunner_HandsOver") {
		t.Errorf("the tests of the client did not run:\n%s", out)
	}
}

// TestPublishedClient_OfLocktopus runs the client of npm through Node against two instances.
// The lock file pins the client and what it needs by their checksums.
func TestPublishedClient_OfLocktopus(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the published client of Locktopus runs in Node: install npm: %v", err)
		}
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "locktopusclient"))); err != nil {
		t.Fatal(err)
	}
	runIn(t, dir, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	databaseURL := createDatabase(t)
	hostOf := func(at addresses) string { return strings.TrimPrefix(at["locktopus"], "http://") }
	first, second := startInstance(t, databaseURL), startInstance(t, databaseURL)
	if out := runIn(t, dir, nil, "node", "session.js", hostOf(first), hostOf(second)); !strings.Contains(out,
		"session complete") {
		t.Errorf("the session ended early: %s", out)
	}
}

// TestMutexClient_IsImportedFromOutside runs the client's example as a program of another
// module, which replaces nothing but the client and downloads nothing.
func TestMutexClient_IsImportedFromOutside(t *testing.T) {
	t.Parallel()
	client, err := filepath.Abs(filepath.Join("..", "..", "resource-locks", "mutex"))
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile(filepath.Join(client, "example_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	program := strings.NewReplacer("package mutex_test", "package main", "func Example()",
		"func main()").Replace(string(example))
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	const path = "checkoutlock/resource-locks/mutex"
	alone := []string{"GOWORK=off", "GOFLAGS=", "GOPROXY=off", "MUTEX_URL=" + startInstance(t, createDatabase(t))["mutex"]}
	runIn(t, dir, alone, "go", "mod", "init", "example.org/editor")
	runIn(t, dir, alone, "go", "mod", "edit", "-require="+path+"@v0.0.0", "-replace="+path+"="+client)
	want := "ann edits\nbob reads, because it is in use by ann\nann has left\n"
	if got := runIn(t, dir, alone, "go", "run", "."); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
