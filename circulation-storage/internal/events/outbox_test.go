package events_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestOutboxStore_Fence(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	one, other := uuid.New(), uuid.New()
	h.add(uuid.New(), "kept")
	rows, age, err := h.store.Next(h.ctx(), 10, false)
	if err != nil || len(rows) != 1 || age <= 0 {
		t.Fatal(rows, age, err)
	}
	first, leased, err := h.store.Lease(h.ctx(), one, time.Minute)
	if err != nil || !leased {
		t.Fatal(leased, err)
	}
	if _, leased, err := h.store.Lease(h.ctx(), other, time.Minute); err != nil || leased {
		t.Errorf("got %t, %v: two have the lease", leased, err)
	}
	if again, leased, err := h.store.Lease(h.ctx(), one, time.Minute); err != nil || !leased || again != first {
		t.Errorf("a renewal: got %+v, %t, %v, want %+v", again, leased, err, first)
	}
	h.exec(`UPDATE {schema}.outbox_lease SET lease_until = now() + '1 hour'`) // the clock was set back
	if _, leased, err := h.store.Lease(h.ctx(), other, 0); err != nil || !leased {
		t.Fatal(leased, err)
	}
	back, leased, err := h.store.Lease(h.ctx(), one, time.Minute)
	if err != nil || !leased || back.Fence != first.Fence+2 {
		t.Fatalf("got %+v, %t, %v, want a third lease", back, leased, err)
	}
	if held, err := h.store.Delete(h.ctx(), first, []int64{rows[0].ID}); err != nil || held || h.left() != 1 {
		t.Errorf("got %t, %v: an old fence deletes", held, err)
	}
	if held, err := h.store.Delete(h.ctx(), back, []int64{rows[0].ID}); err != nil || !held || h.left() != 0 {
		t.Errorf("got %t, %v, %d left, want it deleted", held, err, h.left())
	}
}

func TestOutboxStore_SweepsOldEvents(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for range 3 {
		h.add(uuid.New(), "old")
	}
	h.exec(`UPDATE {schema}.outbox SET creation_date = now() - interval '2 hours'`)
	h.add(uuid.New(), "new")
	for i, want := range []int{2, 1, 0} {
		if n, err := h.store.Sweep(h.ctx(), time.Hour, 2); err != nil || n != want {
			t.Errorf("turn %d: got %d, %v, want %d", i, n, err, want)
		}
	}
	if n := h.left(); n != 1 {
		t.Errorf("%d are left, want the new one", n)
	}
}
