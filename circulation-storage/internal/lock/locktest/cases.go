package locktest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/schemas/fault"
)

const callers = 32

// atOnce runs fn in as many goroutines as there are callers and starts them together.
func atOnce(fn func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range callers {
		wg.Go(func() {
			<-start
			fn(i)
		})
	}
	close(start)
	wg.Wait()
}

// Ageless returns a lock without its age, which grows from answer to answer, to compare.
func Ageless(l lock.Lock) lock.Lock {
	l.Age = 0
	return l
}

func mustAcquire(ctx context.Context, t *testing.T, store lock.Store, req lock.Request) lock.Lock {
	l, _, err := store.Acquire(ctx, req)
	if err != nil {
		t.Fatalf("Acquire(%+v): %v", req, err)
	}
	return l
}

// acquireRepeatedly acquires as a client that retries while the lock is held. A store may
// refuse a caller that waits too long for the lock's row.
func acquireRepeatedly(ctx context.Context, store lock.Store, req lock.Request) (l lock.Lock, outcome lock.Outcome, err error) {
	for range 100 {
		if l, outcome, err = store.Acquire(ctx, req); !fault.Is(err, fault.LockHeld) {
			break
		}
	}
	return l, outcome, err
}

// testOneWinner checks that exactly one of many callers gets the lock, whether there was
// none or an outdated one.
func testOneWinner(t *testing.T, newStore NewStore) {
	ctx, store, ager := newStore(t)
	user := uuid.New()
	for _, before := range []lock.Outcome{lock.Granted, lock.TakenOver} {
		codes := make([]fault.Code, callers)
		locks := make([]lock.Lock, callers)
		atOnce(func(i int) {
			l, outcome, err := store.Acquire(ctx, lock.Request{UserID: user, TTL: time.Hour})
			locks[i], codes[i] = l, fault.CodeOf(err)
			if err == nil && outcome != before {
				t.Errorf("winner's lock was %s, want %s", outcome, before)
			}
		})
		got := map[fault.Code]int{}
		for i, c := range codes {
			got[c]++
			if c == "" {
				ager.Age(ctx, t, locks[i].ID, 2*time.Hour)
			}
		}
		if got[""] != 1 || got[fault.LockHeld] != callers-1 {
			t.Errorf("%s: outcomes %v, want 1 success and %d %q", before, got, callers-1, fault.LockHeld)
		}
	}
}

func testOneRequest(t *testing.T, newStore NewStore) {
	ctx, store, _ := newStore(t)
	req := lock.Request{UserID: uuid.New(), TTL: time.Hour, AcquisitionID: uuid.New()}
	ids := make([]uuid.UUID, callers)
	outcomes := make([]lock.Outcome, callers)
	atOnce(func(i int) {
		l, outcome, err := acquireRepeatedly(ctx, store, req)
		if err != nil {
			t.Errorf("copy %d: %v", i, err)
		}
		ids[i], outcomes[i] = l.ID, outcome
	})
	granted := 0
	for i := range ids {
		if ids[i] != ids[0] {
			t.Fatalf("copies of one request got the locks %s and %s", ids[0], ids[i])
		}
		if outcomes[i] == lock.Granted {
			granted++
		}
	}
	if granted != 1 {
		t.Errorf("%d copies were granted the lock, want 1 and the others renewed", granted)
	}
}

