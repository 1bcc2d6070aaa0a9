package postgres_test

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/lock/locktest"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/tenant"
)

// openWith opens the tests' database with URL parameters of its own.
func openWith(t *testing.T, parameters map[string]string) *postgres.DB {
	u, err := url.Parse(pgtest.URL(t))
	if err != nil {
		t.Skip("the test database is not named by a URL")
	}
	q := u.Query()
	for name, value := range parameters {
		q.Set(name, value)
	}
	u.RawQuery = q.Encode()
	db, err := postgres.Open(t.Context(), postgres.Config{URL: u.String()}, quiet(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

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
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for blocked := false; !blocked; {
		err := table.db.Pool().QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%' AND pid <> pg_backend_pid())`,
			table.id.Schema()).Scan(&blocked)
		if err != nil {
			t.Fatalf("nothing waits for the row: %v", err)
		}
	}
}

func TestAcquireBehindACommitIsHeldSoon(t *testing.T) {
	t.Parallel()
	ctx, store, table := newLockStore(t)
	req := lock.Request{UserID: uuid.New(), TTL: 0} // would take over at once
	l, _, err := store.Acquire(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	tx := commitInFlight(ctx, t, table, l.ID)

	start := time.Now()
	_, _, err = store.Acquire(ctx, req)
	took := time.Since(start)
	if !fault.Is(err, fault.LockHeld) {
		t.Errorf("got %v, want %q", err, fault.LockHeld)
	}
	if took < 200*time.Millisecond || took > 2*time.Second {
		t.Errorf("refused after %s, want about 250ms", took)
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

func TestReleaseWaitsForACommit(t *testing.T) {
	t.Parallel()
	ctx, store, table := newLockStore(t)
	l, _, err := store.Acquire(ctx, lock.Request{UserID: uuid.New(), TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	tx := commitInFlight(ctx, t, table, l.ID)
	released := make(chan error, 1)
	go func() {
		_, err := store.Release(ctx, l.ID)
		released <- err
	}()
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
}

// A caller that leaves while its acquire is under way must learn what it got, or
// nobody could give it back.
func TestAnAcquireUnderWayIsSeenThrough(t *testing.T) {
	t.Parallel()
	ctx, store, table := newLockStore(t)
	req := lock.Request{UserID: uuid.New(), TTL: 0}
	l, _, err := store.Acquire(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	tx := commitInFlight(ctx, t, table, l.ID)
	type answer struct {
		l   lock.Lock
		err error
	}
	got := make(chan answer, 1)
	caller, leave := context.WithCancel(ctx)
	go func() {
		l, _, err := store.Acquire(caller, req)
		got <- answer{l, err}
	}()
	waitUntilBlocked(ctx, t, table)
	leave()
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	a := <-got
	if a.err != nil || a.l.ID == l.ID || a.l.ID == uuid.Nil {
		t.Errorf("got %+v, %v, want a new lock", a.l, a.err)
	}
}

// The settings of the lock statements must not reach the next statement, least of
// all a commit, which has to be durable.
func TestLockStatementsLeaveTheirConnectionAsItWas(t *testing.T) {
	t.Parallel()
	ctx, _, table := newLockStore(t)
	db := openWith(t, map[string]string{"pool_max_conns": "1"})
	store := postgres.NewLockStore(db)
	settings := func() (got [2]string) {
		t.Helper()
		err := db.Pool().QueryRow(ctx, `SELECT current_setting('lock_timeout'), current_setting('synchronous_commit')`).Scan(&got[0], &got[1])
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	want := settings()
	req := lock.Request{UserID: uuid.New(), TTL: time.Second}
	check := func(after string, err error) {
		t.Helper()
		if got := settings(); got != want || err != nil {
			t.Errorf("after %s: settings %v, error %v, want %v", after, got, err, want)
		}
	}
	l, _, err := store.Acquire(ctx, req)
	check("a grant", err)
	if _, _, err = store.Acquire(ctx, req); !fault.Is(err, fault.LockHeld) {
		t.Fatal(err)
	}
	check("a refusal", nil)
	check("a withdrawal", store.Withdraw(ctx, l))
	l, _, err = store.Acquire(ctx, req)
	check("another grant", err)
	_, err = store.Release(ctx, l.ID)
	check("a release", err)
	l, _, err = store.Acquire(ctx, req)
	check("a third grant", err)
	table.Age(ctx, t, l.ID, time.Hour)
	n, err := store.Sweep(ctx, time.Minute, 10)
	check("a sweep", err)
	if n != 1 {
		t.Errorf("swept %d, want 1", n)
	}
}

func TestSessionsInDifferentTimeZonesJudgeAlike(t *testing.T) {
	t.Parallel()
	_, id := pgtest.New(t)
	ctx := tenant.NewContext(t.Context(), id)
	stores := map[string]*postgres.LockStore{}
	for _, zone := range []string{"America/New_York", "UTC", "Pacific/Kiritimati"} {
		db := openWith(t, map[string]string{"timezone": zone})
		var got string
		if err := db.Pool().QueryRow(ctx, `SELECT current_setting('timezone')`).Scan(&got); err != nil || got != zone {
			t.Fatalf("the session's zone is %q, %v, want %q", got, err, zone)
		}
		stores[zone] = postgres.NewLockStore(db)
	}
	for writer, w := range stores {
		live := lock.Request{UserID: uuid.New(), TTL: time.Minute}
		dead := lock.Request{UserID: uuid.New(), TTL: 0}
		l, _, err := w.Acquire(ctx, live)
		if err != nil {
			t.Fatal(err)
		}
		if off := time.Since(l.CreatedAt).Abs(); off > 30*time.Second {
			t.Errorf("%s dates a lock %s away from now", writer, off)
		}
		for reader, r := range stores {
			if _, _, err := w.Acquire(ctx, dead); err != nil {
				t.Fatal(err)
			}
			if _, _, err := r.Acquire(ctx, live); !fault.Is(err, fault.LockHeld) {
				t.Errorf("%s wrote a live lock, to %s it is %v", writer, reader, err)
			}
			if _, outcome, err := r.Acquire(ctx, lock.Request{UserID: dead.UserID, TTL: time.Minute}); outcome != lock.TakenOver {
				t.Errorf("%s wrote an outdated lock, to %s it is %s, %v", writer, reader, outcome, err)
			}
			if got, err := r.Get(ctx, l.ID); err != nil || locktest.Ageless(got) != locktest.Ageless(l) {
				t.Errorf("%s wrote %+v, %s reads %+v, %v", writer, l, reader, got, err)
			}
		}
	}
}

// Behind PgBouncer statements are not prepared, so every parameter must have its
// type in the statement.
func TestLockStoreWithoutPreparedStatements(t *testing.T) {
	t.Parallel()
	ctx, _, table := newLockStore(t)
	store := postgres.NewLockStore(openWith(t, map[string]string{"default_query_exec_mode": "exec"}))
	req := lock.Request{UserID: uuid.New(), TTL: time.Second, RequestID: uuid.New(), Holder: `'); DROP TABLE check_out_lock; --`, OkapiRequestID: "1/circulation"}
	for range 3 {
		l, _, err := store.Acquire(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		if got, total, err := store.List(ctx, lock.Filter{UserID: req.UserID, Limit: 1}); err != nil || total != 1 || locktest.Ageless(got[0]) != locktest.Ageless(l) {
			t.Errorf("List = %+v, %d, %v, want %+v", got, total, err, l)
		}
		if seen, err := store.Peek(ctx, req); err != nil || seen.RequestID != req.RequestID {
			t.Errorf("Peek = %+v, %v", seen, err)
		}
		if err := store.Withdraw(ctx, l); err != nil {
			t.Errorf("Withdraw: %v", err)
		}
		if _, err := store.Release(ctx, l.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("the withdrawn lock is still there: %v", err)
		}
	}
	l, _, err := store.Acquire(ctx, lock.Request{UserID: uuid.New(), TTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	table.Age(ctx, t, l.ID, time.Hour)
	if n, err := store.Sweep(ctx, time.Minute, 10); err != nil || n != 1 {
		t.Errorf("swept %d, %v, want 1", n, err)
	}
}
