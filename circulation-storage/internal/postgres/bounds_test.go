package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

func TestInTx_HasTimeOutsOnTheServer(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	for statement, deadline := range map[string]time.Duration{"5min": 0, "301s": time.Hour} {
		ctx := l.ctx()
		if deadline > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, deadline)
			defer cancel()
		}
		var got [4]string
		err := l.db.InTx(ctx, "looking", func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, `SELECT current_setting('idle_in_transaction_session_timeout'),
				current_setting('lock_timeout'),
				current_setting('statement_timeout'), current_setting('transaction_isolation')`).Scan(&got[0], &got[1], &got[2],
				&got[3])
		})
		if want := [4]string{"3s", "5s", statement, "read committed"}; err != nil || got != want {
			t.Errorf("deadline %s: got %v, %v, want %v", deadline, got, err, want)
		}
	}
	var left string
	if err := l.db.UrgentPool().QueryRow(l.ctx(), `SELECT current_setting('lock_timeout')`).Scan(&left); err != nil ||
		left != "0" {
		t.Errorf("after the transaction lock_timeout is %s, %v, want 0", left, err)
	}
}

func TestCommits_PlanAStatementOnceAConnection(t *testing.T) {
	t.Parallel()
	l := newHarness(t).reach(pgtest.URL(t))
	user := uuid.New()
	held := l.lock(user)
	for range 10 {
		l.lend(lending{loan: uuid.New(), user: user, item: l.addItem("Available", ""), lock: held, version: 1, limit: 99})
	}
	recounts := 0
	for _, conn := range l.db.UrgentPool().AcquireAllIdle(l.ctx()) {
		var once, anew int
		err := conn.QueryRow(l.ctx(), `SELECT coalesce(sum(generic_plans), 0), coalesce(sum(custom_plans), 0)
			FROM pg_prepared_statements
			WHERE strpos(statement, $1) > 0 AND strpos(statement, 'WITH ORDINALITY') > 0`, postgres.SchemaName(l.id)).Scan(&once,
			&anew)
		conn.Release()
		if err != nil || anew > 0 {
			t.Errorf("a connection planned %d of its recounts anew, %v, want none", anew, err)
		}
		recounts += once
	}
	if recounts != 10 {
		t.Errorf("%d recounts used the plan of their connection, want 10", recounts)
	}
}

