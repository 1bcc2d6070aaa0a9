package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// place puts a request at the end of its queue. It may be called from any
// goroutine.
func (l harness) place(r request, kind string, titles bool) (schemas.PlacedRequest, error) {
	return l.commits.Place(l.ctx(), l.parsePlacement(r, kind, titles))
}

// parsePlacement returns a placement without an id.
func (l harness) parsePlacement(r request, kind string, titles bool) commit.Placement {
	version := ""
	if r.item != uuid.Nil {
		version = `,"itemVersion":1`
	}
	doc := strings.Replace(r.doc(), `"requestType":"Hold"`, fmt.Sprintf(`"requestType":%q`, kind), 1)
	p, err := commit.ParsePlacement(fmt.Appendf(nil, `{"request":%s,"titleLevelRequests":%t%s}`, doc, titles, version))
	if err != nil {
		l.t.Error(err)
	}
	return p
}

func TestPlace_GoesToTheEndOfTheQueue(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	of := l.addTitle(2)
	l.queue(of, of.copies[0], uuid.New(), uuid.New())
	tests := []struct {
		item     uuid.UUID
		titles   bool
		position float64
	}{
		{item: of.copies[0], titles: false, position: 3}, // the item's queue
		{item: of.copies[1], titles: false, position: 1}, // that of another copy
		{item: of.copies[1], titles: true, position: 4},  // the title's
		{item: uuid.Nil, titles: true, position: 5},
	}
	for _, tt := range tests {
		l.setTitles(tt.titles)
		r := request{id: uuid.New(), by: uuid.New(), of: of, item: tt.item, position: 99}
		got, err := l.place(r, "Hold", tt.titles)
		if err != nil || field(t, got.Request, "position") != tt.position || field(t, got.Request, "future", "a") != 1.50 {
			t.Errorf("%+v: got %s, %v", tt, got.Request, err)
		}
		if (got.Item == nil) != (tt.item == uuid.Nil) {
			t.Errorf("%+v: got the item %s", tt, got.Item)
		}
		again, err := l.place(r, "Hold", tt.titles)
		if err != nil || field(t, again.Request, "position") != tt.position {
			t.Errorf("%+v, the same again: got %s, %v", tt, again.Request, err)
		}
	}
	if n := l.count(`SELECT count(*) FROM {schema}.request`); n != 2+len(tests) {
		t.Errorf("got %d requests, want each once", n)
	}
}

// The answer to a placement is lost, and others delete the request before it is sent again.
func TestPlace_RepeatedAfterADeletion(t *testing.T) {
	t.Parallel()
	eachLevel(t, func(t *testing.T, l harness, titles bool) {
		l.recordEvents()
		of := l.addTitle(1)
		r := request{id: uuid.New(), by: uuid.New(), of: of, item: of.copies[0], position: 1}
		p := l.parsePlacement(r, "Hold", titles)
		p.ID = uuid.New()
		for range 2 {
			if got, err := l.commits.Place(l.ctx(), p); err != nil || field(t, got.Request, "position") != 1.0 {
				t.Fatalf("got %s, %v", got.Request, err)
			}
		}
		deletes := fmt.Sprintf(`,"delete":true,"titleLevelRequests":%t`, titles)
		if err := l.changeRequest(r, deletes, "", ""); err != nil {
			t.Fatal(err)
		}
		if got, err := l.commits.Place(l.ctx(), p); !fault.Is(err, fault.NotFound) {
			t.Errorf("got %s, %v, want %s", got.Request, err, fault.NotFound)
		}
		if n := l.count(`SELECT count(*) FROM {schema}.outbox WHERE record_id = $1 AND event_type = 'CREATED'`,
			r.id); n != 1 {
			t.Errorf("got %d events of a new request, want 1", n)
		}
		if n := l.count(`SELECT count(*) FROM {schema}.request`); n != 0 {
			t.Error("the deleted request is there")
		}
		p.ID = uuid.New()
		if _, err := l.commits.Place(l.ctx(), p); err != nil {
			t.Errorf("another placement with the request's id: got %v", err)
		}
	})
}

// One placement is sent many times at once.
func TestPlace_RepeatsAtOnce(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	of := l.addTitle(1)
	p := l.parsePlacement(request{id: uuid.New(), by: uuid.New(), of: of, item: of.copies[0], position: 1}, "Hold", false)
	p.ID = uuid.New()
	if got := race(rivals, func(int) error { _, err := l.commits.Place(l.ctx(), p); return err }); got[""] != rivals {
		t.Errorf("got %v, want success each time", got)
	}
	if n := l.count(`SELECT count(*) FROM {schema}.request`); n != 1 {
		t.Errorf("got %d requests, want 1", n)
	}
}

