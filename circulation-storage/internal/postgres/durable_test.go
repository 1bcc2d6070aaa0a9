package postgres_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/devpostgres"
	"checkoutlock/schemas/fault"
)

// Without a flush by the WAL writer, only a commit that waits for the disk survives a crash.
var noBackgroundFlush = map[string]string{"wal_writer_delay": "10s"}

func TestReleaseDurably_FencesACommitAfterACrash(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		before func(l harness, lock uuid.UUID) // the durable release
		want   fault.Code                      // of the durable release
	}{
		{name: "a lock that is held", before: func(harness, uuid.UUID) {}, want: ""},
		{name: "a lock that a plain release removed before", want: fault.NotFound, before: func(l harness, lock uuid.UUID) {
			if _, err := l.locks.Release(l.ctx(), lock); err != nil {
				l.t.Fatal(err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l, server := newHarnessOnOwnServer(t, noBackgroundFlush)
			c := l.withLock(uuid.New(), l.addItem("Available", ""))
			l.addItem("Available", "") // its COMMIT writes the lock to disk
			tt.before(l, c.lock)
			if _, err := l.locks.ReleaseDurably(l.ctx(), c.lock); fault.CodeOf(err) != tt.want {
				t.Fatalf("releasing: %v, want %q", err, tt.want)
			}
			crash(t, server)
			if _, _, err := l.send(c); !fault.Is(err, fault.LockLost) {
				t.Errorf("a commit after the crash: %v, want %s", err, fault.LockLost)
			}
			l.wantUntouched(c.item)
		})
	}
}

func crash(t *testing.T, server *devpostgres.Server) {
	t.Helper()
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// setStandby makes every COMMIT wait for a standby of that name; "" for none.
func (l harness) setStandby(name string) {
	l.t.Helper()
	l.exec(`ALTER SYSTEM SET synchronous_standby_names = '` + name + `'`)
	l.exec(`SELECT pg_reload_conf()`)
	// The checkpointer releases the sessions that wait, and each session reads the file
	// when it is idle: a new one has the current value.
	l.untilCount(1, `SELECT count(*) FROM pg_file_settings WHERE name = 'synchronous_standby_names' AND setting = '`+name+
		`' AND applied`)
	if name != "" {
		l.untilCommitsWait()
	}
}

// untilCommitsWait commits probes until one waits for the standby. Commits wait only after
// the checkpointer has read the file, which no view shows.
func (l harness) untilCommitsWait() {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.ctx(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		done := make(chan error, 1)
		go func() {
			_, err := l.db.Pool().Exec(ctx, `SELECT pg_logical_emit_message(true, 'probe', '')`)
			done <- err
		}()
		for committed := false; !committed; {
			select {
			case err := <-done:
				if err != nil {
					l.t.Fatal(err)
				}
				committed = true
			default:
				if l.count(waitForStandby) == 1 {
					l.exec(`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)
					if err := <-done; err != nil {
						l.t.Fatal(err)
					}
					return
				}
			}
		}
	}
	l.t.Fatal("no commit waits for the standby")
}

const waitForStandby = `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`

// cancelled runs f, cancels its wait for the standby on the server, and returns f's
// error.
func (l harness) cancelled(f func() error) error {
	l.t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	l.untilCount(1, waitForStandby)
	l.exec(`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)
	return <-done
}

func TestCheckOut_WhileTheSynchronousStandbyIsGone(t *testing.T) {
	t.Parallel()
	l, _ := newHarnessOnOwnServer(t, nil)
	c := l.withLock(uuid.New(), l.addItem("Available", ""))
	l.setStandby("gone")
	lend := func() error { _, _, err := l.send(c); return err }
	settle := func() error { _, err := l.commits.DurableLoan(l.ctx(), c.loan); return err }
	for _, tt := range []struct {
		name string
		call func() error
	}{
		{name: "a commit", call: lend},
		{name: "a repeated commit", call: lend},
		{name: "a look that settles the outcome", call: settle},
	} {
		if err := l.cancelled(tt.call); !fault.Is(err, fault.Timeout) {
			t.Errorf("%s: got %v, want %s", tt.name, err, fault.Timeout)
		}
		// So only a read that waits for the standby settles it.
		if n := l.count(`SELECT count(*) FROM {schema}.loan WHERE id = $1`, c.loan); n != 1 {
			t.Errorf("%s: %d loans are visible, want 1", tt.name, n)
		}
	}
	l.setStandby("")
	if loan, err := l.commits.DurableLoan(l.ctx(), c.loan); err != nil || field(t, loan, "id") != c.loan.String() {
		t.Errorf("with the standby back: got %s, %v, want the loan", loan, err)
	}
	if result, outcome, err := l.send(c); err != nil || outcome != commit.Repeated ||
		field(t, result.Loan, "id") != c.loan.String() {
		t.Errorf("the repeat with the standby back: %s %s, %v, want the same loan", outcome, result.Loan, err)
	}
}

func TestCheckOut_CommitsThoughItsRequestEnds(t *testing.T) {
	t.Parallel()
	l, _ := newHarnessOnOwnServer(t, nil)
	c := l.withLock(uuid.New(), l.addItem("Available", ""))
	parsed, err := commit.ParseCheckOut(c.body())
	if err != nil {
		t.Fatal(err)
	}
	l.setStandby("gone")
	ctx, leave := context.WithCancel(l.ctx())
	done := make(chan error, 1)
	go func() {
		_, err := l.commits.CheckOut(ctx, parsed)
		done <- err
	}()
	l.untilCount(1, waitForStandby)
	leave()
	l.setStandby("")
	if err := <-done; err != nil {
		t.Errorf("got %v, want the commit confirmed", err)
	}
}

// A primary that was cut off from its standby does not know what its successor
// committed. So it must not deny a loan.
func TestDurableLoan_IsUnknownWithoutALoanWhileTheSynchronousStandbyIsGone(t *testing.T) {
	t.Parallel()
	l, _ := newHarnessOnOwnServer(t, nil)
	l.setStandby("gone")
	settle := func() error { _, err := l.commits.DurableLoan(l.ctx(), uuid.New()); return err }
	if err := l.cancelled(settle); !fault.Is(err, fault.Timeout) {
		t.Errorf("got %v, want %s", err, fault.Timeout)
	}
	l.setStandby("")
	if err := settle(); !fault.Is(err, fault.NotFound) {
		t.Errorf("with the standby back: got %v, want %s", err, fault.NotFound)
	}
}

func TestDurableLoan_IsNotFoundWithoutALoan(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	var loan json.RawMessage
	var err error
	if loan, err = l.commits.DurableLoan(l.ctx(), uuid.New()); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %s, %v, want %s", loan, err, fault.NotFound)
	}
}
