package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/lock/locktest"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/database"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// crowdedStore gives each acquire and each release the company of calls for other patrons.
type crowdedStore struct{ *postgres.LockStore }

const company = 4

func (s crowdedStore) Acquire(ctx context.Context, req lock.Request) (lock.Lock, lock.Outcome, error) {
	var others sync.WaitGroup
	for range company {
		others.Go(func() {
			if l, _, err := s.LockStore.Acquire(ctx, forAnHour()); err == nil {
				_, _ = s.LockStore.Release(ctx, l.ID)
			}
		})
	}
	defer others.Wait()
	return s.LockStore.Acquire(ctx, req)
}

func (s crowdedStore) Release(ctx context.Context, id uuid.UUID) (lock.Lock, error) {
	var others sync.WaitGroup
	for range company {
		others.Go(func() { _, _ = s.LockStore.Release(ctx, uuid.New()) })
	}
	defer others.Wait()
	return s.LockStore.Release(ctx, id)
}

func (s crowdedStore) Peek(ctx context.Context, req lock.Request) (lock.Peek, error) {
	var others sync.WaitGroup
	for range company {
		others.Go(func() { _, _ = s.LockStore.Peek(ctx, forAnHour()) })
	}
	defer others.Wait()
	return s.LockStore.Peek(ctx, req)
}

func TestLockStore_InGroups(t *testing.T) {
	t.Parallel()
	for name, parameters := range map[string]map[string]string{
		"prepared":                      {},
		"not prepared":                  pooled,
		"a server with REPEATABLE READ": {"options": `-c default_transaction_isolation=repeatable\ read`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := openWith(t, parameters)
			locktest.RunStore(t, func(t *testing.T) (context.Context, lock.Store, locktest.Ager) {
				own, id := pgtest.New(t)
				return okapi.WithTenant(t.Context(), id), crowdedStore{postgres.NewLockStore(db)}, lockTable{own, id}
			})
		})
	}
}

func TestGroups_SamePatronTwice(t *testing.T) {
	t.Parallel()
	d := newGroupHarness(t)
	first, second := forAnHour(), forAnHour()
	second.UserID = first.UserID
	calls := []<-chan answer{
		d.acquire(d.ctx(), 0, forAnHour()), d.acquire(d.ctx(), 1, first), d.acquire(d.ctx(), 2, second),
		d.acquire(d.ctx(), 3, first),
	}
	d.begin()
	got := make([]answer, len(calls))
	for n, call := range calls {
		got[n] = <-call
	}
	if got[0].outcome != lock.Granted || got[1].outcome != lock.Granted || !fault.Is(got[2].err, fault.LockHeld) {
		t.Errorf("got %+v, want locks for the first of each patron", got)
	}
	if got[3].outcome != lock.Renewed || got[3].lock.ID != got[1].lock.ID {
		t.Errorf("the repeat got %+v, want the lock %s renewed", got[3], got[1].lock.ID)
	}
}

func TestGroups_ReleaseEachLockOnce(t *testing.T) {
	t.Parallel()
	d := newGroupHarness(t)
	one, two := d.lock(uuid.New()), d.lock(uuid.New())
	calls := []<-chan answer{d.release(0, one), d.release(1, two), d.release(2, one), d.release(3, uuid.New())}
	d.begin()
	for n, want := range []uuid.UUID{one, two, uuid.Nil, uuid.Nil} {
		got := <-calls[n]
		if got.lock.ID != want || fault.Is(got.err, fault.NotFound) != (want == uuid.Nil) {
			t.Errorf("release %d got %+v, want the lock %s", n, got, want)
		}
	}
}

func TestGroups_JudgeEachByItsRequest(t *testing.T) {
	t.Parallel()
	d := newGroupHarness(t)
	var requests []lock.Request
	for range 4 {
		r := forAnHour()
		if _, _, err := d.locks.Acquire(d.ctx(), r); err != nil {
			t.Fatal(err)
		}
		requests = append(requests, r)
	}
	d.exec(`UPDATE {schema}.check_out_lock SET creation_date = creation_date - interval '2 hours' WHERE user_id = $1`,
		requests[1].UserID)
	d.exec(`UPDATE {schema}.check_out_lock SET creation_date = creation_date - interval '2 minutes' WHERE user_id = $1`,
		requests[2].UserID)
	requests[1].AcquisitionID, requests[2].AcquisitionID, requests[3].AcquisitionID = uuid.New(), uuid.New(), uuid.Nil
	requests[2].TTL, requests[3].TTL = time.Minute, time.Minute
	var calls []<-chan answer
	for n, r := range requests {
		calls = append(calls, d.acquire(d.ctx(), n, r))
	}
	d.begin()
	for n, want := range []lock.Outcome{lock.Renewed, lock.TakenOver, lock.TakenOver, ""} {
		got := <-calls[n]
		if got.outcome != want || fault.Is(got.err, fault.LockHeld) != (want == "") {
			t.Errorf("call %d got %+v, want %q", n, got, want)
		}
	}
}

