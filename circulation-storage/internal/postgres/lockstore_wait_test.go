package postgres_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/schemas/fault"
)

// commitInFlight locks the row as a check-out's commit does, until the test ends
// it.
func commitInFlight(ctx context.Context, t *testing.T, table lockTable, id uuid.UUID) pgx.Tx {
	tx, err := table.db.Pool().Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(ctx)) })
	if _, err := tx.Exec(ctx, `SELECT FROM `+table.name()+` WHERE id = $1 FOR UPDATE`, id); err != nil {
		t.Fatal(err)
	}
	return tx
}

// waitUntilBlocked returns when a statement waits for a row of the table.
func waitUntilBlocked(ctx context.Context, t *testing.T, table lockTable) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for blocked := false; !blocked; <-tick.C {
		blocked = isBlocked(ctx, t, table)
	}
}

func isBlocked(ctx context.Context, t *testing.T, table lockTable) (blocked bool) {
	t.Helper()
	err := table.db.Pool().QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity
		WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%' AND pid <> pg_backend_pid())`,
		postgres.SchemaName(table.id)).Scan(&blocked)
	if err != nil {
		t.Fatalf("looking whether a statement waits for the row: %v", err)
	}
	return blocked
}

// wantQuickest returns how long the quickest of ten calls takes, and wants less than limit: the
// machine may stand still during some of them. It ends with the first that is quick enough.
func wantQuickest(t *testing.T, limit time.Duration, call func()) time.Duration {
	t.Helper()
	quickest := time.Duration(math.MaxInt64)
	for range 10 {
		start := time.Now()
		call()
		if quickest = min(quickest, time.Since(start)); quickest < limit {
			return quickest
		}
	}
	t.Errorf("the quickest of ten calls took %s, want less than %s", quickest, limit)
	return quickest
}

