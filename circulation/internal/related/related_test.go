package related_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/related"
	"checkoutlock/schemas/fault"
)

const bookID, annID = "0bab56e5-1ab6-4ac2-afdf-8b2df0434378", "77477611-ab44-4082-a0d8-42f7acdfde11"

// records has one of each kind, and no names. err is of Instances.
type records struct {
	related.Records
	err   error
	named []string
}

func (r *records) Users(context.Context, []string) ([]library.User, error) {
	return []library.User{{ID: annID, PatronGroup: "G"}}, nil
}

func (r *records) Items(context.Context, []string) ([]library.Item, error) {
	return []library.Item{{
		ID: bookID, HoldingsRecordID: strings.ToUpper(annID), MaterialTypeID: "m", EffectiveLocationID: "L",
	}}, nil
}

func (r *records) HoldingsRecords(context.Context, []string) ([]library.Holdings, error) {
	return []library.Holdings{{ID: annID, InstanceID: strings.ToUpper(bookID)}}, nil
}

func (r *records) Instances(context.Context, []string) ([]library.Instance, error) {
	return []library.Instance{{ID: bookID, Title: "Emma"}}, r.err
}

func (r *records) OpenLoans(context.Context, []string) ([]library.OpenLoan, error) {
	return []library.OpenLoan{{ItemID: strings.ToUpper(bookID), UserID: annID}}, nil
}

func (r *records) Location(context.Context, string) (library.Location, error) {
	return library.Location{Name: "Main"}, nil
}

func (r *records) Group(_ context.Context, id string) (library.Group, error) {
	return library.Group{Group: "group " + id}, nil
}

func (r *records) Named(_ context.Context, _ library.NamedKind, id string) (library.Named, error) {
	r.named = append(r.named, id)
	return library.Named{}, fault.New(fault.NotFound, "no record %s", id)
}

func TestFetch_FindsRecordsByIDsInCapitals(t *testing.T) {
	t.Parallel()
	book, ann := strings.ToUpper(bookID), strings.ToUpper(annID)
	r := &records{}
	want := related.Wanted{Users: []string{ann}, Items: []string{book}, OpenLoans: true, GroupsOfUsers: true}
	f, err := related.Fetch(t.Context(), r, want)
	if err != nil {
		t.Fatal(err)
	}
	c := f.Copy(book)
	if c.Item.ID != bookID || c.Holdings.ID != annID || c.Instance.Title != "Emma" || c.Location.Name != "Main" ||
		f.Users[ann].ID != annID || f.OpenLoans[book].UserID != annID || f.Groups["G"].Group != "group G" {
		t.Errorf("got %+v and %+v", c, f)
	}
	if !slices.Equal(r.named, []string{"m"}) {
		t.Errorf("asked for the names of %q, want the material type's once; no library was wanted", r.named)
	}
	r.err = errors.New("down")
	if _, err := related.Fetch(t.Context(), r, want); !errors.Is(err, r.err) {
		t.Errorf("got %v, want %v", err, r.err)
	}
}