// Each read of a group gets the lock of its own patron, judged by its own time to live.
func TestGroups_PeekForEachRequest(t *testing.T) {
	t.Parallel()
	d := newGroupHarness(t)
	one, two := forAnHour(), forAnHour()
	ids := map[uuid.UUID]uuid.UUID{}
	for _, r := range []lock.Request{one, two} {
		l, _, err := d.locks.Acquire(d.ctx(), r)
		if err != nil {
			t.Fatal(err)
		}
		ids[r.UserID] = l.ID
	}
	d.exec(`UPDATE {schema}.check_out_lock SET creation_date = creation_date - interval '2 minutes' WHERE user_id = $1`,
		two.UserID)
	impatient := two
	impatient.TTL = time.Minute
	requests := []lock.Request{one, two, impatient, forAnHour(), one}
	got := make([]lock.Peek, len(requests))
	var calls sync.WaitGroup
	for n, r := range requests {
		calls.Go(func() {
			var err error
			if got[n], err = d.store.Peek(d.ctx(), r); err != nil {
				t.Error(err)
			}
		})
		d.untilWaiting(n, func() int { return d.store.PeeksWaiting(d.id) })
	}
	d.begin()
	calls.Wait()
	for n, free := range []bool{false, false, true, true, false} {
		seen, want := got[n], lock.Peek{Free: free}
		if !free {
			want.LockID, want.AcquisitionID, want.Age = ids[requests[n].UserID], requests[n].AcquisitionID, seen.Age
		}
		if seen != want {
			t.Errorf("read %d got %+v, want %+v", n, seen, want)
		}
	}
	if got[1].Age < 2*time.Minute || got[0].Age > time.Minute {
		t.Errorf("the ages are %s and %s", got[0].Age, got[1].Age)
	}
}

// A commit that uses one patron's lock does not hold up the others.
func TestGroups_BehindARowLock(t *testing.T) {
	t.Parallel()
	t.Run("releases", func(t *testing.T) {
		t.Parallel()
		d := newGroupHarness(t)
		used, free := d.lock(uuid.New()), d.lock(uuid.New())
		commit := d.begins(`SELECT FROM {schema}.check_out_lock WHERE id = $1 FOR UPDATE`, used)
		waits, passes, unknown := d.release(0, used), d.release(1, free), d.release(2, uuid.New())
		d.begin()
		if got := <-passes; got.err != nil || got.lock.ID != free {
			t.Errorf("a release beside the commit got %+v", got)
		}
		if got := <-unknown; !fault.Is(got.err, fault.NotFound) {
			t.Errorf("an id that is none got %+v, want %s", got, fault.NotFound)
		}
		ended, cancel := context.WithCancel(d.ctx())
		go func() {
			_, _ = d.store.Release(d.ctx(), used) // alone from the beginning
			cancel()
		}()
		d.waitUntilBlocked(2)
		if _, err := d.store.Release(d.ctx(), d.lock(uuid.New())); err != nil {
			t.Errorf("a release during the commit: %v", err)
		}
		if ended.Err() != nil {
			t.Error("the others waited until the release that leads them gave up")
		}
		commit()
		<-ended.Done()
		if got := <-waits; got.err != nil && !fault.Is(got.err, fault.NotFound) {
			t.Errorf("the release of the used lock got %+v", got)
		}
		if n := d.count(`SELECT count(*) FROM {schema}.check_out_lock`); n != 0 {
			t.Errorf("%d locks are left", n)
		}
	})
	t.Run("acquires", func(t *testing.T) {
		t.Parallel()
		d := newGroupHarness(t)
		req := forAnHour()
		used := d.lock(req.UserID)
		_ = d.begins(`DELETE FROM {schema}.check_out_lock WHERE id = $1`, used) // a commit that releases
		calls := []<-chan answer{
			d.acquire(d.ctx(), 0, req), d.acquire(d.ctx(), 1, forAnHour()), d.acquire(d.ctx(), 2, forAnHour()),
		}
		d.begin()
		for n, call := range calls {
			if got := <-call; fault.Is(got.err, fault.LockHeld) != (n == 0) || (got.err == nil) != (n > 0) {
				t.Errorf("call %d got %+v, want %s for the used lock alone", n, got, fault.LockHeld)
			}
		}
	})
	t.Run("an acquire that waits for a takeover", func(t *testing.T) {
		t.Parallel()
		d := newGroupHarness(t)
		d.begin()
		req := lock.Request{UserID: uuid.New()} // takes over at once
		used := d.lock(req.UserID)
		_ = d.begins(`SELECT FROM {schema}.check_out_lock WHERE id = $1 FOR UPDATE`, used)
		for range 20 { // the wait may be over before the others come
			waits := make(chan error, 1)
			go func() {
				_, _, err := d.store.Acquire(d.ctx(), req)
				waits <- err
			}()
			for blocked := false; !blocked && len(waits) == 0; {
				blocked = isBlocked(d.ctx(), t, lockTable{d.db, d.id})
			}
			if _, _, err := d.store.Acquire(d.ctx(), forAnHour()); err != nil {
				t.Fatal(err)
			}
			passed := len(waits) == 0
			if err := <-waits; !fault.Is(err, fault.LockHeld) {
				t.Fatalf("the takeover: %v, want %s", err, fault.LockHeld)
			}
			if passed {
				return
			}
		}
		t.Error("acquires of other patrons waited for the takeover")
	})
}