func TestPlace_PagesAnAvailableItem(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	of := l.addTitle(1)
	got, err := l.place(request{id: uuid.New(), by: uuid.New(), of: of, item: of.copies[0], position: 1}, "Page", false)
	if err != nil || field(t, got.Item, "status", "name") != "Paged" || field(t, got.Item, "_version") != 2.0 {
		t.Errorf("got %s, %v, want the item paged", got.Item, err)
	}
	_, err = l.place(request{id: uuid.New(), by: uuid.New(), of: of, item: of.copies[0], position: 1}, "Page", false)
	if !fault.Is(err, fault.ItemChanged) {
		t.Errorf("a second page, judged before the first: got %v, want %s", err, fault.ItemChanged)
	}
	if n := l.count(`SELECT count(*) FROM {schema}.request`); n != 1 {
		t.Errorf("got %d requests, want 1", n)
	}
}

// Requests for one title, some for its copies, placed all at once: each has a
// position of its own and none is left out. One patron gets one of them.
func TestPlace_ManyAtOnce(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l.setTitles(true)
	of := l.addTitle(2)
	twice := uuid.New()
	got := race(rivals, func(i int) error {
		r := request{id: uuid.New(), by: uuid.New(), of: of, position: 1}
		if i%2 == 0 {
			r.item = of.copies[i/2%2]
		}
		if i == 1 || i == 3 {
			r.by = twice
		}
		_, err := l.place(r, "Hold", true)
		return err
	})
	if got[""] != rivals-1 || got[fault.Invalid] != 1 {
		t.Errorf("got %v, want all but the second one of the same patron", got)
	}
	if n := l.count(`SELECT count(*) FROM (SELECT position, row_number() OVER (ORDER BY position) n
		FROM {schema}.request) q WHERE position <> n`); n != 0 {
		t.Errorf("%d requests are at a wrong position", n)
	}
}

// A request placed during a check-out sees it, or the check-out sees the request.
func TestPlace_BesideACheckOut(t *testing.T) {
	t.Parallel()
	eachLevel(t, func(t *testing.T, l harness, titles bool) {
		lent, waits := 0, 0
		for range rivals {
			of := l.addTitle(1)
			c := l.withLock(uuid.New(), of.copies[0])
			c.titles = titles
			r := request{id: uuid.New(), by: uuid.New(), of: of, item: of.copies[0], position: 1}
			var lending, placing error
			race(2, func(i int) error {
				if i == 0 {
					_, _, lending = l.send(c)
					return lending
				}
				_, placing = l.place(r, "Page", titles)
				return placing
			})
			switch {
			case lending == nil && fault.Is(placing, fault.ItemChanged):
				lent++
			case placing == nil && (fault.Is(lending, fault.RequestChanged) || fault.Is(lending, fault.ItemChanged)):
				waits++
			default:
				t.Errorf("lending: %v, placing: %v; want one of them refused", lending, placing)
			}
		}
		if loans := l.count(`SELECT count(*) FROM {schema}.loan`); loans != lent || lent+waits != rivals {
			t.Errorf("got %d loans, %d lent, %d waiting", loans, lent, waits)
		}
	})
}

// The first patron of the queue borrows the copy while others join the end of the
// queue. No request is lost and no position is left out.
func TestPlace_WhileTheQueueMoves(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l.setTitles(true)
	for range 5 {
		of, patron := l.addTitle(1), uuid.New()
		queue := l.queue(of, uuid.Nil, patron, uuid.New(), uuid.New())
		c := l.withLock(patron, of.copies[0])
		c.request, c.titles = queue[0].id, true
		got := race(6, func(i int) error {
			if i == 0 {
				_, _, err := l.send(c)
				return err
			}
			_, err := l.place(request{id: uuid.New(), by: uuid.New(), of: of, position: 1}, "Hold", true)
			return err
		})
		if got[""] != 6 {
			t.Errorf("got %v, want no refusal", got)
		}
		if n := l.count(`SELECT count(*) FROM (SELECT position, row_number() OVER (ORDER BY position) n
			FROM {schema}.request WHERE instance_id = $1 AND is_open) q WHERE position <> n`, of.instance); n != 0 {
			t.Errorf("%d requests are at a wrong position", n)
		}
	}
}
