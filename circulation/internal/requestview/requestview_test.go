package requestview_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/related"
	"checkoutlock/circulation/internal/requestview"
	"checkoutlock/schemas/fault"
)

// shelf has one book on loan, two patrons and a desk. The other records do not exist.
type shelf struct {
	related.Records
	err error
}

var errNone = fault.New(fault.NotFound, "none")

func (s shelf) Users(context.Context, []string) ([]library.User, error) {
	address := library.Address{AddressTypeID: "home", AddressLine1: "1 Street", City: "Bath"}
	return []library.User{
		{
			ID: "ann", Barcode: "569", PatronGroup: "staff",
			Personal: library.Personal{FirstName: "Ann", LastName: "Reader", Addresses: []library.Address{address}},
		},
		{ID: "ben", Barcode: "570", PatronGroup: "gone", Personal: library.Personal{LastName: "Proxy"}},
	}, s.err
}

func (s shelf) Items(context.Context, []string) ([]library.Item, error) {
	return []library.Item{{
		ID: "book", Barcode: "036", HoldingsRecordID: "h", EffectiveLocationID: "main", MaterialTypeID: "m",
		PermanentLoanTypeID: "t", Status: library.Status{Name: "Checked out"},
		CallNumber: library.CallNumber{CallNumber: "PS3", Prefix: "f"}, Volume: "1", Enumeration: "e", Chronology: "c",
		DisplaySummary: "d",
	}}, nil
}

func (s shelf) HoldingsRecords(context.Context, []string) ([]library.Holdings, error) {
	return []library.Holdings{{ID: "h", InstanceID: "title", CopyNumber: "c.2"}}, nil
}

func (s shelf) Instances(context.Context, []string) ([]library.Instance, error) {
	return []library.Instance{{
		ID: "title", Title: "Interesting Times", Contributors: []library.Contributor{{Name: "Pratchett, T."}},
		Identifiers: []library.Identifier{{TypeID: "isbn", Value: "0552142352"}}, Editions: []string{"1st"},
		Publication: []library.Publication{{Publisher: "Corgi", Place: "London", DateOfPublication: "1995", Role: "p"}},
	}}, nil
}

func (s shelf) OpenLoans(context.Context, []string) ([]library.OpenLoan, error) {
	return []library.OpenLoan{
		{ItemID: "book", DueDate: library.Instant{Time: time.Date(2026, 4, 1, 10, 0, 0, 0, time.UTC)}},
	}, nil
}

func (s shelf) Location(context.Context, string) (library.Location, error) {
	return library.Location{ID: "main", Name: "Main", Code: "M", LibraryID: "science"}, nil
}

func (s shelf) Named(_ context.Context, kind library.NamedKind, id string) (library.Named, error) {
	return library.Named{ID: id, Name: map[library.NamedKind]string{
		library.LibraryUnit: "Science", library.MaterialType: "Book", library.LoanType: "Short",
	}[kind]}, nil
}

func (s shelf) ServicePoint(_ context.Context, id string) (library.ServicePoint, error) {
	if id != "desk" {
		return library.ServicePoint{}, errNone
	}
	return library.ServicePoint{
		ID: id, Name: "Desk", Code: "d", DiscoveryDisplayName: "Front desk", PickupLocation: true,
	}, nil
}

func (s shelf) Group(_ context.Context, id string) (library.Group, error) {
	if id != "staff" {
		return library.Group{}, errNone
	}
	return library.Group{ID: id, Group: "Staff", Desc: "who works here"}, nil
}

