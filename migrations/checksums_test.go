package migrations_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// TestMigrations_NeverChange compares the files with checksums.txt, which has the form of
// sha256sum.
func TestMigrations_NeverChange(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("checksums.txt")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for line := range strings.Lines(string(list)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		listed[name] = sum
	}
	for folder, f := range folders {
		names, err := fs.Glob(f.files, folder+"/*")
		if err != nil || len(names) == 0 {
			t.Fatalf("found %d files, %v", len(names), err)
		}
		for _, name := range names {
			text, err := fs.ReadFile(f.files, name)
			if err != nil {
				t.Fatal(err)
			}
			if problem := compareChecksum(name, text, listed); problem != "" {
				t.Error(problem)
			}
			delete(listed, name)
		}
	}
	for name := range listed {
		t.Errorf("%s is in checksums.txt, but the file is gone: a merged migration stays", name)
	}
}

// compareChecksum returns how a file differs from the list, "" if it does not.
func compareChecksum(name string, text []byte, listed map[string]string) string {
	sum := fmt.Sprintf("%x", sha256.Sum256(text))
	switch listed[name] {
	case sum:
		return ""
	case "":
		return fmt.Sprintf("%s is not in checksums.txt. If the file is new, add this line:\n%s  %s", name, sum, name)
	}
	return name + " has changed. A merged migration never changes: restore it, and add one with the next number. " +
		"If it is not merged yet, correct its line in checksums.txt:\n" + sum + "  " + name
}

func TestMigrations_ChangesAreFound(t *testing.T) {
	t.Parallel()
	listed := map[string]string{"sql/0001_a.up.sql": fmt.Sprintf("%x", sha256.Sum256([]byte("SELECT 1")))}
	for name, tt := range map[string]struct{ file, text, says string }{
		"a file as listed": {file: "sql/0001_a.up.sql", text: "SELECT 1", says: ""},
		"a changed file":   {file: "sql/0001_a.up.sql", text: "SELECT 2", says: "has changed"},
		"a new file":       {file: "sql/0002_b.up.sql", text: "SELECT 1", says: "add this line"},
	} {
		got := compareChecksum(tt.file, []byte(tt.text), listed)
		if (got == "") != (tt.says == "") || !strings.Contains(got, tt.says) {
			t.Errorf("%s: got %q, want %q", name, got, tt.says)
		}
	}
}
