package loanview_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/loanview"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas/fault"
)

// storedLoan has fields that this version does not know, which the view keeps.
const storedLoan = `{"id":"loan1","userId":"user1","itemId":"item1","loanDate":"2026-03-18T11:43:54.000Z",
	"action":"checkedout",
	"status":{"name":"Open"},"itemStatus":"Checked out",
	"agedToLostDelayedBilling":{"lostItemHasBeenBilled":false},"loanPolicyId":"policy1","overdueFinePolicyId":"fines1",
	"lostItemPolicyId":"fees1","checkoutServicePointId":"desk1","checkinServicePointId":"desk3",
	"patronGroupIdAtCheckout":"group1","renewalCount":0,"bigNumber":12345678901234567890,
	"metadata":{"createdDate":"2026-03-18"}}`

var (
	someItem = library.Item{
		ID: "item1", Barcode: "036", HoldingsRecordID: "holdings1", EffectiveLocationID: "loc1", MaterialTypeID: "book",
		Status: library.Status{Name: "Checked out", Date: "2026-03-18"}, Volume: "v1",
		CallNumber: library.CallNumber{CallNumber: "PS3", Prefix: "A"}, InTransitDestinationServicePointID: "desk2",
		AccessionNumber: "a1", AdministrativeNotes: []string{"fragile"},
	}
	someHoldings = library.Holdings{ID: "holdings1", InstanceID: "instance1", CopyNumber: "c2"}
	someInstance = library.Instance{
		ID: "instance1", HRID: "in01", Title: "Semantic web",
		Contributors: []library.Contributor{{Name: "Antoniou"}, {Name: "Harmelen", Primary: true}},
		Editions:     []string{"1st"}, PhysicalDescriptions: []string{"xx, 238 p."},
		Publication: []library.Publication{{DateOfPublication: "2004"}, {}}, Series: []library.Series{{Value: "Cooperative"}},
	}
	someUser = library.User{
		ID: "user1", Barcode: "569", PatronGroup: "group2",
		Personal: library.Personal{FirstName: "Jessica", LastName: "Pond"},
	}
	someGroup = library.Group{ID: "group1", Group: "staff"}
)

const fullLoan = `{"id":"loan1","userId":"user1","itemId":"item1","loanDate":"2026-03-18T11:43:54.000Z",
	"action":"checkedout",
	"status":{"name":"Open"},"loanPolicyId":"policy1","overdueFinePolicyId":"fines1","lostItemPolicyId":"fees1",
	"checkoutServicePointId":"desk1","checkinServicePointId":"desk3",
	"renewalCount":0,
	"bigNumber":12345678901234567890,"metadata":{"createdDate":"2026-03-18"},
	"item":{"id":"item1","holdingsRecordId":"holdings1","instanceId":"instance1","instanceHrid":"in01",
	"title":"Semantic web",
		"barcode":"036","contributors":[{"name":"Antoniou"},{"name":"Harmelen"}],"primaryContributor":"Harmelen",
		"callNumber":"PS3","callNumberComponents":{"callNumber":"PS3","prefix":"A"},"copyNumber":"c2","volume":"v1",
		"status":{"name":"Checked out","date":"2026-03-18"},"inTransitDestinationServicePointId":"desk2",
		"inTransitDestinationServicePoint":{"id":"desk2","name":"Desk 2"},"location":{"name":"Main"},
		"materialType":{"name":"Book"},"editions":["1st"],"seriesStatements":["Cooperative"],
		"datesOfPublication":["2004"],"physicalDescriptions":["xx, 238 p."],"administrativeNotes":["fragile"],
		"accessionNumber":"a1"},
	"borrower":{"firstName":"Jessica","lastName":"Pond","barcode":"569","patronGroup":"group2"},
	"patronGroupAtCheckout":{"id":"group1","name":"staff"},"loanPolicy":{"name":"Three weeks"},
	"overdueFinePolicy":{"name":"A day each"},"lostItemPolicy":{"name":"By price"},
	"checkoutServicePoint":{"id":"desk1","name":"Desk 1","code":"d1","pickupLocation":true},
	"checkinServicePoint":{"id":"desk3","name":"Desk 3","code":"d3","pickupLocation":true},
	"feesAndFines":{"amountRemainingToPay":0}}`

