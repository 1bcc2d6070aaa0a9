package events_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/events"
)

func TestOutboxStore_Fence(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	one, other := uuid.New(), uuid.New()
	h.add(uuid.New(), "kept")
	read, err := h.store.Next(h.ctx(), 0, math.MaxInt64, 10, false)
	if err != nil || len(read.Events) != 1 || read.Age <= 0 {
		t.Fatal(read, err)
	}
	row := read.Events[0].ID
	first, leased, err := h.store.Lease(h.ctx(), one, time.Minute)
	if err != nil || !leased {
		t.Fatal(leased, err)
	}
	if err := h.store.GiveUp(h.ctx(), other); err != nil { // which it has not
		t.Fatal(err)
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
	lost := events.Lease{Holder: other, Fence: back.Fence} // by a crash of the server
	for _, l := range []events.Lease{first, lost} {
		if held, err := h.store.SetAside(h.ctx(), l, row, "bad"); err != nil || held || h.aside() != 0 {
			t.Errorf("got %t, %v: %+v sets an event aside", held, err, l)
		}
		if held, err := h.store.Delete(h.ctx(), l, []int64{row}); err != nil || held || h.left() != 1 {
			t.Errorf("got %t, %v: %+v deletes", held, err, l)
		}
	}
	if held, err := h.store.SetAside(h.ctx(), back, row, "bad"); err != nil || !held || h.aside() != 1 {
		t.Errorf("got %t, %v, %d set aside, want it set aside", held, err, h.aside())
	}
	if held, err := h.store.Delete(h.ctx(), back, []int64{row}); err != nil || !held || h.left() != 0 {
		t.Errorf("got %t, %v, %d left, want it deleted", held, err, h.left())
	}
}

// A part begins after a row and ends with one. What was set aside counts for the newest id alone.
func TestOutboxStore_ReadsAPart(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for range 6 {
		h.add(uuid.New(), "some")
	}
	all, err := h.store.Next(h.ctx(), 0, math.MaxInt64, 10, false)
	if err != nil || len(all.Events) != 6 || all.Newest != all.Events[5].ID {
		t.Fatal(all, err)
	}
	h.exec(`UPDATE {schema}.outbox SET refused = 'bad' WHERE id = ANY ($1)`, []int64{all.Events[2].ID, all.Newest})
	id := func(i int) int64 { return all.Events[i].ID }
	for _, tt := range []struct {
		name        string
		after, last int64
		limit       int
		want        []int64
	}{
		{name: "all", after: 0, last: math.MaxInt64, limit: 10, want: []int64{id(0), id(1), id(3), id(4)}},
		{name: "the first ones", after: 0, last: math.MaxInt64, limit: 2, want: []int64{id(0), id(1)}},
		{name: "after the second", after: id(1), last: math.MaxInt64, limit: 10, want: []int64{id(3), id(4)}},
		{name: "up to the fourth", after: id(0), last: id(3), limit: 10, want: []int64{id(1), id(3)}},
		{name: "after the last", after: id(4), last: id(4), limit: 10, want: nil},
	} {
		read, err := h.store.Next(h.ctx(), tt.after, tt.last, tt.limit, false)
		var got []int64
		for _, e := range read.Events {
			got = append(got, e.ID)
		}
		if err != nil || !slices.Equal(got, tt.want) || got != nil && read.Newest != all.Newest {
			t.Errorf("%s: got %d, newest %d, %v, want %d, newest %d", tt.name, got, read.Newest, err, tt.want, all.Newest)
		}
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