func TestGroups_OfTwoInstancesInOppositeOrder(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	impatient := map[string]string{"deadlock_timeout": "1ms"} // before the wait for a row ends
	one, two := d.on(openWith(t, impatient)), d.on(openWith(t, impatient))
	for range 20 {
		var requests []lock.Request
		for range 300 {
			requests = append(requests, forAnHour())
		}
		inOppositeOrder(t, one, two, requests,
			func(l harness, asked []lock.Request) error { return l.locks.AcquireGroup(l.ctx(), asked) })
		var ids []uuid.UUID
		locks, _, err := d.locks.List(d.ctx(), lock.Filter{Limit: len(requests)})
		if err != nil || len(locks) != len(requests) {
			t.Fatalf("%d locks, %v, want one for each patron", len(locks), err)
		}
		for _, l := range locks {
			ids = append(ids, l.ID)
		}
		inOppositeOrder(t, one, two, ids,
			func(l harness, asked []uuid.UUID) error { return l.locks.ReleaseGroup(l.ctx(), asked) })
	}
}

// inOppositeOrder accepts that one instance gives up its wait for the other on a slow host. A
// deadlock ends earlier, with another error.
func inOppositeOrder[Q any](t *testing.T, one, two harness, asked []Q, send func(harness, []Q) error) {
	t.Helper()
	reversed := slices.Clone(asked)
	slices.Reverse(reversed)
	done := make(chan error, 1)
	go func() { done <- send(one, asked) }()
	for _, err := range []error{send(two, reversed), <-done} {
		if code, _ := database.SQLState(err); err != nil && code != database.LockNotAvailable {
			t.Error(err)
		}
	}
}

// The table is almost empty most of the time. A plan made then serves for long, while the
// table may grow.
func TestGroups_UseTheIndexOfASmallTable(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l.lock(uuid.New())
	l.exec(`ANALYZE {schema}.check_out_lock`)
	tx := l.begin(postgres.GroupSettingsSQL)
	for statement, index := range map[string]string{
		postgres.DeleteLocksSQL: "Index Scan using check_out_lock_pkey",
		postgres.PeekLocksSQL:   "Index Scan using check_out_lock_user_id_key",
	} {
		plan := explainGeneric(l, tx, statement)
		if !strings.Contains(plan, index) || strings.Contains(plan, "Seq Scan") {
			t.Errorf("the plan is\n%s\nwant %s", plan, index)
		}
	}
}

// explainGeneric returns the plan that a prepared statement keeps.
func explainGeneric(l harness, tx pgx.Tx, statement string) string {
	l.t.Helper()
	parameters := []string{"NULL"}
	for strings.Contains(statement, fmt.Sprintf("$%d", len(parameters)+1)) {
		parameters = append(parameters, "NULL")
	}
	name := "p" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if _, err := tx.Exec(l.ctx(), l.sql(`PREPARE `+name+` AS `+statement)); err != nil {
		l.t.Fatal(err)
	}
	rows, _ := tx.Query(l.ctx(), `EXPLAIN EXECUTE `+name+`(`+strings.Join(parameters, ", ")+`)`,
		pgx.QueryExecModeSimpleProtocol)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		l.t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