func TestAcquire_DuringACommitIsHeldSoon(t *testing.T) {
	t.Parallel()
	ctx, store, table := newLockStore(t)
	req := lock.Request{UserID: uuid.New(), TTL: 0} // would take over at once
	l, _, err := store.Acquire(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	tx := commitInFlight(ctx, t, table, l.ID)

	quickest := wantQuickest(t, time.Second, func() {
		if _, _, err = store.Acquire(ctx, req); !fault.Is(err, fault.LockHeld) {
			t.Fatalf("got %v, want %q", err, fault.LockHeld)
		}
	})
	if quickest < 200*time.Millisecond {
		t.Errorf("refused after %s, want about 250ms", quickest)
	}
	if _, err := store.Peek(ctx, req); err != nil {
		t.Errorf("a plain look behind a commit: %v", err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if _, outcome, err := store.Acquire(ctx, req); outcome != lock.TakenOver {
		t.Errorf("after the commit: %s, %v", outcome, err)
	}
}

func TestRelease_WaitsForACommit(t *testing.T) {
	t.Parallel()
	for name, release := range map[string]func(context.Context, *postgres.LockStore, lock.Lock) error{
		"by id": func(ctx context.Context, store *postgres.LockStore, l lock.Lock) error {
			_, err := store.Release(ctx, l.ID)
			return err
		},
		"by request": func(ctx context.Context, store *postgres.LockStore, l lock.Lock) error {
			_, err := store.ReleaseAcquisition(ctx, l.UserID, l.AcquisitionID)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, store, table := newLockStore(t)
			l, _, err := store.Acquire(ctx, lock.Request{UserID: uuid.New(), TTL: time.Hour, AcquisitionID: uuid.New()})
			if err != nil {
				t.Fatal(err)
			}
			tx := commitInFlight(ctx, t, table, l.ID)
			released := make(chan error, 1)
			go func() { released <- release(ctx, store, l) }()
			waitUntilBlocked(ctx, t, table)
			select {
			case err := <-released:
				t.Fatalf("released during the commit: %v", err)
			case <-time.After(400 * time.Millisecond): // longer than an acquire would wait
			}
			if err := tx.Commit(ctx); err != nil {
				t.Fatal(err)
			}
			if err := <-released; err != nil {
				t.Errorf("release after the commit: %v", err)
			}
		})
	}
}

// A caller that leaves during its acquire must learn what it got, because only the caller
// can release it.
func TestAcquire_FinishesAfterItsCallerLeft(t *testing.T) {
	t.Parallel()
	ctx, store, table := newLockStore(t)
	req := lock.Request{UserID: uuid.New(), TTL: 0}
	l, _, err := store.Acquire(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	var got acquired
	for range 100 { // the acquire may give up before the commit
		if got = acquireAndLeave(ctx, t, store, table, l.ID, req); !fault.Is(got.err, fault.LockHeld) {
			break
		}
	}
	if got.err != nil || got.l.ID == l.ID || got.l.ID == uuid.Nil {
		t.Errorf("got %+v, %v, want a new lock", got.l, got.err)
	}
}

type acquired struct {
	l   lock.Lock
	err error
}

// acquireAndLeave returns the answer to a caller that leaves while its acquire waits for a
// commit that has the lock's row.
func acquireAndLeave(ctx context.Context, t *testing.T, store *postgres.LockStore, table lockTable, held uuid.UUID,
	req lock.Request,
) acquired {
	tx := commitInFlight(ctx, t, table, held)
	caller, leave := context.WithCancel(ctx)
	defer leave()
	got := make(chan acquired, 1)
	go func() {
		l, _, err := store.Acquire(caller, req)
		got <- acquired{l, err}
	}()
	for blocked := false; !blocked && len(got) == 0; {
		blocked = isBlocked(ctx, t, table)
	}
	leave()
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	return <-got
}

// All that find a lock outdated try to take it over, and one of them gets it.
func TestAcquire_OneOfManyTakesAnOutdatedLockOver(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	user := uuid.New()
	l.lock(user)
	granted := 0
	for granted == 0 { // all may give up before the row is free
		l.exec(`UPDATE {schema}.check_out_lock SET creation_date = creation_date - interval '2 hours'`)
		row := l.begin(`SELECT FROM {schema}.check_out_lock FOR UPDATE`)
		const callers = 3
		ended := make(chan error, callers)
		for range callers {
			store := postgres.NewLockStore(l.db)
			go func() {
				_, _, err := store.Acquire(l.ctx(), lock.Request{UserID: user, TTL: time.Hour})
				ended <- err
			}()
		}
		for blocked := 0; blocked < callers && len(ended) == 0; {
			blocked = l.count(`SELECT count(*) FROM pg_stat_activity
				WHERE wait_event_type = 'Lock' AND query LIKE '%{schema}%' AND pid <> pg_backend_pid()`)
		}
		if err := row.Rollback(l.ctx()); err != nil {
			t.Fatal(err)
		}
		for range callers {
			switch err := <-ended; {
			case err == nil:
				granted++
			case !fault.Is(err, fault.LockHeld):
				t.Fatal(err)
			}
		}
	}
	if granted != 1 {
		t.Errorf("the lock was granted to %d callers, want one", granted)
	}
}

func TestSweep_LeavesALockThatIsTakenOverMeanwhile(t *testing.T) {
	t.Parallel()
	ctx, store, table := newLockStore(t)
	l, _, err := store.Acquire(ctx, lock.Request{UserID: uuid.New(), TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	table.Age(ctx, t, l.ID, 2*time.Hour)
	tx := commitInFlight(ctx, t, table, l.ID)
	taken := uuid.New()
	if _, err := tx.Exec(ctx, `UPDATE `+table.name()+` SET id = $1, creation_date = clock_timestamp()`,
		taken); err != nil {
		t.Fatal(err)
	}
	swept := make(chan error, 1)
	go func() {
		_, err := store.Sweep(ctx, time.Minute, 10)
		swept <- err
	}()
	for blocked := false; !blocked && len(swept) == 0; {
		blocked = isBlocked(ctx, t, table)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-swept; err != nil {
		t.Error(err)
	}
	if _, err := store.Get(ctx, taken); err != nil {
		t.Errorf("the lock taken over meanwhile is gone: %v", err)
	}
}
