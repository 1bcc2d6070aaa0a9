package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// newDataDir returns a directory that PostgreSQL's user can reach, also if root runs the
// tests. The end of the test removes it.
func newDataDir(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{filepath.Dir(root), root} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(root, "postgresql")
}

// startDatabase starts a private database and stops it when the test ends.
func startDatabase(t *testing.T, dir string) (string, error) {
	t.Helper()
	s := settings{DataDir: dir, PgBin: os.Getenv("PG_BIN")}
	url, _, stop, err := openDatabase(t.Context(), s, io.Discard, slog.New(slog.DiscardHandler))
	if err == nil {
		t.Cleanup(func() {
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
	return url, err
}

func TestOpenDatabase_BesideAnotherClone(t *testing.T) {
	t.Parallel()
	shared, own := newDataDir(t), newDataDir(t)
	if _, err := startDatabase(t, shared); err != nil {
		t.Fatal(err)
	}
	_, err := startDatabase(t, shared)
	for _, want := range []string{shared, "DATA_DIR=", "STORAGE_PORT=", "CIRCULATION_PORT="} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("got %v, want %s in it", err, want)
		}
	}
	url, err := startDatabase(t, own)
	if err != nil {
		t.Fatalf("with DATA_DIR: %v", err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var at string
	if err := conn.QueryRow(t.Context(), "SHOW data_directory").Scan(&at); err != nil || at != own {
		t.Errorf("the data directory is %s, %v, want %s", at, err, own)
	}
}

func TestRun_NamesTheVariablesOfATakenPort(t *testing.T) {
	t.Parallel()
	url, err := startDatabase(t, newDataDir(t))
	if err != nil {
		t.Fatal(err)
	}
	port := url[strings.LastIndex(url, ":")+1 : strings.LastIndex(url, "/")]
	logFile := filepath.Join(t.TempDir(), "run.log")
	if err := os.WriteFile(logFile, []byte("of the other run\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	environ := []string{
		"DATABASE_URL=" + url, "STORAGE_PORT=" + port, "CIRCULATION_PORT=0", "SAMPLE=none", "LOG_FILE=" + logFile,
	}
	err = run(t.Context(), environ, io.Discard)
	if !strings.Contains(fmt.Sprint(err), "STORAGE_PORT=0 CIRCULATION_PORT=0 ") {
		t.Errorf("got %v, want it to name the variables of the ports", err)
	}
	if log, err := os.ReadFile(logFile); err != nil || !strings.HasPrefix(string(log), "of the other run\n") {
		t.Errorf("the log of the run that has the ports is %q, %v", log, err)
	}
}

func TestRun_ListsAllBadSettings(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), []string{"TENANT=A B", "SAMPLE=some", "STORAGE_PORT=70000", "LOG_LEVEL=loud"}, io.Discard)
	for _, want := range []string{"TENANT is A B", "SAMPLE is some", "STORAGE_PORT is 70000", "LOG_LEVEL is"} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}
