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

// dataDir returns a directory that PostgreSQL's user can reach, too, if root runs the
// tests. It is gone when the test ends.
func dataDir(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{filepath.Dir(root), root} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(root, "postgresql")
}

// open starts a private database and stops it when the test ends.
func open(t *testing.T, dir string) (string, error) {
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
	shared, own := dataDir(t), dataDir(t)
	if _, err := open(t, shared); err != nil {
		t.Fatal(err)
	}
	_, err := open(t, shared)
	for _, want := range []string{shared, "DATA_DIR=", "STORAGE_PORT=", "CIRCULATION_PORT="} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("got %v, want %s in it", err, want)
		}
	}
	url, err := open(t, own)
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
		t.Errorf("the data stands in %s, %v, want %s", at, err, own)
	}
}

func TestRun_NamesTheVariablesOfATakenPort(t *testing.T) {
	t.Parallel()
	url, err := open(t, dataDir(t))
	if err != nil {
		t.Fatal(err)
	}
	port := url[strings.LastIndex(url, ":")+1 : strings.LastIndex(url, "/")]
	err = run(t.Context(), []string{"DATABASE_URL=" + url, "STORAGE_PORT=" + port, "CIRCULATION_PORT=0", "SAMPLE=none"}, io.Discard, io.Discard)
	if !strings.Contains(fmt.Sprint(err), "STORAGE_PORT and CIRCULATION_PORT") {
		t.Errorf("got %v, want it to name the variables of the ports", err)
	}
}
