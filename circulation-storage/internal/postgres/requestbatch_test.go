package postgres_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

// queueOf returns n open requests for one item, not yet stored.
func queueOf(tb testing.TB, n int) []records.Record {
	tb.Helper()
	item, title, holdings := uuid.NewString(), uuid.NewString(), uuid.NewString()
	queue := make([]records.Record, n)
	for i := range queue {
		queue[i] = parse(tb, records.Request, object{
			"itemId": item, "instanceId": title, "holdingsRecordId": holdings, "requesterId": uuid.NewString(),
			"requestType":  "Hold",
			"requestLevel": "Item", "requestDate": "2026-08-22T10:11:12Z", "fulfillmentPreference": "Hold Shelf",
			"status": "Open - Not yet filled", "position": i + 1,
		}, "")
	}
	return queue
}

// reversed is the queue the other way round.
func reversed(tb testing.TB, queue []records.Record) []records.Record {
	tb.Helper()
	turned := make([]records.Record, len(queue))
	for i, r := range queue {
		turned[i] = parse(tb, records.Request, r, "")
		turned[i]["position"] = len(queue) - i
	}
	return turned
}

// positions returns which position each of the requests has.
func (l library) positions(t *testing.T, queue []records.Record) string {
	t.Helper()
	got := make([]string, len(queue))
	for i, r := range queue {
		got[i] = fmt.Sprint(l.get(t, records.Request, r.ID())["position"])
	}
	return fmt.Sprint(got)
}

func TestRecordStore_NotesWhenARequestThatWaitedForPickupIsClosed(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	const closed = "awaitingPickupRequestClosedDate"
	for _, tt := range []struct {
		before, after string
		noted         bool
	}{
		{before: "Open - Awaiting pickup", after: "Closed - Pickup expired", noted: true},
		{before: "Open - Awaiting pickup", after: "Closed - Cancelled", noted: true},
		{before: "Open - Awaiting pickup", after: "Closed - Filled", noted: false},
		{before: "Open - Awaiting pickup", after: "Open - Not yet filled", noted: false},
		{before: "Open - Not yet filled", after: "Closed - Cancelled", noted: false},
	} {
		t.Run(tt.before+" to "+tt.after, func(t *testing.T) {
			r := l.create(t, records.Request, object{
				"instanceId": annID, "requesterId": benID, "requestType": "Hold", "requestLevel": "Title",
				"requestDate":           "2026-03-01T10:00:00Z",
				"fulfillmentPreference": "Hold Shelf", "status": tt.before,
			})
			r["status"] = tt.after
			batch := parse(t, records.Request, r, r.ID())
			if err := l.store.PutRequests(l.in(t), []records.Record{batch}); err != nil {
				t.Fatal(err)
			}
			list, err := pgtest.List(l.in(t), l.store, records.Request, records.Page{
				Query: `id==` + r.ID() + ` and ` + closed + `>""`,
			})
			if noted := list.Total == 1; err != nil || noted != tt.noted {
				t.Errorf("found by %s: %t, %v, want %t", closed, noted, err, tt.noted)
			}
			got := l.get(t, records.Request, r.ID())
			if date := got.Text(closed); (date == got.Text("metadata.updatedDate")) != tt.noted {
				t.Errorf("%s is %q, updated %q", closed, date, got.Text("metadata.updatedDate"))
			}
		})
	}
}

func TestPutRequests_WithoutPreparedStatements(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.store = postgres.NewRecordStore(openWith(t, pooled), func() {})
	queue := queueOf(t, 3)
	for _, requests := range [][]records.Record{queue, reversed(t, queue)} {
		if err := l.store.PutRequests(l.in(t), requests); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := l.positions(t, queue), "[3 2 1]"; got != want {
		t.Errorf("got positions %s, want %s", got, want)
	}
}

// A deadlock reaches no caller, and the queue has one order or the other.
func TestPutRequests_ManyAtOnceLeaveOneOrder(t *testing.T) {
	t.Parallel()
	l := newLibrary(t).warm(t)
	queue := queueOf(t, 4)
	if err := l.store.PutRequests(l.in(t), queue); err != nil {
		t.Fatal(err)
	}
	other := reversed(t, queue)
	mixed := slices.Clone(other)
	slices.Reverse(mixed) // the same, in another order
	orders := [][]records.Record{queue, other, mixed}
	codes := race(rivals, func(i int) error {
		if i%4 == 3 { // one request alone, where it may not stand
			return l.store.Update(l.in(t), records.Request, []records.Record{queue[0], other[0]}[i%8/4])
		}
		return l.store.PutRequests(l.in(t), orders[i%4%3])
	})
	if codes[""]+codes[fault.Invalid] != rivals || codes[""] < rivals*3/4 {
		t.Errorf("got %v, want successes, and Invalid for some of the single requests", codes)
	}
	if got := l.positions(t, queue); got != "[1 2 3 4]" && got != "[4 3 2 1]" {
		t.Errorf("got positions %s, want those of one order", got)
	}
}

func TestPutRequests_ThatAnotherCreatesMeanwhile(t *testing.T) {
	t.Parallel()
	l := newLibrary(t).warm(t)
	queue := queueOf(t, 3)
	if codes := race(rivals, func(int) error { return l.store.PutRequests(l.in(t), queue) }); codes[""] != rivals {
		t.Errorf("got %v, want %d successes", codes, rivals)
	}
	if got, want := l.positions(t, queue), "[1 2 3]"; got != want {
		t.Errorf("got positions %s, want %s", got, want)
	}
}