func TestInTx_RunsAgainAfterTheProcessStoodStill(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	runs := 0
	err := l.db.InTx(l.ctx(), "sleeping", func(tx pgx.Tx) error {
		runs++
		if runs > 1 {
			_, err := tx.Exec(l.ctx(), `SELECT`)
			return err
		}
		var pid uint32
		if err := tx.QueryRow(l.ctx(), `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
			return err
		}
		l.untilGone(pid) // like a process that the system stopped
		_, err := tx.Exec(l.ctx(), `SELECT`)
		return err
	})
	if err != nil || runs != 2 {
		t.Errorf("ran %d times, %v, want twice", runs, err)
	}
}

// untilGone waits until PostgreSQL has ended a session.
func (l harness) untilGone(pid uint32) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.ctx(), time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for there := true; there; <-tick.C {
		if err := l.db.Pool().QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)`,
			pid).Scan(&there); err != nil {
			l.t.Fatalf("session %d goes on: %v", pid, err)
		}
	}
}

// frozen runs statements in a transaction as a commit does, and leaves it open
// until the test ends, like a process that the system stopped.
func (l harness) frozen(statement string, args ...any) {
	l.t.Helper()
	locked, wake, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	first := true
	go func() {
		defer close(ended)
		_ = l.db.InTx(l.ctx(), "freezing", func(tx pgx.Tx) error {
			if !first {
				return context.Canceled
			}
			first = false
			_, err := tx.Exec(l.ctx(), l.sql(statement), args...)
			close(locked)
			<-wake
			return err
		})
	}()
	l.t.Cleanup(func() {
		close(wake)
		<-ended
	})
	<-locked
}

func TestForceRelease_EndsTheWaitForAFrozenCommit(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	id := l.lock(uuid.New())
	l.frozen(`SELECT FROM {schema}.check_out_lock WHERE id = $1 FOR UPDATE`, id)
	if _, err := l.locks.ForceRelease(l.ctx(), id, lock.Note{Reason: "stuck"}); err != nil {
		t.Errorf("got %v, want it released when PostgreSQL has ended the frozen session", err)
	}
}

func TestForceRelease_IsRefusedWhileACommitUsesTheLock(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	id := l.lock(uuid.New())
	l.begin(`SELECT FROM {schema}.check_out_lock WHERE id = $1 FOR UPDATE`, id)
	if _, err := l.locks.ForceRelease(l.ctx(), id, lock.Note{Reason: "stuck"}); !fault.Is(err, fault.InUse) {
		t.Errorf("got %v, want %s", err, fault.InUse)
	}
}

func TestLockSettings_ChangeEndsTheWaitForAFrozenCommit(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l.frozen(`SELECT FROM {schema}.lock_settings_version FOR SHARE`)
	on := schemas.LockSettingsChange{Value: []byte(`{"checkOutLockFeatureEnabled":true}`)}
	if _, err := l.settings.Change(l.ctx(), on); err != nil {
		t.Errorf("got %v, want it changed when PostgreSQL has ended the frozen session", err)
	}
}

func TestLockSettings_WaitingChangeLetsCommitsPass(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	c := l.withoutLock(l.addItem("Available", ""))
	tx := l.begin(`SELECT FROM {schema}.lock_settings_version FOR SHARE`)
	changed := make(chan error, 1)
	go func() {
		_, err := l.settings.Change(l.ctx(), schemas.LockSettingsChange{Value: []byte(`{}`)})
		changed <- err
	}()
	l.waitUntilBlocked(1)
	l.lend(c) // after the change, which gives up its place
	if err := tx.Rollback(l.ctx()); err != nil {
		t.Fatal(err)
	}
	if err := <-changed; err != nil && !fault.Is(err, fault.InUse) {
		t.Errorf("the change: %v", err)
	}
}

func TestAcquire_TakesOverFromAFrozenHolder(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	user := uuid.New()
	id := l.lock(user)
	l.exec(`UPDATE {schema}.check_out_lock SET creation_date = creation_date - interval '2 hours' WHERE id = $1`, id)
	l.frozen(`SELECT FROM {schema}.check_out_lock WHERE id = $1 FOR UPDATE`, id)
	ctx, cancel := context.WithTimeout(l.ctx(), time.Minute)
	defer cancel()
	for {
		_, outcome, err := l.locks.Acquire(ctx, lock.Request{UserID: user, TTL: time.Second})
		if err == nil && outcome == lock.TakenOver {
			return
		}
		if !fault.Is(err, fault.LockHeld) {
			t.Fatalf("got %s, %v, want the lock taken over after it was held for a while", outcome, err)
		}
	}
}

// A second read would wait as long. What locks the tables answers none, as a frozen server does.
func TestReads_EndWithTheTimeOfTheirGroup(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l.begin(`LOCK TABLE {schema}.users, {schema}.check_out_lock IN ACCESS EXCLUSIVE MODE`)
	ctx, cancel := context.WithTimeout(l.ctx(), 30*time.Second)
	defer cancel()
	var all sync.WaitGroup // subtests would keep the tables locked until other tests have ended
	for name, read := range map[string]func(context.Context) error{
		"facts": func(ctx context.Context) error {
			_, err := l.commits.ReadCheckOutFacts(ctx, schemas.CheckOutSubjects{UserBarcode: "P-1"})
			return err
		},
		"lock": func(ctx context.Context) error {
			_, err := l.locks.Peek(ctx, lock.Request{UserID: uuid.New(), TTL: time.Second})
			return err
		},
	} {
		all.Go(func() {
			if err := read(ctx); !fault.Is(err, fault.Timeout) || ctx.Err() != nil {
				t.Errorf("%s: got %v, the caller's context %v, want %s and a caller that still waits", name, err, ctx.Err(),
					fault.Timeout)
			}
		})
	}
	all.Wait()
}

// The table is empty most of the time. A vacuum must not turn the plans of the lock
// statements into sequential scans then.
func TestLockTable_KeepsItsPagesInAVacuum(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	id := l.lock(uuid.New())
	if _, err := l.locks.Release(l.ctx(), id); err != nil {
		t.Fatal(err)
	}
	l.exec(`VACUUM {schema}.check_out_lock`)
	if n := l.count(`SELECT pg_relation_size('{schema}.check_out_lock')`); n == 0 {
		t.Error("the table has no pages, want them kept")
	}
}
