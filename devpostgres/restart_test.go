package devpostgres

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
)

func TestRestart_AfterKillRecoversWhatWasCommitted(t *testing.T) {
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
	if !closed(ended) {
		t.Error("Done is open after Kill")
	}
	if _, err := conn.Exec(t.Context(), "COMMIT"); err == nil {
		t.Error("a backend outlived the kill")
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
	if got := text(t, s.URL(), "SELECT string_agg(word, ',') FROM kept"); got != "committed" {
		t.Errorf("got %q, want what was committed and nothing else", got)
	}
	if got := log.String(); !strings.Contains(got, "automatic recovery in progress") {
		t.Errorf("the log tells of no crash recovery:\n%s", got)
	}
	if strings.Contains(log.String(), "ended unexpectedly") {
		t.Error("a wanted end is logged as unexpected")
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
	if !closed(ended) {
		t.Error("the first server runs on")
	}
	if strings.Contains(log.String(), "ended unexpectedly") {
		t.Error("a wanted end is logged as unexpected")
	}
	if got := text(t, s.URL(), "SELECT 'up'"); got != "up" {
		t.Errorf("got %q, want up", got)
	}
}

// A start that is given up must not leave a server that holds the directory.
func TestRestart_GivenUpLeavesNoServer(t *testing.T) {
	t.Parallel()
	gaveUp, cancel := context.WithCancel(t.Context())
	log := &lineRecorder{}
	s := startServer(t, Options{Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	log.on("starting PostgreSQL", cancel) // by then the new server holds the directory
	if err := s.Restart(gaveUp); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if answersSoon(t.Context(), s.port) {
		t.Error("a server answers")
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Errorf("next Restart: %v", err)
	}
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func TestDone_TellsOfAnUnexpectedEnd(t *testing.T) {
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
