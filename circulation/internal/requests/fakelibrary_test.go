package requests_test

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"testing"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/circulation/internal/requests"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

var errNone = fault.New(fault.NotFound, "Not found")

// fakeLibrary is a library with one patron and one lent book, in memory.
type fakeLibrary struct {
	*librarytest.Records
	free             *library.Item  // a copy on the shelf
	copies           []library.Item // of the title
	loans            []library.OpenLoan
	of               string // the instance of the holdings
	pickup           bool
	proxyRelations   []library.ProxyRelation
	loan             string // JSON of the book's open loan; "" for none
	borrowerExpires  library.Instant
	stored           string // JSON of the request with the id wishID; "" for none
	holdsAskPolicies bool
	allowed          string            // JSON of the request policy; "" for none
	policies         map[string]string // JSON of request policies by id, in place of allowed

	placed  []schemas.Placement
	answers []error // of Place; afterwards it succeeds
}

func newLibrary() *fakeLibrary {
	r := librarytest.New()
	r.Book.Status.Name, r.Book.HoldingsRecordID = "Checked out", shelfID
	r.Book.CallNumber, r.Book.ShelvingOrder = library.CallNumber{CallNumber: "QA 1", Suffix: "x"}, "QA 11 x"
	return &fakeLibrary{
		Records: r, of: titleID, pickup: true, loan: `{"id":"` + loanID + `","userId":"` + benID +
			`","loanDate":"2026-02-20T10:00:00Z","dueDate":"2026-03-20T10:00:00.123456Z"}`,
		allowed: `{"id":"p","requestTypes":["Hold","Page","Recall"]}`,
	}
}

// Snapshot implements library.Records.
func (l *fakeLibrary) Snapshot(_ context.Context, subjects schemas.CheckOutSubjects) (library.Facts, error) {
	var seen library.Facts
	if subjects.UserID == l.Patron.ID {
		seen.User, seen.ManualBlocks, seen.AutomatedBlocks.Blocks = l.Patron, l.Manual, l.Automated
	}
	item := l.Book
	at := slices.IndexFunc(l.copies, func(i library.Item) bool { return i.ID == subjects.ItemID })
	switch {
	case at >= 0:
		item = l.copies[at]
	case l.free != nil && subjects.ItemID == l.free.ID:
		item = *l.free
	case subjects.ItemID != item.ID:
		return seen, l.Unread()
	}
	seen.Item, seen.Holdings, seen.Requests = item, library.Holdings{ID: shelfID, InstanceID: l.of}, l.Queue
	var err error
	seen.Instance, _, err = fault.Found(l.Instance(context.Background(), l.of))
	seen.OnLoan = new(l.loan != "" && item.ID == bookID)
	return seen, cmp.Or(err, l.Unread())
}

func (l *fakeLibrary) Item(_ context.Context, id string) (library.Item, error) {
	if id != l.Book.ID {
		return library.Item{}, errNone
	}
	return l.Book, l.Unread()
}

func (l *fakeLibrary) Holdings(context.Context, string) (library.Holdings, error) {
	return library.Holdings{ID: shelfID, InstanceID: l.of}, l.Unread()
}

func (l *fakeLibrary) Instance(_ context.Context, id string) (library.Instance, error) {
	if id != titleID {
		return library.Instance{}, errNone
	}
	return library.Instance{
		ID: id, Title: "Moby Dick", Identifiers: []library.Identifier{{TypeID: otherID, Value: "978"}},
	}, l.Unread()
}

func (l *fakeLibrary) PickupPoint(_ context.Context, id string) (library.ServicePoint, error) {
	if id != deskID {
		return library.ServicePoint{}, errNone
	}
	return library.ServicePoint{ID: id, Name: "Main desk", PickupLocation: l.pickup}, l.Unread()
}

// PickupPoints implements requests.Library.
func (l *fakeLibrary) PickupPoints(context.Context) ([]library.ServicePoint, error) {
	if !l.pickup {
		return nil, nil
	}
	desk := library.ServicePoint{ID: deskID, Name: "Desk", DiscoveryDisplayName: "Hall"}
	return []library.ServicePoint{{ID: otherID, Name: "Shelf"}, desk}, l.Unread()
}

// TitleHoldsObeyRules implements requests.Library.
func (l *fakeLibrary) TitleHoldsObeyRules(context.Context) (bool, error) {
	return l.holdsAskPolicies, l.Unread()
}

// TitleItems implements requests.Library.
func (l *fakeLibrary) TitleItems(context.Context, string) ([]library.Item, error) {
	if l.free != nil {
		return append([]library.Item{l.Book, *l.free}, l.copies...), nil
	}
	return l.copies, l.Unread()
}

// OpenLoans implements requests.Library.
func (l *fakeLibrary) OpenLoans(context.Context, []string) ([]library.OpenLoan, error) {
	return l.loans, l.Unread()
}

func (l *fakeLibrary) OpenLoan(context.Context, string) (json.RawMessage, error) {
	if l.loan == "" {
		return nil, errNone
	}
	return json.RawMessage(l.loan), l.Unread()
}

func (l *fakeLibrary) Request(_ context.Context, id string) (json.RawMessage, error) {
	if l.stored == "" || id != wishID {
		return nil, cmp.Or(l.Unread(), error(errNone))
	}
	return json.RawMessage(l.stored), l.Unread()
}

// User implements requests.Library. Ben borrows the book.
func (l *fakeLibrary) User(_ context.Context, id string) (library.User, error) {
	switch id {
	case l.Patron.ID:
		return l.Patron, l.Unread()
	case benID:
	default:
		return library.User{}, errNone
	}
	return library.User{
		ID: benID, Barcode: "ben", PatronGroup: librarytest.AdultsID, ExpirationDate: l.borrowerExpires,
	}, l.Unread()
}

func (l *fakeLibrary) ProxyRelations(_ context.Context, userID, proxyID string) ([]library.ProxyRelation, error) {
	if userID != annID || proxyID != benID {
		return nil, nil
	}
	return l.proxyRelations, l.Unread()
}

func (l *fakeLibrary) LoanPolicy(context.Context, string) (policy.LoanPolicy, error) {
	if l.NoPolicy {
		return policy.LoanPolicy{}, errNone
	}
	p, err := policy.ParseLoanPolicy([]byte(l.Policy))
	return p, cmp.Or(err, l.Unread())
}

func (l *fakeLibrary) RequestPolicy(_ context.Context, id string) (p policy.RequestPolicy, err error) {
	if text := l.policies[id]; text != "" {
		return p, json.Unmarshal([]byte(text), &p)
	}
	if l.allowed == "" {
		return p, errNone
	}
	return p, cmp.Or(l.Unread(), json.Unmarshal([]byte(l.allowed), &p))
}

func (l *fakeLibrary) Place(_ context.Context, p schemas.Placement) (schemas.PlacedRequest, error) {
	l.placed = append(l.placed, p)
	if len(l.answers) > 0 {
		err := l.answers[0]
		l.answers = l.answers[1:]
		if err != nil {
			return schemas.PlacedRequest{}, err
		}
	}
	return schemas.PlacedRequest{Request: p.Request}, nil
}

func (l *fakeLibrary) service() *requests.Service {
	return &requests.Service{
		Library: l, Placer: l, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return librarytest.Today },
	}
}

func (l *fakeLibrary) create(t *testing.T, replace map[string]any) (json.RawMessage, error) {
	t.Helper()
	return l.service().Create(t.Context(), body(t, replace))
}

func (l *fakeLibrary) lendToAnn() { l.loan = `{"id":"` + loanID + `","userId":"` + annID + `"}` }
