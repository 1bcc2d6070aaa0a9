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
