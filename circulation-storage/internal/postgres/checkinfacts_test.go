package postgres_test

import (
	"encoding/json"
	"fmt"
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

func TestCommitStore_ReadCheckOutFacts_OfACheckIn(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	v := l.addTitle(1)
	names := map[string]string{}
	for _, table := range []string{
		"locinstitution", "loccampus", "loclibrary", "loan_type", "service_point", "usergroup",
	} {
		names[table] = l.addNamed(table).String()
	}
	pickup := l.addNamed("service_point").String()
	location := uuid.New()
	l.exec(`INSERT INTO {schema}.location (id, jsonb) VALUES ($1::uuid, jsonb_build_object('libraryId', $2::text, `+
		`'campusId', $3::text, 'institutionId', $4::text, 'primaryServicePoint', $5::text))`,
		location, names["loclibrary"], names["loccampus"], names["locinstitution"], names["service_point"])
	ann, ben := l.addUser("p-1"), l.addUser("p-2")
	l.exec(`UPDATE {schema}.users SET jsonb = jsonb || jsonb_build_object('patronGroup', $2::text) WHERE id = $1::uuid`,
		ann, names["usergroup"])
	item := l.addItem("Available", fmt.Sprintf(
		`,"barcode":"B-1","holdingsRecordId":%q,"effectiveLocationId":%q,"permanentLoanTypeId":%q`, v.holdings, location,
		names["loan_type"],
	))
	l.queue(v, item, ann, ben)
	l.exec(`UPDATE {schema}.request SET jsonb = jsonb || jsonb_build_object('pickupServicePointId', $2::text) WHERE `+
		`item_id = $1::uuid`, item, pickup)

	var slip struct {
		LoanType, Library, Campus, Institution, Requester, Group struct{ ID string }
		ServicePoints                                            []struct{ ID string }
	}
	facts := l.readFacts(schemas.CheckOutSubjects{ItemBarcode: "b-1", ServicePointID: pickup})
	if err := json.Unmarshal(facts.Slip, &slip); err != nil {
		t.Fatalf("%v in %s", err, facts.Slip)
	}
	for _, r := range []struct{ name, got, want string }{
		{name: "loan type", got: slip.LoanType.ID, want: names["loan_type"]},
		{name: "library", got: slip.Library.ID, want: names["loclibrary"]},
		{name: "campus", got: slip.Campus.ID, want: names["loccampus"]},
		{name: "institution", got: slip.Institution.ID, want: names["locinstitution"]},
		{name: "requester", got: slip.Requester.ID, want: ann.String()},
		{name: "group", got: slip.Group.ID, want: names["usergroup"]},
	} {
		if r.got != r.want {
			t.Errorf("%s: got %q, want %s", r.name, r.got, r.want)
		}
	}
	if len(slip.ServicePoints) != 2 {
		t.Errorf("got service points %v, want that of the location and the pickup point once", slip.ServicePoints)
	}
	if bare := l.readFacts(schemas.CheckOutSubjects{ItemBarcode: "b-1"}); bare.Slip != nil {
		t.Errorf("a check-out got the slip %s", bare.Slip)
	}
	if none := l.readFacts(schemas.CheckOutSubjects{ItemBarcode: "x", ServicePointID: pickup}); none.Slip != nil {
		t.Errorf("no item has the slip %s", none.Slip)
	}
}
