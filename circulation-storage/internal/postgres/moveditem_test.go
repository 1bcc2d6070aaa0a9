package postgres_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas"
	"checkoutlock/schemas/convert"
)

// An item that is requested moves to another title, for which others wait too. Its requests keep the title that
// they were made for.
func TestQueue_OfAnItemThatMovedToAnotherTitle(t *testing.T) {
	t.Parallel()
	const shelved = "Open - Awaiting pickup 1"
	for name, tt := range map[string]struct {
		first  int // the request that is first by its id, 0 is the one for the item
		states []string
	}{
		"the item's request is first":  {first: 0, states: []string{shelved, notYet + "2", notYet + "3"}},
		"the title's request is first": {first: 1, states: []string{notYet + "2", shelved, notYet + "3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newHarness(t)
			l.setTitles(true)
			before, after := l.addTitle(1), l.addTitle(0)
			item := before.copies[0]
			ids := []uuid.UUID{uuid.New(), uuid.New()}
			slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
			requests := []request{
				{id: ids[tt.first], by: uuid.New(), of: before, item: item, position: 1},
				{id: ids[1-tt.first], by: uuid.New(), of: after, position: 1},
				{id: uuid.New(), by: uuid.New(), of: after, item: item, position: 9},
			}
			for _, r := range requests[:2] {
				l.exec(`INSERT INTO {schema}.request (id, jsonb) VALUES ($1, $2)`, r.id, r.doc())
			}
			l.exec(`UPDATE {schema}.item SET jsonb = jsonb || jsonb_build_object('holdingsRecordId', $2::uuid) WHERE id = $1`,
				item, after.holdings)
			placed, err := l.place(requests[2], schemas.RequestHold, true)
			if err != nil || field(t, placed.Request, "position") != 2.0 {
				t.Fatalf("placed %s, %v, want it behind both", placed.Request, err)
			}
			facts, err := l.commits.ReadCheckOutFacts(l.ctx(), schemas.CheckOutSubjects{ItemID: item.String(), TitleLevel: true})
			seen := convert.All(facts.Requests, func(r json.RawMessage) string { return field(t, r, "id").(string) })
			want := []string{ids[0].String(), ids[1].String(), requests[2].id.String()}
			if err != nil || !slices.Equal(seen, want) {
				t.Errorf("circulation sees the queue %v, %v, want %v", seen, err, want)
			}
			if err := l.shelve(item, requests[tt.first]); err != nil {
				t.Fatalf("check-in: %v", err)
			}
			l.wantStates(requests, tt.states...)
		})
	}
}

// The requests of a title leave out the positions that requests of another title have for the same item.
func TestQueue_MovesUpBesideRequestsOfAnotherTitle(t *testing.T) {
	t.Parallel()
	const shelved = "Open - Awaiting pickup "
	type titles struct {
		l     harness
		of    title // with a copy
		queue []request
		older request // of another title, for the same item as queue[1]
	}
	for name, tt := range map[string]struct {
		change func(titles) error
		older  string
		states []string
	}{
		"a request is cancelled": {
			change: func(s titles) error { return s.l.cancel(s.queue[0], true) },
			older:  "1", states: []string{"Closed - Cancelled", notYet + "2", notYet + "3"},
		},
		"a request expires": {
			change: func(s titles) error {
				s.l.expire(s.queue[0], "Open - Not yet filled", -1)
				_, err := s.l.commits.ExpireRequests(s.l.ctx(), 500)
				return err
			},
			older: "1", states: []string{"Closed - Unfilled", notYet + "2", notYet + "3"},
		},
		"the queue is ordered": {
			change: func(s titles) error {
				order := []request{s.queue[1], s.queue[0], s.queue[2]}
				_, err := s.l.orderQueue(fmt.Sprintf(`"instanceId":%q`, s.of.instance), order, 2, 1, 3)
				return err
			},
			older: "1", states: []string{notYet + "3", notYet + "2", notYet + "4"},
		},
		"a copy is lent": {
			change: func(s titles) error {
				c := s.l.withLock(s.queue[0].by, s.of.copies[0])
				c.request, c.titles = s.queue[0].id, true
				_, _, err := s.l.send(c)
				return err
			},
			older: "1", states: []string{filled, notYet + "2", notYet + "3"},
		},
		"a copy comes back": {
			change: func(s titles) error {
				s.l.exec(`UPDATE {schema}.request SET jsonb = jsonb || jsonb_build_object('position', position + 1) WHERE id <> $1`,
					s.queue[0].id)
				return s.l.shelve(s.of.copies[0], s.queue[0])
			},
			older: "2", states: []string{shelved + "1", notYet + "3", notYet + "4"},
		},
		"the item comes back": {
			change: func(s titles) error {
				s.l.exec(`UPDATE {schema}.request SET jsonb = jsonb || '{"requestLevel":"Title"}' WHERE id = $1`, s.older.id)
				s.l.exec(`UPDATE {schema}.item SET jsonb = jsonb || jsonb_build_object('holdingsRecordId', $2::uuid) WHERE id = $1`,
					s.older.item, s.of.holdings)
				return s.l.shelve(s.older.item, s.queue[0])
			},
			older: "1", states: []string{shelved + "2", notYet + "3", notYet + "4"},
		},
		"a request is moved to a copy": {
			change: func(s titles) error {
				_, err := s.l.move(s.queue[0], s.of.copies[0], schemas.RequestHold, true)
				return err
			},
			older: "1", states: []string{notYet + "4", notYet + "2", notYet + "3"},
		},
		"a request is moved to the item": {
			change: func(s titles) error {
				s.l.exec(`UPDATE {schema}.request SET jsonb = jsonb || '{"requestLevel":"Title","position":3}' WHERE id = $1`,
					s.older.id)
				_, err := s.l.move(s.queue[0], s.older.item, schemas.RequestHold, true)
				return err
			},
			older: "3", states: []string{notYet + "4", notYet + "1", notYet + "2"},
		},
		"another request for the item is placed": {
			change: func(s titles) error {
				s.l.exec(`UPDATE {schema}.request SET jsonb = jsonb || '{"requestLevel":"Title","position":4}' WHERE id = $1`,
					s.older.id)
				r := request{id: uuid.New(), by: uuid.New(), of: s.of, item: s.older.item, position: 1}
				_, err := s.l.place(r, schemas.RequestHold, true)
				if err == nil {
					s.l.wantStates([]request{r}, notYet+"5")
				}
				return err
			},
			older: "4", states: []string{notYet + "1", notYet + "2", notYet + "3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newHarness(t)
			l.setTitles(true)
			before, after := l.addTitle(1), l.addTitle(1)
			older := l.queue(before, before.copies[0], uuid.New())
			queue := l.queue(after, uuid.Nil, uuid.New(), uuid.New(), uuid.New())
			l.exec(`UPDATE {schema}.request SET jsonb = jsonb || jsonb_build_object('itemId', $2::uuid,
				'holdingsRecordId', $3::uuid) WHERE id = $1`, queue[1].id, before.copies[0], after.holdings)
			if err := tt.change(titles{l: l, of: after, queue: queue, older: older[0]}); err != nil {
				t.Fatal(err)
			}
			l.wantStates(queue, tt.states...)
			l.wantStates(older, notYet+tt.older)
		})
	}
}

