package requests_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

func TestReorder(t *testing.T) {
	t.Parallel()
	const body = `{"reorderedQueue":[{"id":"` + bookID + `","newPosition":1,"position":9},{"id":"` + wishID +
		`","newPosition":2}]}`
	tests := map[string]struct {
		titles, ofTitle bool
		turned          bool // on while the order is written
		body            string
		answer          error // of storage
		code            fault.Code
		says            string
	}{
		"an item's":         {body: body},
		"a title's":         {titles: true, ofTitle: true, body: body},
		"a list sent twice": {body: `{"reorderedQueue":5,` + body[1:]},
		"in upper case":     {body: strings.ReplaceAll(body, wishID, strings.ToUpper(wishID))},
		"with other members": {body: `{"itemId":5,"instanceId":"` + bookID + `","reorderedQueue":[{"id":"` + bookID +
			`","newPosition":1.0,"position":"first"},{"id":"` + wishID + `","newPosition":2}]}`},
		"an item of a title": {
			titles: true, body: body, code: fault.Invalid,
			says: "Refuse to reorder request queue, TLR feature status is ENABLED.",
		},
		"a title without one": {ofTitle: true, body: body, code: fault.Invalid, says: "TLR feature status is DISABLED."},
		"no list":             {body: `{}`, code: fault.Invalid, says: "reorderedQueue is required"},
		"no position": {
			body: `{"reorderedQueue":[{"id":"` + wishID + `"}]}`, code: fault.Invalid,
			says: "reorderedQueue[0].newPosition is required",
		},
		"no id": {
			body: `{"reorderedQueue":[{"id":"x","newPosition":1}]}`, code: fault.Invalid,
			says: "reorderedQueue[0].id must be a UUID",
		},
		"no JSON": {body: `{`, code: fault.Malformed},
		"another order before": {
			body: body, answer: fault.New(fault.RequestChanged, "read it again"), code: fault.Invalid,
			says: schemas.QueueOutdated,
		},
		"titles were turned on": {
			body: body, answer: fault.New(fault.RequestChanged, "turned on"), turned: true, code: fault.Invalid,
			says: "TLR feature status is ENABLED.",
		},
		"no right":           {body: body, answer: fault.New(fault.Forbidden, "no"), code: fault.Forbidden, says: "no"},
		"an answer was lost": {body: body, answer: fault.New(fault.Unavailable, "no answer")},
		"an empty queue": {
			body: body, answer: errNone, code: fault.NotFound, says: `Item record with ID "` + titleID + `" cannot be found`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, l := &fakeKeeper{}, newLibrary()
			l.Titles = tt.titles
			for i, id := range []string{wishID, bookID} {
				k.queue = append(k.queue, json.RawMessage(fmt.Sprintf(`{"id":%q,"position":%d}`, id, i+1)))
			}
			if tt.answer != nil {
				k.answers = []error{tt.answer}
			}
			if tt.turned {
				k.onChange = func() { l.Titles = true }
			}
			got, err := k.service(l).Reorder(t.Context(), titleID, tt.ofTitle, []byte(tt.body))
			if fault.CodeOf(err) != tt.code || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("got %v, want %q saying %q", err, tt.code, tt.says)
			}
			if err != nil {
				return
			}
			of := schemas.QueueOrder{ItemID: titleID}
			if tt.ofTitle {
				of = schemas.QueueOrder{InstanceID: titleID}
			}
			saw := fmt.Sprint(k.order.Queue[0].Position, k.order.Queue[1].Position)
			to := fmt.Sprint(k.order.Queue[0].NewPosition, k.order.Queue[1].NewPosition)
			if len(got) != 2 || k.order.ItemID != of.ItemID || k.order.InstanceID != of.InstanceID || saw != "2 1" ||
				k.order.Queue[0].ID != bookID ||
				to != "1 2" || uuid.Validate(k.order.ID) != nil {
				t.Errorf("got %s for %+v, want the positions that were read, and an id", got, k.order)
			}
		})
	}
}