func testWholeLock(t *testing.T, newStore NewStore) {
	ctx, store, _ := newStore(t)
	req := lock.Request{UserID: uuid.New(), TTL: 90 * time.Second, AcquisitionID: uuid.New(), Holder: "kiosk-7", OkapiRequestID: "017/circulation"}
	got := mustAcquire(ctx, t, store, req)
	want := lock.Lock{
		ID: got.ID, UserID: req.UserID, CreatedAt: got.CreatedAt, TTL: req.TTL,
		AcquisitionID: req.AcquisitionID, Holder: req.Holder, OkapiRequestID: req.OkapiRequestID,
	}
	if Ageless(got) != want || got.ID == uuid.Nil {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if read, err := store.Get(ctx, got.ID); err != nil || Ageless(read) != want {
		t.Errorf("Get = %+v, %v, want %+v", read, err, got)
	}
	again := req
	again.TTL, again.Holder = 30*time.Second, "kiosk-8"
	renewed := mustAcquire(ctx, t, store, again)
	if !renewed.CreatedAt.After(got.CreatedAt) || renewed.TTL != again.TTL || renewed.Holder != again.Holder {
		t.Errorf("renewed lock is %+v, want a later one as the repeat asked", renewed)
	}
}

func testTenantsApart(t *testing.T, newStore NewStore) {
	ctx, store, _ := newStore(t)
	otherCtx, _, _ := newStore(t)
	req := lock.Request{UserID: uuid.New(), TTL: time.Hour}
	l := mustAcquire(ctx, t, store, req)
	mustAcquire(otherCtx, t, store, req)
	if _, err := store.Get(otherCtx, l.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("another tenant reads the lock: %v", err)
	}
	if _, err := store.Release(otherCtx, l.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("another tenant releases the lock: %v", err)
	}
}

func testReleaseAcquisitionApart(t *testing.T, newStore NewStore) {
	ctx, store, _ := newStore(t)
	otherCtx, _, _ := newStore(t)
	l := mustAcquire(ctx, t, store, lock.Request{UserID: uuid.New(), TTL: time.Hour, AcquisitionID: uuid.New()})
	if _, err := store.ReleaseAcquisition(otherCtx, l.UserID, l.AcquisitionID); !fault.Is(err, fault.NotFound) {
		t.Errorf("another tenant releases the lock: %v", err)
	}
	if got, err := store.ReleaseAcquisition(ctx, l.UserID, l.AcquisitionID); err != nil || Ageless(got) != Ageless(l) {
		t.Errorf("got %+v, %v, want %+v as it was", got, err, l)
	}
}

func testLeftBefore(t *testing.T, newStore NewStore) {
	ctx, store, _ := newStore(t)
	left, leave := context.WithCancel(ctx)
	leave()
	req := lock.Request{UserID: uuid.New(), TTL: time.Hour}
	if _, _, err := store.Acquire(left, req); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	mustAcquire(ctx, t, store, req)
}

func testPeek(t *testing.T, newStore NewStore) {
	ctx, store, ager := newStore(t)
	req := lock.Request{UserID: uuid.New(), TTL: time.Hour, AcquisitionID: uuid.New()}
	look := func(when string, ttl time.Duration, want lock.Peek) {
		t.Helper()
		got, err := store.Peek(ctx, lock.Request{UserID: req.UserID, TTL: ttl})
		older := got.Age - want.Age
		got.Age = want.Age
		if err != nil || got != want || older < 0 || older > minute || want.Free && older != 0 {
			t.Errorf("%s: got %+v, %s older, %v, want %+v", when, got, older, err, want)
		}
	}
	look("no lock", time.Hour, lock.Peek{Free: true})
	l := mustAcquire(ctx, t, store, req)
	look("held", time.Hour, lock.Peek{LockID: l.ID, AcquisitionID: req.AcquisitionID})
	look("for TTL 0", 0, lock.Peek{Free: true})
	ager.Age(ctx, t, l.ID, 30*time.Minute)
	look("held for long", time.Hour, lock.Peek{LockID: l.ID, AcquisitionID: req.AcquisitionID, Age: 30 * time.Minute})
	ager.Age(ctx, t, l.ID, 90*time.Minute)
	look("outdated", 3*time.Hour, lock.Peek{Free: true})
	if got, err := store.Get(ctx, l.ID); err != nil || got.ID != l.ID {
		t.Errorf("looking changed the lock: %+v, %v", got, err)
	}
}

func testGetOutdated(t *testing.T, newStore NewStore) {
	ctx, store, ager := newStore(t)
	l := mustAcquire(ctx, t, store, lock.Request{UserID: uuid.New(), TTL: time.Hour})
	aged := l.Age
	if aged < 0 || aged > minute {
		t.Errorf("a new lock is %s old", aged)
	}
	for _, tt := range []struct {
		by   time.Duration
		want bool
	}{{0, false}, {2 * time.Hour, true}, {-4 * time.Hour, true}} {
		ager.Age(ctx, t, l.ID, tt.by)
		aged += tt.by
		got, err := store.Get(ctx, l.ID)
		if err != nil || got.ID != l.ID || got.Outdated != tt.want {
			t.Errorf("aged by %s: got %+v, %v, want outdated %t", tt.by, got, err, tt.want)
		}
		if got.Age < aged || got.Age > aged+minute {
			t.Errorf("aged by %s: it is %s old, want %s or a little more", tt.by, got.Age, aged)
		}
	}
	if _, err := store.Get(ctx, uuid.New()); !fault.Is(err, fault.NotFound) {
		t.Errorf("an id that is none: %v, want %q", err, fault.NotFound)
	}
}
