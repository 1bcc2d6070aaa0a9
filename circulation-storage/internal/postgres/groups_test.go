package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/lock/locktest"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/schemas/fault"
)

// groupHarness is a desk whose test decides which calls form a group. It holds all connections
// for lending until they have arrived.
type groupHarness struct {
	harness
	store *postgres.LockStore
	held  []*pgxpool.Conn
}

func newGroupHarness(t *testing.T) *groupHarness {
	t.Helper()
	d := &groupHarness{harness: newHarness(t)}
	db := openWith(t, map[string]string{"pool_max_conns": "16"})
	d.store = postgres.NewLockStore(db)
	for range db.UrgentPool().Config().MaxConns {
		conn, err := db.UrgentPool().Acquire(d.ctx())
		if err != nil {
			t.Fatal(err)
		}
		d.held = append(d.held, conn)
	}
	t.Cleanup(d.begin)
	return d
}

// begin lets the group begin.
func (d *groupHarness) begin() {
	for _, conn := range d.held {
		conn.Release()
	}
	d.held = nil
}

// answer is what a call of a group got.
type answer struct {
	lock    lock.Lock
	outcome lock.Outcome
	err     error
}

// acquire starts an acquire that becomes number n of its group, counted from 0.
func (d *groupHarness) acquire(ctx context.Context, n int, req lock.Request) <-chan answer {
	d.t.Helper()
	got := make(chan answer, 1)
	go func() {
		l, outcome, err := d.store.Acquire(ctx, req)
		got <- answer{l, outcome, err}
	}()
	d.untilWaiting(n, func() int { acquires, _ := d.store.CallsWaiting(d.id); return acquires })
	return got
}

// release starts a release that becomes number n of its group.
func (d *groupHarness) release(n int, id uuid.UUID) <-chan answer {
	d.t.Helper()
	got := make(chan answer, 1)
	go func() {
		l, err := d.store.Release(d.ctx(), id)
		got <- answer{lock: l, err: err}
	}()
	d.untilWaiting(n, func() int { _, releases := d.store.CallsWaiting(d.id); return releases })
	return got
}

func (d *groupHarness) untilWaiting(n int, count func() int) {
	d.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for count() != n {
		if time.Now().After(deadline) {
			d.t.Fatalf("%d calls wait, want %d", count(), n)
		}
	}
}

func forAnHour() lock.Request {
	return lock.Request{
		UserID: uuid.New(), TTL: time.Hour, AcquisitionID: uuid.New(), Holder: "kiosk", OkapiRequestID: "1/circulation",
	}
}

func TestGroups_OneTransactionServesAll(t *testing.T) {
	t.Parallel()
	d := newGroupHarness(t)
	var calls []<-chan answer
	var want []lock.Request
	for n := range 5 {
		want = append(want, forAnHour())
		calls = append(calls, d.acquire(d.ctx(), n, want[n]))
	}
	d.begin()
	ids := map[uuid.UUID]bool{}
	for n, call := range calls {
		got := <-call
		if got.err != nil || got.outcome != lock.Granted || got.lock.UserID != want[n].UserID ||
			got.lock.AcquisitionID != want[n].AcquisitionID || ids[got.lock.ID] {
			t.Errorf("call %d got %+v, want a new lock of its patron", n, got)
		}
		if stored, err := d.locks.Get(d.ctx(), got.lock.ID); err != nil ||
			locktest.Ageless(stored) != locktest.Ageless(got.lock) {
			t.Errorf("stored is %+v, %v, want %+v", stored, err, got.lock)
		}
		ids[got.lock.ID] = true
	}
	if n := d.count(`SELECT count(DISTINCT xmin::text) FROM {schema}.check_out_lock`); n != 1 {
		t.Errorf("%d transactions, want 1", n)
	}
}

func TestGroups_MemberThatLeaves(t *testing.T) {
	t.Parallel()
	d := newGroupHarness(t)
	leaderCtx, leaderLeaves := context.WithCancel(d.ctx())
	memberCtx, memberLeaves := context.WithCancel(d.ctx())
	defer leaderLeaves()
	defer memberLeaves()
	leader := d.acquire(leaderCtx, 0, forAnHour())
	member := d.acquire(memberCtx, 1, forAnHour())
	stays := d.acquire(d.ctx(), 2, forAnHour())
	memberLeaves()
	if got := <-member; !errors.Is(got.err, context.Canceled) {
		t.Errorf("the member got %+v, want %v", got, context.Canceled)
	}
	leaderLeaves()
	if got := <-leader; !errors.Is(got.err, context.Canceled) {
		t.Errorf("the leader got %+v, want %v", got, context.Canceled)
	}
	d.begin()
	if got := <-stays; got.err != nil {
		t.Errorf("the one that stays got %+v, want its lock", got)
	}
	if n := d.count(`SELECT count(*) FROM {schema}.check_out_lock`); n != 1 {
		t.Errorf("%d locks, want that of the one that stays", n)
	}
}

