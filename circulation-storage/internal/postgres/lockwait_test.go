package postgres_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/schemas/fault"
)

// silent is an observer that ignores everything.
type silent struct{}

func (silent) Acquired(lock.Outcome, time.Duration) {}
func (silent) Waiting(int)                          {}
func (silent) Released()                            {}

// openInstance returns the locks of another instance, with connections of its own.
func openInstance(t *testing.T) *lock.Service {
	return lock.NewService(postgres.NewLockStore(openWith(t, nil)), silent{}, quiet(t))
}

func TestHandOver_FencesTheFormerHolder(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	store := postgres.NewLockStore(l.db)
	former := l.withLock(uuid.New(), l.addItem("Available", ""))
	former.release = true
	handed, err := store.HandOver(l.ctx(), former.lock, lock.Request{
		UserID: former.user, TTL: time.Hour, AcquisitionID: uuid.New(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.send(former); !fault.Is(err, fault.LockLost) {
		t.Errorf("the former holder's commit: %v, want %q", err, fault.LockLost)
	}
	l.wantUntouched(former.item)
	for name, release := range map[string]func(context.Context, uuid.UUID) (lock.Lock, error){
		"late":    store.Release,
		"durable": store.ReleaseDurably,
	} {
		if _, err := release(l.ctx(), former.lock); !fault.Is(err, fault.NotFound) {
			t.Errorf("the former holder's %s release: %v, want %q", name, err, fault.NotFound)
		}
	}
	next := former
	next.lock, next.loan = handed.ID, uuid.New()
	if _, outcome, err := l.send(next); err != nil || outcome != commit.Committed {
		t.Errorf("the next holder's commit: %s, %v", outcome, err)
	}
}

func TestHandOver_WaitsBrieflyForACommit(t *testing.T) {
	t.Parallel()
	ctx, store, table := newLockStore(t)
	req := lock.Request{UserID: uuid.New(), TTL: time.Hour}
	for name, tt := range map[string]struct {
		statement string // of the commit
		want      fault.Code
	}{
		"that releases the lock": {`DELETE FROM ` + table.name() + ` WHERE id = $1`, fault.NotFound},
		"that leaves the lock":   {`SELECT $1::uuid`, ""},
		"that renews it, backdated": {
			`UPDATE ` + table.name() + ` SET creation_date = creation_date - interval '2 hours' WHERE id = $1`, fault.NotFound,
		},
	} {
		_, _ = store.ReleaseAcquisition(ctx, req.UserID, req.AcquisitionID)
		req.UserID, req.AcquisitionID = uuid.New(), uuid.New()
		l, _, err := store.Acquire(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		var code fault.Code
		for range 100 { // the commit may take longer than a hand-over waits
			tx := commitInFlight(ctx, t, table, l.ID)
			wantQuickest(t, time.Second, func() {
				if _, err := store.HandOver(ctx, l.ID, req); !fault.Is(err, fault.LockHeld) {
					t.Fatalf("%s: %v while the commit runs, want %q", name, err, fault.LockHeld)
				}
			})
			handed := make(chan error, 1)
			go func() {
				_, err := store.HandOver(ctx, l.ID, req)
				handed <- err
			}()
			for blocked := false; !blocked && len(handed) == 0; {
				blocked = isBlocked(ctx, t, table)
			}
			if _, err := tx.Exec(ctx, tt.statement, l.ID); err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(ctx); err != nil {
				t.Fatal(err)
			}
			code = fault.CodeOf(<-handed)
			if code != fault.LockHeld {
				break
			}
			if l, _, err = store.Acquire(ctx, lock.Request{
				UserID: req.UserID, AcquisitionID: req.AcquisitionID, TTL: time.Hour,
			}); err != nil {
				t.Fatal(err)
			}
		}
		if code != tt.want {
			t.Errorf("after a commit %s: %q, want %q", name, code, tt.want)
		}
	}
}

// dyingStore hands a lock over, and its process dies before it answers.
type dyingStore struct {
	lock.Store
	read   chan struct{} // by each Peek
	handed chan lock.Lock
	die    context.CancelFunc
}

func (s dyingStore) Peek(ctx context.Context, req lock.Request) (lock.Peek, error) {
	select {
	case s.read <- struct{}{}:
	case <-ctx.Done():
	}
	return s.Store.Peek(ctx, req)
}

func (s dyingStore) HandOver(ctx context.Context, id uuid.UUID, req lock.Request) (lock.Lock, error) {
	l, err := s.Store.HandOver(ctx, id, req)
	s.die()
	s.handed <- l
	return lock.Lock{}, errors.Join(err, ctx.Err())
}

func TestHandOver_OfADeadProcessEndsWithItsTTL(t *testing.T) {
	t.Parallel()
	ctx, store, table := newLockStore(t)
	process, kill := context.WithCancel(ctx)
	dying := dyingStore{Store: store, read: make(chan struct{}), handed: make(chan lock.Lock, 1), die: kill}
	first := lock.NewService(dying, silent{}, quiet(t))
	req := lock.Request{UserID: uuid.New(), TTL: time.Hour}
	l, err := first.Acquire(process, req)
	if err != nil {
		t.Fatal(err)
	}
	waiting := req
	waiting.Wait, waiting.AcquisitionID = time.Minute, uuid.New()
	var calls sync.WaitGroup
	defer calls.Wait()
	calls.Go(func() { _, _ = first.Acquire(process, waiting) })
	for range 3 { // at the third read the waiter is in line
		<-dying.read
	}
	calls.Go(func() { _ = first.Release(process, l.ID) })
	var handed lock.Lock
	for handed.ID == uuid.Nil {
		select {
		case <-dying.read:
		case handed = <-dying.handed:
		}
	}

	second := openInstance(t)
	if _, err := second.Acquire(ctx, req); !fault.Is(err, fault.LockHeld) {
		t.Errorf("within its TTL: %v, want %q", err, fault.LockHeld)
	}
	got := make(chan error, 1)
	go func() {
		waiting.AcquisitionID = uuid.New()
		_, err := second.Acquire(ctx, waiting)
		got <- err
	}()
	table.Age(ctx, t, handed.ID, 2*time.Hour)
	if err := <-got; err != nil {
		t.Errorf("after its TTL: %v, want the lock", err)
	}
}

// One instance has a line of waiters all the time, another instance has one waiter. Without
// turns for the other, that one would wait until the line is empty.
func TestHandOver_LeavesTurnsToOtherInstances(t *testing.T) {
	t.Parallel()
	ctx, _, _ := newLockStore(t)
	const turns, grantsPerTurn = 5, 256
	busy, other := openInstance(t), openInstance(t)
	req := lock.Request{UserID: uuid.New(), TTL: time.Hour, Wait: time.Minute}
	var grants, served atomic.Int32
	var line sync.WaitGroup
	for range lock.MaxWaiting / 2 {
		line.Go(func() {
			for served.Load() < turns && grants.Add(1) < 2*turns*grantsPerTurn {
				l, err := busy.Acquire(ctx, req)
				if err == nil {
					err = busy.Release(ctx, l.ID)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range turns {
		l, err := other.Acquire(ctx, req)
		if err == nil {
			err = other.Release(ctx, l.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		served.Add(1)
	}
	if n := grants.Load(); n > turns*grantsPerTurn {
		t.Errorf("%d turns of the other instance came with %d grants of the busy one, want %d at most", turns, n,
			turns*grantsPerTurn)
	}
	line.Wait()
}
