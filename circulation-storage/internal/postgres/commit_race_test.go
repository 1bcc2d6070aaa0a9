package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/schemas/fault"
)

const lockItem = `SELECT FROM {schema}.item WHERE id = $1 FOR UPDATE`

// sent is how a commit in another goroutine ended.
type sent struct {
	outcome commit.Outcome
	err     error
}

// start sends a check-out in another goroutine.
func (l harness) start(c lending) <-chan sent {
	done := make(chan sent, 1)
	go func() {
		_, outcome, err := l.send(c)
		done <- sent{outcome, err}
	}()
	return done
}

func (l harness) wantCommitted(done <-chan sent) {
	l.t.Helper()
	if got := <-done; got.err != nil || got.outcome != commit.Committed {
		l.t.Errorf("commit: got %s, %v, want it to stand", got.outcome, got.err)
	}
}

func TestAcquire_TakeoverWaitsForACommit(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	item := l.addItem("Available", "")
	c := l.withLock(uuid.New(), item)
	pause := l.begin(lockItem, item)
	done := l.start(c)
	l.waitUntilBlocked(1) // the commit has the lock row and waits for the item

	takeover := lock.Request{UserID: c.user, TTL: 0}
	if _, _, err := l.locks.Acquire(l.ctx(), takeover); !fault.Is(err, fault.LockHeld) {
		t.Errorf("takeover during the commit: got %v, want %s", err, fault.LockHeld)
	}
	released := make(chan error, 1)
	go func() {
		_, err := l.locks.Release(l.ctx(), c.lock)
		released <- err
	}()
	l.waitUntilBlocked(2)
	if err := pause.Rollback(l.ctx()); err != nil {
		t.Fatal(err)
	}
	l.wantCommitted(done)
	if err := <-released; err != nil {
		t.Errorf("release during the commit: got %v, want it to wait and succeed", err)
	}
	if _, outcome, err := l.locks.Acquire(l.ctx(), takeover); err != nil || outcome != lock.Granted {
		t.Errorf("acquire after the commit: got %s, %v, want %s", outcome, err, lock.Granted)
	}
}

// The first batch runs again after its session is lost. What the lost one read of the lock does not count.
func TestCheckOut_ForgetsWhatALostBatchRead(t *testing.T) {
	t.Parallel()
	others := newHarness(t).reach(pgtest.URL(t))
	l := others.reach(pgtest.URL(t))
	c := l.withLock(uuid.New(), l.addItem("Available", ""))
	pause := others.begin(lockItem, c.item)
	done := l.start(c)
	others.waitUntilBlocked(1)
	schema := pgx.Identifier{postgres.SchemaName(l.id)}.Sanitize()
	next := others.begin(`SELECT`)
	inLine, released := make(chan error, 1), make(chan error, 1)
	go func() { // holds the batch that runs again at its first lock, until the release is done
		_, err := next.Exec(others.ctx(), strings.ReplaceAll(postgres.LockCheckOutSQL, "{schema}", schema), c.loan)
		inLine <- err
	}()
	go func() {
		_, err := others.locks.Release(others.ctx(), c.lock)
		released <- err
	}()
	others.waitUntilBlocked(3)
	others.exec(`SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
		WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '.item %'`, schema)
	if err := errors.Join(<-inLine, <-released, next.Rollback(l.ctx()), pause.Rollback(l.ctx())); err != nil {
		t.Fatal(err)
	}
	if got := <-done; !fault.Is(got.err, fault.LockLost) {
		t.Errorf("got %s, %v, want %s", got.outcome, got.err, fault.LockLost)
	}
	l.wantUntouched(c.item)
}

func TestCheckOut_DuringATakeoverIsRefused(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	item := l.addItem("Available", "")
	c := l.withLock(uuid.New(), item)
	takeover := l.begin(`UPDATE {schema}.check_out_lock SET id = gen_random_uuid() WHERE id = $1`, c.lock)
	done := l.start(c)
	l.waitUntilBlocked(1)
	if err := takeover.Commit(l.ctx()); err != nil {
		t.Fatal(err)
	}
	if got := <-done; !fault.Is(got.err, fault.LockLost) {
		t.Errorf("got %s, %v, want %s", got.outcome, got.err, fault.LockLost)
	}
	l.wantUntouched(item)
}

