package postgres_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const countLocks = `SELECT count(*) FROM {schema}.check_out_lock`

func TestCheckOut_TakesAFreeLock(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l.recordEvents()
	c := l.takingLock(uuid.New(), l.addItem("Available", ""))
	result, outcome, err := l.send(c)
	if err != nil || outcome != commit.Committed || !result.LockReleased || l.count(countLocks) != 0 {
		t.Errorf("got %+v %s %v, want it lent and no lock left", result, outcome, err)
	}
	c.lock = uuid.New()
	result, outcome, err = l.send(c)
	if err != nil || outcome != commit.Repeated || field(t, result.Loan, "id") != c.loan.String() {
		t.Errorf("the repeat got %+v %s %v, want the loan", result, outcome, err)
	}
	if n := l.count(countLocks); n != 0 {
		t.Errorf("the repeat left %d locks", n)
	}
	l.lock(c.user)
	if _, outcome, err = l.send(c); err != nil || outcome != commit.Repeated || l.count(countLocks) != 1 {
		t.Errorf("the repeat beside another lock got %s %v, want the loan, and that lock as it was", outcome, err)
	}
	l.wantAllOrNothing(1)
}

func TestCheckOut_TakesNoLock(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		prepare func(l harness, c *lending)
		code    fault.Code
		locks   int // left
	}{
		"that is held": {prepare: func(l harness, c *lending) { l.lock(c.user) }, code: fault.LockHeld, locks: 1},
		"that is outdated": {
			prepare: func(l harness, c *lending) {
				l.lock(c.user)
				l.exec(`UPDATE {schema}.check_out_lock SET creation_date = creation_date - interval '1 day'`)
			}, code: fault.LockHeld, locks: 1,
		},
		"under an id of another": {
			prepare: func(l harness, c *lending) { c.lock = l.lock(uuid.New()) }, code: fault.LockHeld, locks: 1,
		},
		"for a changed item": {prepare: func(_ harness, c *lending) { c.version = 2 }, code: fault.ItemChanged, locks: 0},
		"beyond the limit": {
			prepare: func(l harness, c *lending) {
				c.limit = 1
				l.lend(l.takingLock(c.user, l.addItem("Available", "")))
			}, code: fault.LimitReached, locks: 0,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newHarness(t)
			c := l.takingLock(uuid.New(), l.addItem("Available", ""))
			tt.prepare(l, &c)
			if _, _, err := l.send(c); !fault.Is(err, tt.code) {
				t.Errorf("got %v, want %s", err, tt.code)
			}
			if n := l.count(countLocks); n != tt.locks {
				t.Errorf("%d locks are left, want %d", n, tt.locks)
			}
			l.wantUntouched(c.item)
		})
	}
}

// A commit that takes the lock has another way, so it waits for less than other commits do.
func TestCheckOut_TakingTheLockWaitsBriefly(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l.recordEvents()
	item := l.addItem("Available", "")
	pause := l.begin(lockItem, item)
	patient := l.start(l.withoutLock(item))
	l.waitUntilBlocked(1)
	wantQuickest(t, time.Second, func() {
		if _, _, err := l.send(l.takingLock(uuid.New(), item)); !fault.Is(err, fault.LockHeld) {
			t.Errorf("got %v, want %s", err, fault.LockHeld)
		}
	})
	if len(patient) != 0 {
		t.Error("another commit gave up waiting earlier")
	}
	if err := pause.Rollback(l.ctx()); err != nil {
		t.Fatal(err)
	}
	l.wantCommitted(patient)
	if n := l.count(countLocks); n != 0 {
		t.Errorf("%d locks are left", n)
	}
	l.wantAllOrNothing(1)
}

// A wait for a commit of another storage is a wait for the lock.
func TestCheckOut_SaysHowLongItWaitedForTheLock(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	c := l.takingLock(uuid.New(), l.addItem("Available", ""))
	for {
		other := l.begin(`INSERT INTO {schema}.check_out_lock (id, user_id, ttl_ms) VALUES ($1, $2, 0)`, uuid.New(), c.user)
		var result schemas.CheckOutResult
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			result, _, err = l.send(c)
		}()
		l.waitUntilBlocked(1)
		began := time.Now()
		if n := l.count(countLocks); n != 0 { // takes a moment, in which the commit waits
			t.Fatalf("%d locks are seen", n)
		}
		held := schemas.Milliseconds(time.Since(began))
		if err := other.Rollback(l.ctx()); err != nil {
			t.Fatal(err)
		}
		<-done
		if fault.Is(err, fault.LockHeld) {
			continue // the host was slower than the wait
		}
		if err != nil || result.LockWaitMs < held || result.LockWaitMs > 250 {
			t.Errorf("got a wait of %g ms, %v, want %g ms or more", result.LockWaitMs, err, held)
		}
		return
	}
}

// Check-outs that take the lock in the commit, and those that acquire it before, exclude each other:
// each counts what the one before has written.
func TestCheckOut_BothWaysKeepTheLimit(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l.recordEvents()
	const sent, limit = 24, 5
	user := uuid.New()
	lent := make(chan bool, sent)
	var wg sync.WaitGroup
	for i := range sent {
		own := l.takingLock(user, l.addItem("Available", ""))
		own.limit = limit
		wg.Go(func() { lent <- l.lendAgainstOthers(own, i%2 == 0) })
	}
	wg.Wait()
	close(lent)
	n := 0
	for ok := range lent {
		if ok {
			n++
		}
	}
	if n != limit {
		t.Errorf("lent %d, want %d", n, limit)
	}
	if left := l.count(countLocks); left != 0 {
		t.Errorf("%d locks are left", left)
	}
	l.wantAllOrNothing(limit)
}

// lendAgainstOthers lends in its turn, or acquires the lock before. It tries until it is lent or the
// limit is reached, and reports which.
func (l harness) lendAgainstOthers(c lending, acquires bool) bool {
	for {
		if acquires {
			got, _, err := l.locks.Acquire(l.ctx(), lock.Request{UserID: c.user, TTL: time.Hour})
			if fault.Is(err, fault.LockHeld) {
				continue
			}
			if err != nil {
				l.t.Error(err)
				return false
			}
			c.takes, c.release, c.lock = false, false, got.ID
		} else {
			c.lock = uuid.New()
		}
		_, _, err := l.send(c)
		if acquires {
			if _, err := l.locks.Release(l.ctx(), c.lock); err != nil {
				l.t.Error(err)
			}
		}
		switch {
		case err == nil:
			return true
		case fault.Is(err, fault.LimitReached):
			return false
		case !fault.Is(err, fault.LockHeld):
			l.t.Error(err)
			return false
		}
	}
}

// Through PgBouncer without prepared statements PostgreSQL answers in text, in the form that the database or
// the role is set to.
func TestCheckOut_TakesTheLockWhateverTheFormOfIntervals(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	for _, mode := range []string{"cache_statement", "exec"} {
		for _, style := range []string{"postgres", "postgres_verbose", "sql_standard", "iso_8601"} {
			other := l.on(openWith(t, map[string]string{"default_query_exec_mode": mode, "intervalstyle": style}))
			if _, _, err := other.send(l.takingLock(uuid.New(), l.addItem("Available", ""))); err != nil {
				t.Errorf("%s, %s: got %v, want it lent", mode, style, err)
			}
		}
	}
}
