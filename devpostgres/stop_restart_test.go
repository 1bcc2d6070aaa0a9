package devpostgres

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"testing"
)

func TestRestart_RecoversCommittedData(t *testing.T) {
	t.Parallel()
	log := &lineRecorder{}
	s := startServer(t, Options{Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	before, ended := s.URL(), s.Done()
	conn := connect(t, s.URL())
	mustExec(t, conn, "CREATE TABLE kept (word text)")
	mustExec(t, conn, "INSERT INTO kept VALUES ('committed')")
	mustExec(t, conn, "BEGIN")
	mustExec(t, conn, "INSERT INTO kept VALUES ('not committed')")

	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if !isClosed(ended) {
		t.Error("Done is open after Kill")
	}
	if _, err := conn.Exec(t.Context(), "COMMIT"); err == nil {
		t.Error("a backend still runs after the kill")
	}
	if err := s.Kill(); err != nil {
		t.Errorf("second Kill: got %v, want nil", err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.URL(); got != before {
		t.Errorf("URL after Restart: got %s, want %s", got, before)
	}
	if got := queryText(t, s.URL(), "SELECT string_agg(word, ',') FROM kept"); got != "committed" {
		t.Errorf("got %q, want only committed data", got)
	}
	if got := log.String(); !strings.Contains(got, "automatic recovery in progress") {
		t.Errorf("the log has no crash recovery:\n%s", got)
	}
	if strings.Contains(log.String(), "ended unexpectedly") {
		t.Error("a requested end is logged as unexpected")
	}
}

func TestRestart_StopsARunningServerFirst(t *testing.T) {
	t.Parallel()
	log := &lineRecorder{}
	s := startServer(t, Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	ended := s.Done()
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !isClosed(ended) {
		t.Error("the first server still runs")
	}
	if strings.Contains(log.String(), "ended unexpectedly") {
		t.Error("a requested end is logged as unexpected")
	}
	if got := queryText(t, s.URL(), "SELECT 'up'"); got != "up" {
		t.Errorf("got %q, want up", got)
	}
}

// A canceled start must not leave a server on the directory.
func TestRestart_CanceledLeavesNoServer(t *testing.T) {
	t.Parallel()
	log := &lineRecorder{}
	s := startServer(t, Options{Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	restart := func() error {
		gaveUp, cancel := context.WithCancel(t.Context())
		defer cancel()
		log.callOn("starting PostgreSQL", cancel) // at that time the new server uses the directory
		return s.Restart(gaveUp)
	}
	err := restart()
	for err == nil { // the server was ready before the line was read
		err = restart()
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if probeServer(t.Context(), s.port) {
		t.Error("a server answers")
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Errorf("next Restart: %v", err)
	}
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func TestDone_LogsAnUnexpectedEnd(t *testing.T) {
	t.Parallel()
	log := &lineRecorder{}
	s := startServer(t, Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	p, err := os.FindProcess(readPidFile(s.cluster.dir).pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	if got := log.String(); !strings.Contains(got, "ended unexpectedly") {
		t.Errorf("log: got %q, want the unexpected end", got)
	}
}

func TestStop_ThrowAwayLeavesNothing(t *testing.T) {
	t.Parallel()
	log := &lineRecorder{}
	s := startServer(t, Options{Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	dir := s.scratch.dir
	connect(t, s.URL()) // an open connection does not delay Stop

	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if !isClosed(s.Done()) {
		t.Error("Done is open after Stop")
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("directory after Stop: got %v, want it removed", err)
	}
	if probeServer(t.Context(), s.port) {
		t.Error("the server still answers")
	}
	if got := log.String(); !strings.Contains(got, "received immediate shutdown request") {
		t.Errorf("the server did not shut down immediately:\n%s", got)
	}
	if err := s.Stop(); err != nil {
		t.Errorf("second Stop: got %v, want nil", err)
	}
	if err := s.Restart(t.Context()); err == nil {
		t.Error("Restart after Stop: got nil, want an error")
	}
}
