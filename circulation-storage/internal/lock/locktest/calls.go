package locktest

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/lock"
)

// testLastCall checks that a lock shows the call that has it now, no earlier one, and none
// if none was named.
func testLastCall(t *testing.T, newStore NewStore) {
	ctx, store, ager := newStore(t)
	user, first, second := uuid.New(), uuid.New(), uuid.New()
	var l lock.Lock
	for _, tt := range []struct {
		request uuid.UUID
		call    string
		want    lock.Outcome
	}{
		{request: first, call: "1/circulation", want: lock.Granted},
		{request: first, call: "2/circulation", want: lock.Renewed},
		{request: second, call: "3/circulation", want: lock.TakenOver},
		{request: second, call: "", want: lock.Renewed},
		{request: uuid.Nil, call: "4/circulation", want: lock.TakenOver},
		{request: uuid.Nil, call: "", want: lock.TakenOver},
		{request: uuid.Nil, call: "5/circulation", want: lock.TakenOver},
	} {
		if tt.want == lock.TakenOver {
			ager.Age(ctx, t, l.ID, 2*time.Hour)
		}
		got, outcome, err := store.Acquire(ctx, lock.Request{UserID: user, TTL: time.Hour, AcquisitionID: tt.request, OkapiRequestID: tt.call})
		if err != nil || outcome != tt.want || got.OkapiRequestID != tt.call {
			t.Fatalf("call %q: %s %+v, %v, want %s with the call", tt.call, outcome, got, err, tt.want)
		}
		l = got
		checkCall(ctx, t, store, l.ID, tt.call)
	}
	if _, _, err := store.Acquire(ctx, lock.Request{UserID: user, TTL: time.Hour, OkapiRequestID: "6/circulation"}); err == nil {
		t.Fatal("a held lock was given away")
	}
	if got, err := store.Release(ctx, l.ID); err != nil || got.OkapiRequestID != "5/circulation" {
		t.Errorf("Release = %+v, %v, want the holder's call, not that of the one who was refused", got, err)
	}
}

// checkCall checks the call of the store's only lock.
func checkCall(ctx context.Context, t *testing.T, store lock.Store, id uuid.UUID, want string) {
	t.Helper()
	if got, err := store.Get(ctx, id); err != nil || got.OkapiRequestID != want {
		t.Errorf("Get = %+v, %v, want the call %q", got, err, want)
	}
	locks, _, err := store.List(ctx, lock.Filter{Limit: 10})
	if err != nil || len(locks) != 1 || locks[0].ID != id || locks[0].OkapiRequestID != want {
		t.Errorf("List = %+v, %v, want lock %s with the call %q", locks, err, id, want)
	}
}
