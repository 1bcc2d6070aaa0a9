package devpostgres

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStop_ThrowAwayLeavesNothing(t *testing.T) {
	t.Parallel()
	log := &lineRecorder{}
	s := startServer(t, Options{Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	dir := s.scratch.dir
	connect(t, s.URL()) // an open connection does not hold it up

	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if !closed(s.Done()) {
		t.Error("Done is open after Stop")
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("directory after Stop: got %v, want it gone", err)
	}
	if answersSoon(t.Context(), s.port) {
		t.Error("the server still answers")
	}
	if got := log.String(); !strings.Contains(got, "received immediate shutdown request") {
		t.Errorf("what is thrown away is written out first:\n%s", got)
	}
	if err := s.Stop(); err != nil {
		t.Errorf("second Stop: got %v, want nil", err)
	}
	if err := s.Restart(t.Context()); err == nil {
		t.Error("Restart after Stop: got nil, want an error")
	}
}

func TestStart_SameDirectoryKeepsData(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(reachable(t), "made", "on the way", "pg")
	log := &lineRecorder{}
	first := startServer(t, Options{DataDir: dir, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	mustExec(t, connect(t, first.URL()), "CREATE TABLE kept AS SELECT 'still here' AS word")
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	if got := log.String(); !strings.Contains(got, "database system is shut down") || strings.Contains(got, "immediate shutdown request") {
		t.Errorf("the next start has to recover:\n%s", got)
	}

	second := startServer(t, Options{DataDir: dir})
	if got := text(t, second.URL(), "SELECT word FROM kept"); got != "still here" {
		t.Errorf("got %q, want the data of the first run", got)
	}
	fi, err := os.Stat(filepath.Join(dir, passwordFile))
	if err != nil {
		t.Fatal(err)
	}
	if got := fi.Mode().Perm(); got != 0o600 {
		t.Errorf("password file: got mode %o, want 600", got)
	}
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the data directory: got %v, %v, want nothing", entries, err)
	}
}
