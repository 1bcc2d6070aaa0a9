package database_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"checkoutlock/database"
	"checkoutlock/devpostgres/testserver"
	"checkoutlock/schemas/fault"
)

func TestLack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ code, severity, want string }{
		{code: "53100", severity: "ERROR", want: "the database cannot write: no space left"},
		{code: "53200", severity: "ERROR", want: "the database cannot write: out of memory"},
		{code: "53400", severity: "ERROR", want: "the database cannot write: a limit of its configuration is reached"},
		{code: "58030", severity: "ERROR", want: "the database cannot write: its disk fails"},
		{code: "53100", severity: "FATAL"},
		{code: "53100", severity: "PANIC"}, // as it writes the record of a COMMIT
		{code: "58030", severity: "PANIC"},
	} {
		err := &pgconn.PgError{Code: tt.code, SeverityUnlocalized: tt.severity}
		if got := database.Lack(err); got != tt.want {
			t.Errorf("%s %s: got %q, want %q", tt.severity, tt.code, got, tt.want)
		}
		if got, want := database.ConnectionLost(err), tt.want == ""; got != want {
			t.Errorf("%s %s: the connection is lost: %t, want %t", tt.severity, tt.code, got, want)
		}
		got := database.ToFault("lending", err)
		if !fault.Is(got, fault.Unavailable) || fault.ChangedNothing(got) != (tt.want != "") {
			t.Errorf("%s %s: got %v, which changed nothing: %t", tt.severity, tt.code, got, fault.ChangedNothing(got))
		}
	}
}

// PostgreSQL refuses connections to a database with ALLOW_CONNECTIONS false by the code of a standby.
func TestToFault_CallsAStandbyAloneReadOnly(t *testing.T) {
	t.Parallel()
	for severity, want := range map[string]bool{"ERROR": true, "FATAL": false} {
		err := database.ToFault("lending", &pgconn.PgError{Code: "55000", SeverityUnlocalized: severity})
		if got := strings.Contains(err.Error(), "read-only"); got != want || !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: got %v, want it called read-only: %t", severity, err, want)
		}
	}
}

// lines is a log that a test reads while others write.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// openLogged opens a database whose log the test reads.
func openLogged(t *testing.T, url string) (*database.DB, *lines) {
	t.Helper()
	log := &lines{}
	cfg := database.Settings{URL: url, MaxConns: 4}
	db, err := database.Open(t.Context(), cfg, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db, log
}

// untilReady waits until the database can be used, or cannot.
func untilReady(t *testing.T, db *database.DB, ready bool) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		_, err := db.CheckServer(t.Context())
		if (err == nil) == ready {
			return err
		}
		if ctx.Err() != nil {
			t.Fatalf("readiness: %v, want it: %t", err, ready)
		}
	}
}

// After the only refusal no caller comes any more.
func TestDB_NoticesTheEndOfAFullDiskWithoutCallers(t *testing.T) {
	t.Parallel()
	d := testserver.NewSmallDisk(t)
	db, log := openLogged(t, d.URL)
	for range 2 {
		d.Fill(t)
		_, err := db.Urgent.Exec(t.Context(), `CREATE TABLE grown AS SELECT repeat('x', 1000) FROM generate_series(1, 1000)`)
		if database.Lack(err) == "" {
			t.Fatalf("got %v, want a refusal", err)
		}
		if err := untilReady(t, db, false); err.Error() != "the database cannot write: no space left" {
			t.Errorf("readiness: %v", err)
		}
		d.Free(t)
		_ = untilReady(t, db, true)
	}
	if begins, ends := log.count("level=ERROR"), log.count("the database can write again"); begins != 2 || ends != 2 {
		t.Errorf("%d begins and %d ends are logged, want 2 of each", begins, ends)
	}
}

func TestDB_RefusalOfOneStatementIsNoOutage(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"53100", "53200", "53400", "58030"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			db, log := openLogged(t, testserver.URL(t))
			for range 3 {
				_, err := db.Urgent.Exec(t.Context(), `DO $$ BEGIN RAISE 'refused' USING ERRCODE = '`+code+`'; END $$`)
				if database.Lack(err) == "" {
					t.Errorf("got %v, want a refusal", err)
				}
			}
			_ = untilReady(t, db, true)
			db.Close() // waits for the probe
			if n := log.count("level=ERROR"); n > 0 {
				t.Errorf("%d errors are logged, want none", n)
			}
		})
	}
}
