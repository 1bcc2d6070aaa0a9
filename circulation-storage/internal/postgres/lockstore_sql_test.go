package postgres_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/lock/locktest"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/database"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// pooled makes a connection like one through PgBouncer, whose server must be READ COMMITTED.
var pooled = map[string]string{"default_query_exec_mode": "exec", "default_transaction_isolation": "read committed"}

// openWith opens the tests' database with URL parameters of its own.
func openWith(t *testing.T, parameters map[string]string) *postgres.DB {
	u, err := url.Parse(pgtest.URL(t))
	if err != nil {
		t.Fatalf("the tests need a database that is named by a URL: %v", err)
	}
	q := u.Query()
	for name, value := range parameters {
		q.Set(name, value)
	}
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20") // pgx takes + for itself
	db, err := postgres.Open(t.Context(), database.Settings{URL: u.String()}, quiet(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// The settings of the lock statements must not reach the next statement, which may be a
// commit that has to be durable.
func TestLockStore_LeavesItsConnectionAsItWas(t *testing.T) {
	t.Parallel()
	ctx, _, table := newLockStore(t)
	db := openWith(t, map[string]string{"pool_max_conns": "1"})
	store := postgres.NewLockStore(db)
	settings := func() (got [4]string) {
		t.Helper()
		err := db.UrgentPool().QueryRow(ctx, `SELECT current_setting('lock_timeout'), current_setting('synchronous_commit'),
			current_setting('statement_timeout'), current_setting('enable_seqscan')`).Scan(&got[0], &got[1], &got[2], &got[3])
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	want := settings()
	req := lock.Request{UserID: uuid.New(), TTL: time.Hour}
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
	l, err = store.HandOver(ctx, l.ID, req)
	check("a hand-over", err)
	if _, err = store.HandOver(ctx, uuid.New(), req); !fault.Is(err, fault.NotFound) {
		t.Fatal(err)
	}
	check("a hand-over of no lock", nil)
	_, err = store.Release(ctx, l.ID)
	check("a release", err)
	ofRequest := lock.Request{UserID: req.UserID, TTL: time.Hour, AcquisitionID: uuid.New()}
	_, _, err = store.Acquire(ctx, ofRequest)
	check("a grant to a request", err)
	_, err = store.ReleaseAcquisition(ctx, ofRequest.UserID, ofRequest.AcquisitionID)
	check("a release by request", err)
	l, _, err = store.Acquire(ctx, req)
	check("a third grant", err)
	check("a group of acquires", store.AcquireGroup(ctx, []lock.Request{forAnHour(), forAnHour(), req}))
	check("a group of releases", store.ReleaseGroup(ctx, []uuid.UUID{uuid.New(), uuid.New()}))
	table.Age(ctx, t, l.ID, 2*time.Hour)
	n, err := store.Sweep(ctx, time.Minute, 10)
	check("a sweep", err)
	if n != 1 {
		t.Errorf("swept %d, want 1", n)
	}
}

func TestLockStore_JudgesAlikeInAllTimeZones(t *testing.T) {
	t.Parallel()
	_, id := pgtest.New(t)
	ctx := okapi.WithTenant(t.Context(), id)
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
		live := lock.Request{UserID: uuid.New(), TTL: time.Hour}
		dead := lock.Request{UserID: uuid.New(), TTL: 0}
		l, _, err := w.Acquire(ctx, live)
		if err != nil {
			t.Fatal(err)
		}
		if off := time.Since(l.CreatedAt).Abs(); off > 10*time.Minute {
			t.Errorf("%s dates a lock %s away from now", writer, off)
		}
		for reader, r := range stores {
			if _, _, err := w.Acquire(ctx, dead); err != nil {
				t.Fatal(err)
			}
			if _, _, err := r.Acquire(ctx, live); !fault.Is(err, fault.LockHeld) {
				t.Errorf("%s wrote a live lock, to %s it is %v", writer, reader, err)
			}
			if _, outcome, err := r.Acquire(ctx, lock.Request{UserID: dead.UserID, TTL: time.Hour}); outcome != lock.TakenOver {
				t.Errorf("%s wrote an outdated lock, to %s it is %s, %v", writer, reader, outcome, err)
			}
			if got, err := r.Get(ctx, l.ID); err != nil || locktest.Ageless(got) != locktest.Ageless(l) {
				t.Errorf("%s wrote %+v, %s reads %+v, %v", writer, l, reader, got, err)
			}
		}
	}
}

// Through PgBouncer, pgx does not prepare statements, so every parameter needs its type in
// the statement.
func TestLockStore_WithoutPreparedStatements(t *testing.T) {
	t.Parallel()
	ctx, _, table := newLockStore(t)
	store := postgres.NewLockStore(openWith(t, pooled))
	req := lock.Request{
		UserID: uuid.New(), TTL: time.Hour, AcquisitionID: uuid.New(), Holder: `'); DROP TABLE check_out_lock; --`,
		OkapiRequestID: "1/circulation",
	}
	for range 3 {
		l, _, err := store.Acquire(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		if got, total, err := store.List(ctx, lock.Filter{UserID: req.UserID, Limit: 1}); err != nil || total != 1 ||
			locktest.Ageless(got[0]) != locktest.Ageless(l) {
			t.Errorf("List = %+v, %d, %v, want %+v", got, total, err, l)
		}
		if seen, err := store.Peek(ctx, req); err != nil || seen.AcquisitionID != req.AcquisitionID {
			t.Errorf("Peek = %+v, %v", seen, err)
		}
		if err := store.Withdraw(ctx, l); err != nil {
			t.Errorf("Withdraw: %v", err)
		}
		if _, err := store.Release(ctx, l.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("the withdrawn lock is still there: %v", err)
		}
		if _, err := store.ReleaseAcquisition(ctx, req.UserID, req.AcquisitionID); !fault.Is(err, fault.NotFound) {
			t.Errorf("ReleaseAcquisition of a withdrawn lock: %v, want %q", err, fault.NotFound)
		}
	}
	l, _, err := store.Acquire(ctx, lock.Request{UserID: uuid.New(), TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	req.UserID = l.UserID
	if l, err = store.HandOver(ctx, l.ID, req); err != nil || l.Holder != req.Holder {
		t.Errorf("HandOver = %+v, %v", l, err)
	}
	table.Age(ctx, t, l.ID, 2*time.Hour)
	if n, err := store.Sweep(ctx, time.Minute, 10); err != nil || n != 1 {
		t.Errorf("swept %d, %v, want 1", n, err)
	}
}