// shelve commits the check-in of an item at version 1 that waits for the request's patron then.
func (l harness) shelve(item uuid.UUID, r request) error {
	l.t.Helper()
	checkIn, err := commit.ParseCheckIn(fmt.Appendf(nil, `{"id":%q,"itemId":%q,"servicePointId":%q,
		"checkInDate":"2026-03-10T00:00:00Z","itemVersion":1,"itemStatus":"Awaiting pickup","requestId":%q,
		"requestStatus":"Open - Awaiting pickup","titleLevelRequests":true}`, uuid.New(), item, uuid.New(), r.id))
	if err != nil {
		l.t.Fatal(err)
	}
	_, err = l.commits.CheckIn(l.ctx(), checkIn)
	return err
}

// A page of the old title that ends, or moves, leaves the item to the request of the new title that names it.
func TestQueue_KeepsAnItemThatARequestOfAnotherTitleNames(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(harness, request) error{
		"cancelled": func(l harness, r request) error { return l.cancel(r, true) },
		"deleted": func(l harness, r request) error {
			return l.changeRequest(r, `,"titleLevelRequests":true,"delete":true`, "", "")
		},
		"expired": func(l harness, r request) error {
			l.expire(r, "Open - Not yet filled", -1)
			_, err := l.commits.ExpireRequests(l.ctx(), 500)
			return err
		},
		"moved": func(l harness, r request) error {
			_, err := l.move(r, r.of.copies[1], schemas.RequestPage, true)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newHarness(t)
			l.setTitles(true)
			before, after := l.addTitle(2), l.addTitle(0)
			item := before.copies[0]
			page := l.queue(before, item, uuid.New())[0]
			l.exec(`UPDATE {schema}.item SET jsonb = jsonb || jsonb_build_object('holdingsRecordId', $2::uuid,
				'status', '{"name":"Paged"}'::jsonb) WHERE id = $1`, item, after.holdings)
			l.exec(`UPDATE {schema}.item SET jsonb = jsonb || '{"_version":1}' WHERE id = $1`, item)
			newer := request{id: uuid.New(), by: uuid.New(), of: after, item: item, position: 2}
			if _, err := l.place(newer, schemas.RequestHold, true); err != nil {
				t.Fatal(err)
			}
			if err := end(l, page); err != nil {
				t.Fatal(err)
			}
			if got := l.status(item); got != "Paged" {
				t.Errorf("the item is %s while %s waits for it, want Paged", got, newer.id)
			}
			l.wantStates([]request{newer}, notYet+"2")
		})
	}
}

// The order that a queue has already is no change, also if positions are left out.
func TestOrderQueue_RepeatedBesideRequestsOfAnotherTitle(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l.setTitles(true)
	l.recordEvents()
	before, after := l.addTitle(1), l.addTitle(0)
	l.queue(before, before.copies[0], uuid.New())
	queue := l.queue(after, uuid.Nil, uuid.New(), uuid.New())
	l.exec(`UPDATE {schema}.request SET jsonb = jsonb || jsonb_build_object('itemId', $2::uuid) WHERE id = $1`,
		queue[1].id, before.copies[0])
	turned, saw := []request{queue[1], queue[0]}, []int{2, 1}
	for range 3 {
		if _, err := l.orderQueue(fmt.Sprintf(`"instanceId":%q`, after.instance), turned, saw...); err != nil {
			t.Fatal(err)
		}
		l.wantStates(turned, notYet+"2", notYet+"3")
		saw = []int{2, 3}
	}
	if n := l.count(`SELECT count(*) FROM {schema}.outbox
		WHERE payload->>'logEventType' = 'REQUEST_REORDERED_EVENT'`); n != 1 {
		t.Errorf("got %d events, want 1", n)
	}
}