func TestLockSettings_SwitchingOnWaitsForCommitsWithoutALock(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	item := l.addItem("Available", "")
	pause := l.begin(lockItem, item)
	done := l.start(l.withoutLock(item))
	l.waitUntilBlocked(1) // the commit has judged the settings and waits for the item

	changed := make(chan error, 1)
	go func() {
		_, err := l.settings.Change(l.ctx(), changeTo(`{"checkOutLockFeatureEnabled":true}`, ""))
		changed <- err
	}()
	l.waitUntilBlocked(2)
	select {
	case err := <-changed:
		t.Errorf("the change was answered while a commit without a lock was under way (%v)", err)
	default:
	}
	if err := pause.Rollback(l.ctx()); err != nil {
		t.Fatal(err)
	}
	l.wantCommitted(done)
	if err := <-changed; err != nil {
		t.Errorf("change: %v", err)
	}
}

func TestCheckOut_WithoutALockDuringAChangeIsRefused(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	item := l.addItem("Available", "")
	c := l.withoutLock(item)
	change := l.begin(`UPDATE {schema}.lock_settings_version SET version = version + 1`)
	done := l.start(c)
	l.waitUntilBlocked(1)
	if err := change.Commit(l.ctx()); err != nil {
		t.Fatal(err)
	}
	if got := <-done; !fault.Is(got.err, fault.SettingsChanged) {
		t.Errorf("got %s, %v, want %s", got.outcome, got.err, fault.SettingsChanged)
	}
	l.wantUntouched(item)
}

// The generic endpoint of loans does not lock the item, so only the unique indexes
// separate such a loan and a commit.
func TestCheckOut_BesideAnUnfencedLoanIsRefused(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	tests := map[string]struct {
		beside func(c lending) (loan, item uuid.UUID)
		says   string
	}{
		"same item": {
			func(c lending) (uuid.UUID, uuid.UUID) { return uuid.New(), c.item },
			"Cannot have more than one open loan for the same item",
		},
		"same loan id": {func(c lending) (uuid.UUID, uuid.UUID) { return c.loan, uuid.New() }, "loan.id is already"},
	}
	for name, tt := range tests {
		item := l.addItem("Available", "")
		c := l.withLock(uuid.New(), item)
		loan, of := tt.beside(c)
		unfenced := l.begin(`INSERT INTO {schema}.loan (id, jsonb) VALUES ($1::uuid,
			jsonb_build_object('id', $1::uuid, 'itemId', $2::uuid, 'userId', $1::uuid, 'status',
			'{"name":"Open"}'::jsonb))`, loan, of)
		done := l.start(c)
		l.waitUntilBlocked(1)
		if err := unfenced.Commit(l.ctx()); err != nil {
			t.Fatal(err)
		}
		got := <-done
		if !fault.Is(got.err, fault.Invalid) || !strings.Contains(got.err.Error(), tt.says) || got.outcome != "" {
			t.Errorf("%s: got %q, %v, want %s saying %q", name, got.outcome, got.err, fault.Invalid, tt.says)
		}
		if n := l.count(`SELECT count(*) FROM {schema}.item WHERE id = $1 AND jsonb->>'_version' = '1'`, item); n != 1 {
			t.Errorf("%s: the item was changed", name)
		}
	}
}

// Under any load, no check-out commits without a lock after the switch is answered.
func TestLockSettings_SwitchingOnUnderLoad(t *testing.T) {
	t.Parallel()
	const workers, each, before = 6, 150, 20
	l := newHarness(t)
	version := l.withoutLock(uuid.Nil).settings
	busy, refused := make(chan struct{}, workers), make(chan int, workers)
	for range workers {
		var items []uuid.UUID
		for range each {
			items = append(items, l.addItem("Available", ""))
		}
		go func() {
			n := 0
			for i, item := range items {
				if i == before {
					busy <- struct{}{}
				}
				_, _, err := l.send(lending{loan: uuid.New(), user: uuid.New(), item: item, settings: version, version: 1})
				if fault.Is(err, fault.SettingsChanged) {
					n++
				}
			}
			refused <- n
		}()
	}
	for range workers {
		<-busy
	}
	state, err := l.settings.Change(l.ctx(), changeTo(`{"checkOutLockFeatureEnabled":true}`, version))
	lent := l.count(`SELECT count(*) FROM {schema}.loan`)
	sum := 0
	for range workers {
		sum += <-refused
	}
	if err != nil || state.Version == version {
		t.Errorf("got %v, %v, want a new version", state, err)
	}
	if after := l.count(`SELECT count(*) FROM {schema}.loan`); after != lent || sum != workers*each-lent {
		t.Errorf("got %d loans at the answer, %d in the end, %d refused, want all refused after the answer", lent, after, sum)
	}
}