// onInsert runs PL/pgSQL before each insert of a lock. It may use the sequences first and
// second, which no rollback resets.
func (d *groupHarness) onInsert(body string) {
	d.exec(`CREATE SEQUENCE {schema}.first; CREATE SEQUENCE {schema}.second;
		CREATE FUNCTION {schema}.on_insert() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ` + body + ` RETURN NEW; END $$;
		CREATE TRIGGER on_insert BEFORE INSERT ON {schema}.check_out_lock FOR EACH ROW EXECUTE FUNCTION {schema}.on_insert()`)
}

// A call whose group has begun must learn what it got, because only the call can give it
// back.
func TestGroups_MemberThatLeavesTooLate(t *testing.T) {
	t.Parallel()
	d := newGroupHarness(t)
	d.onInsert(d.sql(`PERFORM nextval('{schema}.first');
		WHILE NOT (SELECT is_called FROM {schema}.second) LOOP PERFORM pg_sleep(0.001); END LOOP;`))
	ctx, leave := context.WithCancel(d.ctx())
	defer leave()
	calls := []<-chan answer{d.acquire(ctx, 0, forAnHour()), d.acquire(ctx, 1, forAnHour())}
	d.begin()
	d.untilCount(1, d.sql(`SELECT count(*) FROM {schema}.first WHERE is_called`))
	leave()
	d.exec(`SELECT nextval('{schema}.second')`)
	for n, call := range calls {
		got := <-call
		if got.err != nil || d.count(`SELECT count(*) FROM {schema}.check_out_lock WHERE id = $1`, got.lock.ID) != 1 {
			t.Errorf("call %d got %+v, want the lock that it has", n, got)
		}
	}
}

// begins runs a statement in a transaction and returns what rolls it back.
func (d *groupHarness) begins(statement string, args ...any) (rollback func()) {
	d.t.Helper()
	tx := d.harness.begin(statement, args...)
	return func() {
		if err := tx.Rollback(d.ctx()); err != nil {
			d.t.Error(err)
		}
	}
}

func TestGroups_ErrorInTheMiddle(t *testing.T) {
	t.Parallel()
	d := newGroupHarness(t)
	bad := forAnHour()
	bad.Holder = "kiosk\x00"
	calls := []<-chan answer{
		d.acquire(d.ctx(), 0, forAnHour()), d.acquire(d.ctx(), 1, bad), d.acquire(d.ctx(), 2, forAnHour()),
	}
	d.begin()
	for n, call := range calls {
		if got := <-call; fault.CodeOf(got.err) != map[int]fault.Code{1: fault.Invalid}[n] {
			t.Errorf("call %d got %+v, want a lock for all but the bad one", n, got)
		}
	}
}

// A session that is lost may have granted the locks. Without the answer, no call may be
// granted a second one.
func TestGroups_NeverRunTwiceAfterALostSession(t *testing.T) {
	t.Parallel()
	d := newGroupHarness(t)
	d.onInsert(d.sql(`IF nextval('{schema}.first') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;`))
	calls := []<-chan answer{d.acquire(d.ctx(), 0, forAnHour()), d.acquire(d.ctx(), 1, forAnHour())}
	d.begin()
	for n, call := range calls {
		if got := <-call; !fault.Is(got.err, fault.Unavailable) {
			t.Errorf("call %d got %+v, want %s", n, got, fault.Unavailable)
		}
	}
	if n := d.count(`SELECT count(*) FROM {schema}.check_out_lock`); n != 0 {
		t.Errorf("%d locks, want none", n)
	}
}

func TestGroups_ForgetIdleTenants(t *testing.T) {
	t.Parallel()
	store := newHarness(t).locks
	for range 3 {
		d := newHarness(t)
		for range 2 {
			l, _, err := store.Acquire(d.ctx(), forAnHour())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.Release(d.ctx(), l.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := store.TenantsInGroups(); n != 0 {
		t.Errorf("the groups know %d tenants, want none", n)
	}
}