const bareLoan = `{"id":"loan1","userId":"user1","itemId":"item1","loanDate":"2026-03-18T11:43:54.000Z",
	"action":"checkedout",
	"status":{"name":"Open"},"loanPolicyId":"policy1","overdueFinePolicyId":"fines1","lostItemPolicyId":"fees1",
	"checkoutServicePointId":"desk1","checkinServicePointId":"desk3",
	"renewalCount":0,
	"bigNumber":12345678901234567890,"metadata":{"createdDate":"2026-03-18"},"feesAndFines":{"amountRemainingToPay":0}}`

// same fails unless got and want are the same JSON, its numbers digit by digit.
func same(t *testing.T, got json.RawMessage, want string) {
	t.Helper()
	if a, b := compact(t, got), compact(t, json.RawMessage(want)); a != b {
		t.Errorf("got  %s\nwant %s", a, b)
	}
}

func compact(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	for key, field := range fields {
		if len(field) > 0 && field[0] == '{' {
			fields[key] = json.RawMessage(compact(t, field))
		}
	}
	out, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func parsedPolicy(t *testing.T) policy.LoanPolicy {
	t.Helper()
	p, err := policy.ParseLoanPolicy([]byte(`{"id":"policy1","name":"Three weeks","loanable":true}`))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRender(t *testing.T) {
	t.Parallel()
	got, err := loanview.Render(json.RawMessage(storedLoan), loanview.Known{
		Copy: library.Copy{
			Item: someItem, Holdings: someHoldings, Instance: someInstance,
			Location: library.Location{ID: "loc1", Name: "Main"}, Material: library.Named{ID: "book", Name: "Book"},
		},
		User: someUser, Group: someGroup,
		Destination: library.ServicePoint{ID: "desk2", Name: "Desk 2"}, ServicePoint: library.ServicePoint{
			ID: "desk1", Name: "Desk 1", Code: "d1", PickupLocation: true,
		},
		ReturnedAt: library.ServicePoint{ID: "desk3", Name: "Desk 3", Code: "d3", PickupLocation: true},
		Policy:     parsedPolicy(t), OverdueFine: library.Named{ID: "fines1", Name: "A day each"},
		LostItem: library.Named{ID: "fees1", Name: "By price"},
	})
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, fullLoan)
}

func TestRender_LeavesOutMissingRecords(t *testing.T) {
	t.Parallel()
	got, err := loanview.Render(json.RawMessage(storedLoan), loanview.Known{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, bareLoan)
	if _, err := loanview.Render(json.RawMessage(`null`), loanview.Known{}); err == nil {
		t.Error("null passed for a loan")
	}
}

func TestDescribeItem_PrefersTheItemsCopyNumber(t *testing.T) {
	t.Parallel()
	item := someItem
	item.CopyNumber = "c1"
	if got := loanview.DescribeItem(loanview.Known{
		Copy: library.Copy{Item: item, Holdings: someHoldings},
	}).CopyNumber; got != "c1" {
		t.Errorf("got %s, want c1", got)
	}
}

// fakeRecords has the records above, and notes who asked for what.
type fakeRecords struct {
	mu    sync.Mutex
	asked map[string][]string
	gone  bool  // no record exists
	err   error // of everything
	t     *testing.T
}

func (l *fakeRecords) note(what string, ids ...string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked == nil {
		l.asked = map[string][]string{}
	}
	l.asked[what] = append(l.asked[what], fmt.Sprint(ids))
	return l.err
}

func bulk[T any](l *fakeRecords, what string, ids []string, all ...T) ([]T, error) {
	err := l.note(what, ids...)
	if l.gone {
		return nil, err
	}
	return all, err
}

func single[T any](l *fakeRecords, what, id string, record T) (T, error) {
	err := l.note(what, id)
	if l.gone && err == nil {
		var none T
		return none, fault.New(fault.NotFound, "gone")
	}
	return record, err
}

func (l *fakeRecords) Users(_ context.Context, ids []string) ([]library.User, error) {
	return bulk(l, "users", ids, someUser)
}

func (l *fakeRecords) Items(_ context.Context, ids []string) ([]library.Item, error) {
	return bulk(l, "items", ids, someItem)
}

func (l *fakeRecords) HoldingsRecords(_ context.Context, ids []string) ([]library.Holdings, error) {
	return bulk(l, "holdings", ids, someHoldings)
}

func (l *fakeRecords) Instances(_ context.Context, ids []string) ([]library.Instance, error) {
	return bulk(l, "instances", ids, someInstance)
}

func (l *fakeRecords) Location(_ context.Context, id string) (library.Location, error) {
	return single(l, "location", id, library.Location{ID: id, Name: "Main"})
}

func (l *fakeRecords) ServicePoint(_ context.Context, id string) (library.ServicePoint, error) {
	return single(l, "service point", id, library.ServicePoint{
		ID: id, Name: "Desk " + id[4:], Code: "d" + id[4:], PickupLocation: true,
	})
}

func (l *fakeRecords) OpenLoans(_ context.Context, itemIDs []string) ([]library.OpenLoan, error) {
	return bulk[library.OpenLoan](l, "open loans", itemIDs)
}

func (l *fakeRecords) Group(_ context.Context, id string) (library.Group, error) {
	return single(l, "group", id, someGroup)
}

func (l *fakeRecords) LoanPolicy(_ context.Context, id string) (policy.LoanPolicy, error) {
	return single(l, "policy", id, parsedPolicy(l.t))
}

func (l *fakeRecords) Named(_ context.Context, kind library.NamedKind, id string) (library.Named, error) {
	names := map[library.NamedKind]string{
		library.LibraryUnit: "Science", library.LostItemPolicy: "By price", library.MaterialType: "Book",
		library.OverdueFinePolicy: "A day each",
	}
	return single(l, string(kind), id, library.Named{ID: id, Name: names[kind]})
}

func TestRenderPage_ReadsEachKindOfRecordOnce(t *testing.T) {
	t.Parallel()
	l := &fakeRecords{t: t}
	other := `{"id":"loan2","userId":"user9","itemId":"item9","loanPolicyId":"policy1","checkoutServicePointId":"desk1"}`
	views, err := loanview.RenderPage(t.Context(), l, []json.RawMessage{
		json.RawMessage(storedLoan), json.RawMessage(other), json.RawMessage(storedLoan),
	})
	if err != nil {
		t.Fatal(err)
	}
	same(t, views[0], fullLoan)
	same(t, views[1], `{"id":"loan2","userId":"user9","itemId":"item9","loanPolicyId":"policy1",
		"loanPolicy":{"name":"Three weeks"},
		"checkoutServicePointId":"desk1","checkoutServicePoint":{"id":"desk1","name":"Desk 1","code":"d1",
		"pickupLocation":true},"feesAndFines":{"amountRemainingToPay":0}}`)
	same(t, views[2], fullLoan)
	slices.Sort(l.asked["service point"])
	want := map[string][]string{
		"users": {"[user1 user9]"}, "items": {"[item1 item9]"}, "holdings": {"[holdings1]"}, "instances": {"[instance1]"},
		"location": {"[loc1]"}, "material type": {"[book]"}, "service point": {"[desk1]", "[desk2]", "[desk3]"},
		"group": {"[group1]"}, "policy": {"[policy1]"}, "overdue fine policy": {"[fines1]"}, "lost item policy": {"[fees1]"},
	}
	if !reflect.DeepEqual(l.asked, want) {
		t.Errorf("asked %v\nwant  %v", l.asked, want)
	}
}

func TestRenderOne_LeavesOutMissingRecords(t *testing.T) {
	t.Parallel()
	got, err := loanview.RenderOne(t.Context(), &fakeRecords{t: t, gone: true}, json.RawMessage(storedLoan))
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, bareLoan)
}

func TestRenderOne_FailsIfRecordsCannotBeRead(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	if _, err := loanview.RenderOne(t.Context(), &fakeRecords{t: t, err: down},
		json.RawMessage(storedLoan)); !errors.Is(err, down) {
		t.Errorf("got %v, want %v", err, down)
	}
}

func TestRenderPage_ReadsNothingForNoLoans(t *testing.T) {
	t.Parallel()
	l := &fakeRecords{t: t}
	views, err := loanview.RenderPage(t.Context(), l, nil)
	if err != nil || views == nil || len(views) != 0 || len(l.asked) != 0 {
		t.Errorf("got %v, %v, asked %v; want an empty list", views, err, l.asked)
	}
}
