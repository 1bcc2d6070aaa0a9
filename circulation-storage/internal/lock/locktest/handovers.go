package locktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/schemas/fault"
)

var handOverStories = map[string][]step{
	"the next request holds the lock under a new id": {
		{acquire: "ann", ttl: minute, request: "R1", as: "first", outcome: lock.Granted},
		{handOver: "first", acquire: "ann", ttl: minute, request: "R2", as: "second"},
		{acquire: "ann", ttl: minute, request: "R1", want: fault.LockHeld},
		{acquire: "ann", ttl: minute, request: "R2", as: "again", same: "second", outcome: lock.Renewed},
		{release: "again"},
		{acquire: "ann", ttl: minute, outcome: lock.Granted},
	},
	"a request without an id gets it too": {
		{acquire: "ann", ttl: minute, request: "R1", as: "first", outcome: lock.Granted},
		{handOver: "first", acquire: "ann", ttl: minute, as: "second"},
		{acquire: "ann", ttl: minute, want: fault.LockHeld},
		{release: "second"},
	},
	"a late release does not free the next holder": {
		{acquire: "ann", ttl: minute, request: "R1", as: "first", outcome: lock.Granted},
		{handOver: "first", acquire: "ann", ttl: minute, request: "R2", as: "second"},
		{release: "first", want: fault.NotFound},
		{releaseOf: "ann", request: "R1", want: fault.NotFound},
		{withdraw: "first"},
		{force: "first", want: fault.NotFound},
		{acquire: "ann", ttl: minute, request: "R1", want: fault.LockHeld},
		{release: "second"},
	},
	"a second hand-over finds nothing": {
		{acquire: "ann", ttl: minute, as: "first", outcome: lock.Granted},
		{handOver: "first", acquire: "ann", ttl: minute, as: "second"},
		{handOver: "first", acquire: "ann", ttl: minute, want: fault.NotFound},
		{handOver: "second", acquire: "ann", ttl: minute, as: "third"},
	},
	"a released lock is not handed over": {
		{acquire: "ann", ttl: minute, as: "first", outcome: lock.Granted},
		{release: "first"},
		{handOver: "first", acquire: "ann", ttl: minute, want: fault.NotFound},
		{acquire: "ann", ttl: minute, outcome: lock.Granted},
	},
	"an outdated lock is not handed over": {
		{acquire: "ann", ttl: second, as: "first", outcome: lock.Granted},
		{age: "first", by: 2 * second},
		{handOver: "first", acquire: "ann", ttl: minute, want: fault.NotFound},
		{release: "first", outdated: true},
	},
	"the new lock lives as long as the next request asks": {
		{acquire: "ann", ttl: hour, as: "first", outcome: lock.Granted},
		{age: "first", by: 50 * minute},
		{handOver: "first", acquire: "ann", ttl: minute, as: "second"},
		{acquire: "ann", ttl: 50 * second, want: fault.LockHeld},
		{age: "second", by: 2 * minute},
		{acquire: "ann", ttl: hour, outcome: lock.TakenOver},
	},
	"another patron does not get it": {
		{acquire: "ann", ttl: minute, as: "first", outcome: lock.Granted},
		{handOver: "first", acquire: "bob", ttl: minute, want: fault.NotFound},
		{release: "first"},
		{acquire: "bob", ttl: minute, outcome: lock.Granted},
	},
	"a lock that was handed over is withdrawn": {
		{acquire: "ann", ttl: minute, as: "first", outcome: lock.Granted},
		{handOver: "first", acquire: "ann", ttl: minute, as: "second"},
		{withdraw: "second"},
		{acquire: "ann", ttl: minute, outcome: lock.Granted},
	},
}

func testWholeHandOver(t *testing.T, newStore NewStore) {
	ctx, store, _ := newStore(t)
	before := lock.Request{UserID: uuid.New(), TTL: time.Hour, AcquisitionID: uuid.New(), Holder: "kiosk-7", OkapiRequestID: "017/circulation"}
	for _, req := range []lock.Request{
		{UserID: before.UserID, TTL: 90 * time.Second, AcquisitionID: uuid.New(), Holder: "kiosk-8", OkapiRequestID: "018/circulation"},
		{UserID: before.UserID},
	} {
		former := mustAcquire(ctx, t, store, before)
		got, err := store.HandOver(ctx, former.ID, req)
		want := lock.Lock{
			ID: got.ID, UserID: req.UserID, CreatedAt: got.CreatedAt, TTL: req.TTL,
			AcquisitionID: req.AcquisitionID, Holder: req.Holder, OkapiRequestID: req.OkapiRequestID, Outdated: got.Outdated,
		}
		if err != nil || Ageless(got) != want || got.ID == former.ID || !got.CreatedAt.After(former.CreatedAt) || got.Age > minute {
			t.Errorf("HandOver = %+v, %v, want %+v after %+v", got, err, want, former)
		}
		read, err := store.Get(ctx, got.ID)
		read.Outdated = got.Outdated
		if err != nil || Ageless(read) != want {
			t.Errorf("Get = %+v, %v, want %+v", read, err, want)
		}
		if _, err := store.Release(ctx, got.ID); err != nil {
			t.Error(err)
		}
	}
}

func testHandOverApart(t *testing.T, newStore NewStore) {
	ctx, store, _ := newStore(t)
	otherCtx, _, _ := newStore(t)
	req := lock.Request{UserID: uuid.New(), TTL: time.Hour}
	l := mustAcquire(ctx, t, store, req)
	if _, err := store.HandOver(otherCtx, l.ID, req); !fault.Is(err, fault.NotFound) {
		t.Errorf("another tenant hands the lock over: %v", err)
	}
	if _, err := store.Get(ctx, l.ID); err != nil {
		t.Error(err)
	}
}

// testOneHandOver checks that exactly one of many calls replaces the lock.
func testOneHandOver(t *testing.T, newStore NewStore) {
	ctx, store, _ := newStore(t)
	user := uuid.New()
	former := mustAcquire(ctx, t, store, lock.Request{UserID: user, TTL: time.Hour})
	got := make([]lock.Lock, callers)
	atOnce(func(i int) {
		var err error
		got[i], err = store.HandOver(ctx, former.ID, lock.Request{UserID: user, TTL: time.Hour, AcquisitionID: uuid.New()})
		if err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.LockHeld) {
			t.Error(err)
		}
	})
	var winners []lock.Lock
	for _, l := range got {
		if l.ID != uuid.Nil {
			winners = append(winners, l)
		}
	}
	if len(winners) != 1 {
		t.Fatalf("%d calls replaced the lock, want 1", len(winners))
	}
	if read, err := store.Get(ctx, winners[0].ID); err != nil || read.AcquisitionID != winners[0].AcquisitionID {
		t.Errorf("Get = %+v, %v, want %+v", read, err, winners[0])
	}
}

func testHandOverLeftBefore(t *testing.T, newStore NewStore) {
	ctx, store, _ := newStore(t)
	req := lock.Request{UserID: uuid.New(), TTL: time.Hour}
	l := mustAcquire(ctx, t, store, req)
	left, leave := context.WithCancel(ctx)
	leave()
	if _, err := store.HandOver(left, l.ID, req); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if _, err := store.Get(ctx, l.ID); err != nil {
		t.Error(err)
	}
}
