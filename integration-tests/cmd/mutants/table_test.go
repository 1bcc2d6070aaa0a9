package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The table does not rot: each text is there once, each mutation parses, and each test exists.
func TestMutations(t *testing.T) {
	t.Parallel()
	const root = "../../.."
	if len(mutations) != 50 {
		t.Errorf("there are %d mutations, want 50", len(mutations))
	}
	seen := map[string]bool{}
	for _, m := range mutations {
		text, err := m.apply(filepath.Join(root, m.file))
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), m.file, text, parser.SkipObjectResolution); err != nil {
			t.Errorf("%q in place of %q: %v", m.new, m.old, err)
		}
		if seen[string(text)] || m.promise == "" {
			t.Errorf("%q of %s is there twice or names no promise", m.old, m.file)
		}
		seen[string(text)] = true
		if !hasTest(t, filepath.Join(root, m.tests), m.test) {
			t.Errorf("%s has no test %s", m.tests, m.test)
		}
	}
}

func hasTest(t *testing.T, folder, test string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+test+"(t *testing.T) {") {
			return true
		}
	}
	return false
}

func TestJudge(t *testing.T) {
	t.Parallel()
	m := mutation{test: "TestA"}
	failure := os.ErrInvalid
	for output, tt := range map[string]struct {
		err  error
		want verdict
	}{
		"ok":                              {err: nil, want: missed},
		"ok  \tx\t0.1s [no tests to run]": {err: nil, want: broken},
		"--- FAIL: TestA (0.1s)":          {err: failure, want: caught},
		"panic: test timed out after 45s": {err: failure, want: caught},
		"# x\nx.go:1: undefined: y":       {err: failure, want: broken},
	} {
		if got := judge(m, []byte(output), tt.err); got != tt.want {
			t.Errorf("%q: got %s, want %s", output, got, tt.want)
		}
	}
}