const (
	title = `{"title":"Interesting Times","identifiers":[{"identifierTypeId":"isbn","value":"0552142352"}],
		"editions":["1st"],"contributorNames":[{"name":"Pratchett, T."}],
		"publication":[{"publisher":"Corgi","place":"London","dateOfPublication":"1995","role":"p"}]}`
	stored = `{"id":"r","itemId":"book","requesterId":"ann","proxyUserId":"ben","pickupServicePointId":"desk",
		"deliveryAddressTypeId":"home","instanceId":"title","instance":{"title":"Old"},
		"printDetails":{"printCount":1,"requesterId":"ann"},
		"item":{"barcode":"old","itemEffectiveLocationName":"kept"},"requester":{"lastName":"Old"},
		"unknown":12345678901234567890}`
	rendered = `{"id":"r","itemId":"book","requesterId":"ann","proxyUserId":"ben","pickupServicePointId":"desk",
		"deliveryAddressTypeId":"home","instanceId":"title","instance":` + title + `,
		"printDetails":{"printCount":1,"requesterId":"ann","lastPrintRequester":{"firstName":"Ann","lastName":"Reader"}},
		"item":{"barcode":"036","itemEffectiveLocationName":"kept","loanTypeId":"t","loanTypeName":"Short",
		"holdingsRecordId":"h","instanceId":"title","location":{"name":"Main",
		"libraryName":"Science","code":"M"},
			"contributorNames":[{"name":"Pratchett, T."}],"enumeration":"e","volume":"1","chronology":"c","displaySummary":"d",
			"status":"Checked out",
			"callNumber":"PS3","callNumberComponents":{"callNumber":"PS3","prefix":"f"},"copyNumber":"c.2","materialTypeId":"m",
			"materialType":"Book"},
		"loan":{"dueDate":"2026-04-01T10:00:00.000Z"},
		"requester":{"firstName":"Ann","lastName":"Reader","barcode":"569","patronGroupId":"staff",
		"patronGroup":{"id":"staff","group":"Staff","desc":"who works here"}},
		"proxy":{"lastName":"Proxy","barcode":"570","patronGroupId":"gone"},
		"pickupServicePoint":{"name":"Desk","code":"d","discoveryDisplayName":"Front desk","pickupLocation":true},
		"deliveryAddress":{"addressTypeId":"home","addressLine1":"1 Street","city":"Bath"},"unknown":12345678901234567890}`
)

func parse(t *testing.T, raw string) (v map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(raw), &v); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return v
}

func TestRenderPage(t *testing.T) {
	t.Parallel()
	const bare = `{"id":"title level","requesterId":"gone","pickupServicePointId":"gone"}`
	const ofTitle = `{"id":"title level","instanceId":"title"`
	views, err := requestview.RenderPage(t.Context(), shelf{}, []json.RawMessage{
		json.RawMessage(stored), json.RawMessage(bare), json.RawMessage(ofTitle + "}"),
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{rendered, bare, ofTitle + `,"instance":` + title + "}"} {
		if got := parse(t, string(views[i])); !reflect.DeepEqual(got, parse(t, want)) {
			t.Errorf("got  %v\nwant %v", got, parse(t, want))
		}
	}
}

// Storage keeps properties of requests that it does not know.
func TestRenderOne_ReplacesWhatIsNoObject(t *testing.T) {
	t.Parallel()
	for _, kept := range []string{`"soon"`, `[]`, `7`} {
		request := json.RawMessage(`{"itemId":"book","loan":` + kept + `}`)
		view, err := requestview.RenderOne(t.Context(), shelf{}, request)
		if err != nil {
			t.Errorf("%s: %v", kept, err)
			continue
		}
		want := map[string]any{"dueDate": "2026-04-01T10:00:00.000Z"}
		if got := parse(t, string(view))["loan"]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", kept, got, want)
		}
	}
}

func TestRenderOne_FailsIfRecordsCannotBeRead(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	if _, err := requestview.RenderOne(t.Context(), shelf{err: down}, json.RawMessage(stored)); !errors.Is(err, down) {
		t.Errorf("got %v, want %v", err, down)
	}
	if _, err := requestview.RenderOne(t.Context(), shelf{}, json.RawMessage(`[]`)); err == nil {
		t.Error("a list passed for a request")
	}
}
