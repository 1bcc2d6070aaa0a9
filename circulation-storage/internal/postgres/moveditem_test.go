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
			checkIn, err := commit.ParseCheckIn(fmt.Appendf(nil, `{"id":%q,"itemId":%q,"servicePointId":%q,
				"checkInDate":"2026-03-10T00:00:00Z","itemVersion":1,"itemStatus":"Awaiting pickup","requestId":%q,
				"requestStatus":"Open - Awaiting pickup","titleLevelRequests":true}`, uuid.New(), item, uuid.New(), ids[0]))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := l.commits.CheckIn(l.ctx(), checkIn); err != nil {
				t.Fatalf("check-in: %v", err)
			}
			l.wantStates(requests, tt.states...)
		})
	}
}

// The requests of a title leave out the positions that requests of another title have for the same item.
func TestQueue_MovesUpBesideRequestsOfAnotherTitle(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(harness, []request) error
		states []string
	}{
		"a request is cancelled": {
			change: func(l harness, queue []request) error { return l.cancel(queue[0], true) },
			states: []string{"Closed - Cancelled", notYet + "2", notYet + "3"},
		},
		"a request expires": {
			change: func(l harness, queue []request) error {
				l.expire(queue[0], "Open - Not yet filled", -1)
				_, err := l.commits.ExpireRequests(l.ctx(), 500)
				return err
			},
			states: []string{"Closed - Unfilled", notYet + "2", notYet + "3"},
		},
		"the queue is ordered": {
			change: func(l harness, queue []request) error {
				order := []request{queue[1], queue[0], queue[2]}
				_, err := l.orderQueue(fmt.Sprintf(`"instanceId":%q`, queue[0].of.instance), order, 2, 1, 3)
				return err
			},
			states: []string{notYet + "3", notYet + "2", notYet + "4"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newHarness(t)
			l.setTitles(true)
			before, after := l.addTitle(1), l.addTitle(0)
			older := l.queue(before, before.copies[0], uuid.New())
			queue := l.queue(after, uuid.Nil, uuid.New(), uuid.New(), uuid.New())
			l.exec(`UPDATE {schema}.request SET jsonb = jsonb || jsonb_build_object('itemId', $2::uuid,
				'holdingsRecordId', $3::uuid) WHERE id = $1`, queue[1].id, before.copies[0], after.holdings)
			if err := tt.change(l, queue); err != nil {
				t.Fatal(err)
			}
			l.wantStates(queue, tt.states...)
			l.wantStates(older, notYet+"1")
		})
	}
}
