package postgres_test

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/schemas"
)

// The slip of a check-in names the patron of the request that the item is set aside for.
func TestCommitStore_ReadCheckOutFacts_NamesThePatronOfTheServedRequest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		titles bool
		first  string // what the request before has besides
	}{
		"behind a recall of another copy": {
			titles: true, first: `{"requestLevel":"Item","requestType":"Recall"}`,
		},
		"behind a request for the title, which are off": {
			first: `{"requestLevel":"Title","requestType":"Recall"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newHarness(t)
			l.setTitles(tt.titles)
			of := l.addTitle(2)
			ann, ben := l.addUser("p-1"), l.addUser("p-2")
			queue := l.queue(of, of.copies[0], ann, ben)
			l.exec(`UPDATE {schema}.request SET jsonb = jsonb || $2::jsonb WHERE id = $1`, queue[0].id, tt.first)
			if tt.titles {
				l.exec(`UPDATE {schema}.request SET jsonb = jsonb || jsonb_build_object('itemId', $2::uuid) WHERE id = $1`,
					queue[0].id, of.copies[1])
			}
			facts := l.readFacts(schemas.CheckOutSubjects{
				ItemID: of.copies[0].String(), ServicePointID: uuid.NewString(), TitleLevel: tt.titles,
			})
			var slip struct{ Requester struct{ ID string } }
			if err := json.Unmarshal(facts.Slip, &slip); err != nil || slip.Requester.ID != ben.String() {
				t.Errorf("got %s, %v, want %s", slip.Requester.ID, err, ben)
			}
		})
	}
}
