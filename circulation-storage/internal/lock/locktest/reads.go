package locktest

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/lock"
)

func testListPages(t *testing.T, newStore NewStore) {
	ctx, store, ager := newStore(t)
	var want []uuid.UUID // oldest first
	for i := range 5 {
		l := mustAcquire(ctx, t, store, lock.Request{UserID: uuid.New(), TTL: time.Hour})
		ager.Age(ctx, t, l.ID, time.Duration(i)*50*time.Minute) // the last ones are outdated
		want = append([]uuid.UUID{l.ID}, want...)
	}
	for _, tt := range []struct {
		offset, limit int
		want          []uuid.UUID
	}{
		{offset: 0, limit: 10, want: want},
		{offset: 0, limit: 2, want: want[:2]},
		{offset: 2, limit: 2, want: want[2:4]},
		{offset: 4, limit: 2, want: want[4:]},
		{offset: 5, limit: 2, want: nil},
		{offset: 1000, limit: 10, want: nil},
		{offset: 0, limit: 0, want: nil},
	} {
		locks, total, err := store.List(ctx, lock.Filter{Offset: tt.offset, Limit: tt.limit})
		var got []uuid.UUID
		for _, l := range locks {
			got = append(got, l.ID)
		}
		if err != nil || total != 5 || !slices.Equal(got, tt.want) {
			t.Errorf("offset %d, limit %d: %v, %d in all, %v, want %v, 5 in all", tt.offset, tt.limit, got, total, err, tt.want)
		}
	}
}

func testListOfOne(t *testing.T, newStore NewStore) {
	ctx, store, _ := newStore(t)
	ann := mustAcquire(ctx, t, store, lock.Request{UserID: uuid.New(), TTL: time.Hour, AcquisitionID: uuid.New(), Holder: "kiosk-7"})
	mustAcquire(ctx, t, store, lock.Request{UserID: uuid.New(), TTL: time.Hour})
	got, total, err := store.List(ctx, lock.Filter{UserID: ann.UserID, Limit: 10})
	if err != nil || total != 1 || len(got) != 1 || Ageless(got[0]) != Ageless(ann) {
		t.Errorf("got %+v, %d in all, %v, want %+v alone", got, total, err, ann)
	}
}

func testListFiltered(t *testing.T, newStore NewStore) {
	ctx, store, ager := newStore(t)
	add := func(holder string, by time.Duration) uuid.UUID {
		l := mustAcquire(ctx, t, store, lock.Request{UserID: uuid.New(), TTL: time.Hour, Holder: holder})
		ager.Age(ctx, t, l.ID, by)
		return l.ID
	}
	old, ahead := add("a", 2*time.Hour), add("a", -2*time.Hour)
	live, other, unnamed := add("a", 0), add("A", 0), add("", 0)
	yes, no := true, false
	for name, tt := range map[string]struct {
		filter lock.Filter
		want   []uuid.UUID // oldest first
	}{
		"all":                        {lock.Filter{}, []uuid.UUID{old, live, other, unnamed, ahead}},
		"a holder, exactly":          {lock.Filter{Holder: "a"}, []uuid.UUID{old, live, ahead}},
		"no such holder":             {lock.Filter{Holder: "a%"}, nil},
		"outdated":                   {lock.Filter{Outdated: &yes}, []uuid.UUID{old, ahead}},
		"not outdated":               {lock.Filter{Outdated: &no}, []uuid.UUID{live, other, unnamed}},
		"a holder's, not outdated":   {lock.Filter{Holder: "a", Outdated: &no}, []uuid.UUID{live}},
		"another holder's, outdated": {lock.Filter{Holder: "A", Outdated: &yes}, nil},
	} {
		for limit := range len(tt.want) + 2 {
			tt.filter.Limit = limit
			locks, total, err := store.List(ctx, tt.filter)
			var got []uuid.UUID
			for _, l := range locks {
				got = append(got, l.ID)
				if tt.filter.Outdated != nil && l.Outdated != *tt.filter.Outdated {
					t.Errorf("%s: shows %+v", name, l)
				}
			}
			if want := tt.want[:min(limit, len(tt.want))]; err != nil || total != len(tt.want) || !slices.Equal(got, want) {
				t.Errorf("%s, limit %d: %v, %d in all, %v, want %v, %d in all", name, limit, got, total, err, want, len(tt.want))
			}
		}
	}
}

func testListEmpty(t *testing.T, newStore NewStore) {
	ctx, store, _ := newStore(t)
	mustAcquire(ctx, t, store, lock.Request{UserID: uuid.New(), TTL: time.Hour})
	got, total, err := store.List(ctx, lock.Filter{UserID: uuid.New(), Limit: 10})
	if err != nil || total != 0 || len(got) != 0 {
		t.Errorf("got %+v, %d in all, %v, want none", got, total, err)
	}
}

const grace = 10 * time.Minute

func testSweepOld(t *testing.T, newStore NewStore) {
	ctx, store, ager := newStore(t)
	kept := map[uuid.UUID]time.Duration{}
	for _, by := range []time.Duration{0, 59 * time.Minute, 69 * time.Minute, -9 * time.Minute, 71 * time.Minute, -11 * time.Minute} {
		l := mustAcquire(ctx, t, store, lock.Request{UserID: uuid.New(), TTL: time.Hour})
		ager.Age(ctx, t, l.ID, by)
		kept[l.ID] = by
	}
	n, err := store.Sweep(ctx, grace, 100)
	if err != nil || n != 2 {
		t.Errorf("swept %d, %v, want 2", n, err)
	}
	locks, _, err := store.List(ctx, lock.Filter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range locks {
		if by := kept[l.ID]; by == 71*time.Minute || by == -11*time.Minute {
			t.Errorf("a lock aged by %s is still there", by)
		}
	}
	if len(locks) != 4 {
		t.Errorf("%d locks are left, want 4", len(locks))
	}
}

func testSweepBatches(t *testing.T, newStore NewStore) {
	ctx, store, ager := newStore(t)
	for range 5 {
		l := mustAcquire(ctx, t, store, lock.Request{UserID: uuid.New(), TTL: time.Second})
		ager.Age(ctx, t, l.ID, time.Hour)
	}
	for _, want := range []int{2, 2, 1, 0} {
		if n, err := store.Sweep(ctx, grace, 2); err != nil || n != want {
			t.Errorf("swept %d, %v, want %d", n, err, want)
		}
	}
}

// testSweepBusy runs sweeps and takeovers of the same locks at once. All taken over locks
// stay.
func testSweepBusy(t *testing.T, newStore NewStore) {
	ctx, store, ager := newStore(t)
	users := make([]uuid.UUID, callers/2)
	for i := range users {
		users[i] = uuid.New()
		l := mustAcquire(ctx, t, store, lock.Request{UserID: users[i], TTL: time.Second})
		ager.Age(ctx, t, l.ID, time.Hour)
	}
	taken := make([]lock.Lock, len(users))
	atOnce(func(i int) {
		if i >= len(users) {
			if _, err := store.Sweep(ctx, grace, 3); err != nil {
				t.Errorf("Sweep: %v", err)
			}
			return
		}
		l, _, err := acquireRepeatedly(ctx, store, lock.Request{UserID: users[i], TTL: time.Hour})
		if err != nil {
			t.Errorf("Acquire: %v", err)
		}
		taken[i] = l
	})
	for _, l := range taken {
		if _, err := store.Get(ctx, l.ID); err != nil {
			t.Errorf("a lock taken over during a sweep is gone: %v", err)
		}
	}
}
