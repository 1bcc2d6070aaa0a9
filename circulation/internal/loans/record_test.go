package loans_test

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/circulation/internal/loans"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// backend is a library with one loan, and the storage that it writes to.
type backend struct {
	*librarytest.Records
	loans.Changer        // of ChangeLoan, which these tests do not call
	loan          string // stored; "" for none
	onLoan        bool
	relations     []library.ProxyRelation
	closing       []error // of Close, in turn; afterwards it succeeds
	lending       []error // of CheckOut
	onRepeat      func()  // before each refused commit returns

	lent     []schemas.CheckOut
	created  string
	replaced []schemas.LoanReplacement
	returned []schemas.CheckIn
}

func newBackend() *backend {
	return &backend{
		Records: librarytest.New(),
		loan: `{"id":"` + loanID + `","userId":"` + librarytest.AnnID + `","itemId":"` + librarytest.BookItemID +
			`","status":{"name":"Open"}}`,
	}
}

func (d *backend) Loan(_ context.Context, id string) (json.RawMessage, error) {
	if d.loan == "" || id != loanID {
		return nil, cmp.Or(d.Unread(), error(librarytest.ErrNone))
	}
	return json.RawMessage(d.loan), d.Unread()
}

func (d *backend) Snapshot(ctx context.Context, subjects schemas.CheckOutSubjects) (library.Facts, error) {
	seen, err := d.Records.Snapshot(ctx, subjects)
	seen.OnLoan = &d.onLoan
	return seen, err
}

func (d *backend) LoanPolicy(context.Context, string) (policy.LoanPolicy, error) {
	p, err := policy.ParseLoanPolicy([]byte(d.Policy))
	return p, cmp.Or(err, d.Unread())
}

func (d *backend) ServicePoint(_ context.Context, id string) (library.ServicePoint, error) {
	if id != librarytest.DeskID {
		return library.ServicePoint{}, librarytest.ErrNone
	}
	return library.ServicePoint{ID: id}, d.Unread()
}

func (d *backend) ProxyRelations(context.Context, string, string) ([]library.ProxyRelation, error) {
	return d.relations, d.Unread()
}

// next returns the first of the answers and drops it.
func (d *backend) next(answers *[]error) error {
	if len(*answers) == 0 {
		return nil
	}
	err := (*answers)[0]
	*answers = (*answers)[1:]
	if d.onRepeat != nil {
		d.onRepeat()
	}
	return err
}

func (d *backend) CheckOut(_ context.Context, c schemas.CheckOut) (schemas.CheckOutResult, error) {
	d.lent = append(d.lent, c)
	return schemas.CheckOutResult{Loan: c.Loan}, d.next(&d.lending)
}

func (d *backend) CreateLoan(_ context.Context, loan json.RawMessage) (json.RawMessage, error) {
	d.created = string(loan)
	return loan, nil
}

func (d *backend) ReplaceLoan(_ context.Context, _ string, r schemas.LoanReplacement) error {
	d.replaced = append(d.replaced, r)
	return nil
}

func (d *backend) Close(_ context.Context, c schemas.CheckIn) error {
	d.returned = append(d.returned, c)
	return d.next(&d.closing)
}

func (d *backend) service() *loans.Service {
	return &loans.Service{
		Library: d, Changer: d, Close: d.Close, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return librarytest.Today },
	}
}

// write returns a loan of the book to Ann with other members at its end, which replace earlier ones.
func write(more string) json.RawMessage {
	return json.RawMessage(`{"userId":"` + librarytest.AnnID + `","itemId":"` + librarytest.BookItemID +
		`","loanDate":"2026-03-01T10:00:00Z",` +
		`"item":{"id":"x"},"borrower":{},"vendorField":1.50` + more + `}`)
}

func TestRecord_LendsByTheRulesPolicyWithoutAFence(t *testing.T) {
	t.Parallel()
	d := newBackend()
	d.loan = ""
	d.Queue = []schemas.QueuedRequest{
		librarytest.NewRequest("q", librarytest.AnnID, "Hold", "Item", schemas.RequestAwaitingPickup, 1),
	}
	d.lending = []error{fault.New(fault.ItemChanged, "changed")}
	d.onRepeat = func() { d.Book.Version = 5 }
	stored, err := d.service().Record(t.Context(), write(`,"id":"`+loanID+`","dueDate":"2026-03-09T10:00:00Z"`))
	want := `{"action":"checkedout","dueDate":"2026-03-09T10:00:00Z","id":"` + loanID + `","itemId":"` +
		librarytest.BookItemID + `","itemStatus":"Checked out",` +
		`"loanDate":"2026-03-01T10:00:00Z","loanPolicyId":"` + librarytest.ThreeID + `","patronGroupIdAtCheckout":"` +
		librarytest.AdultsID + `",` +
		`"status":{"name":"Open"},"userId":"` + librarytest.AnnID + `","vendorField":1.50}`
	if err != nil || string(stored) != want || len(d.lent) != 2 {
		t.Fatalf("got %v after %d tries\n%s\nwant\n%s", err, len(d.lent), stored, want)
	}
	if c := d.lent[1]; !c.Unfenced || c.LockID != "" || c.SettingsVersion != "" || c.FilledRequestID != "q" ||
		c.ItemVersion != 5 {
		t.Errorf("committed %+v, want the changed item judged again, the request filled, and no fence", c)
	}
}

func TestRecord_StoresAClosedLoanAlone(t *testing.T) {
	t.Parallel()
	d := newBackend()
	sent := write(`,"status":{"name":"Closed"},"action":"checkedin","userId":null,"dueDate":"","renewalCount":"2"`)
	if _, err := d.service().Record(t.Context(), sent); err != nil || d.lent != nil {
		t.Fatalf("got %v, lent %+v", err, d.lent)
	}
	if !strings.Contains(d.created, `"status":{"name":"Closed"}`) || !strings.Contains(d.created, `"id":"`) ||
		strings.Contains(d.created, "borrower") || strings.Contains(d.created, "dueDate") ||
		!strings.Contains(d.created, `"renewalCount":2`) {
		t.Errorf("stored %s", d.created)
	}
}

// A recall of the title that called back another copy does not keep this copy back.
func TestRecord_LendsBesideARecallOfTheTitle(t *testing.T) {
	t.Parallel()
	d := newBackend()
	recall := librarytest.NewRequest("q", librarytest.CarlID, "Recall", "Title", schemas.RequestNotYetFilled, 1)
	recall.ItemID = librarytest.OtherID
	d.Titles, d.Queue = true, []schemas.QueuedRequest{recall}
	if _, err := d.service().Record(t.Context(), write("")); err != nil || len(d.lent) != 1 ||
		d.lent[0].FilledRequestID != "" || !d.lent[0].TitleLevel {
		t.Errorf("got %v, lent %+v", err, d.lent)
	}
}

// Ann gets the book for as long as a recalled loan, while Carl recalls it.
func TestRecord_ShortensALoanWhileARecallWaits(t *testing.T) {
	t.Parallel()
	own := librarytest.NewRequest("1", librarytest.AnnID, "Hold", "Item", schemas.RequestNotYetFilled, 1)
	recall := librarytest.NewRequest("2", librarytest.CarlID, "Recall", "Item", schemas.RequestNotYetFilled, 2)
	const sent, five = "2026-03-09T10:00:00.123456Z", "2026-03-06T10:00:00.000Z"
	for name, tt := range map[string]struct {
		queue    []schemas.QueuedRequest // of the first try
		later    []schemas.QueuedRequest // of the second
		expires  time.Time               // of Ann's card
		due      string                  // as sent
		days     string                  // of the return interval
		want     string
		recalled bool
	}{
		"only Ann waited": {queue: []schemas.QueuedRequest{own}, due: sent, days: "5", want: sent},
		"Carl recalls": {
			queue: []schemas.QueuedRequest{own, recall}, due: sent, days: "5", want: five, recalled: true,
		},
		"due before": {
			queue: []schemas.QueuedRequest{own, recall}, due: sent, days: "50", want: sent, recalled: true,
		},
		"a guaranteed period": {
			queue: []schemas.QueuedRequest{own, recall}, due: "2026-03-19T10:00:00Z",
			days: `5,"intervalId":"Days"},"minimumGuaranteedLoanPeriod":{"duration":9`,
			want: "2026-03-10T10:00:00.000Z", recalled: true,
		},
		"without a date": {queue: []schemas.QueuedRequest{own, recall}, days: "5", want: five, recalled: true},
		"her card ends before": {
			queue: []schemas.QueuedRequest{own, recall}, expires: librarytest.Today.AddDate(0, 0, 3), due: sent, days: "5",
			want: "2026-03-04T10:00:00.000Z", recalled: true,
		},
		"the recall came": {
			queue: []schemas.QueuedRequest{own}, later: []schemas.QueuedRequest{own, recall}, due: sent, days: "5", want: five,
			recalled: true,
		},
		"the recall was cancelled": {
			queue: []schemas.QueuedRequest{own, recall}, later: []schemas.QueuedRequest{own}, due: sent, days: "5", want: sent,
		},
	} {
		d := newBackend()
		d.Policy = strings.TrimSuffix(d.Policy, "}") +
			`,"requestManagement":{"recalls":{"recallReturnInterval":{"duration":` + tt.days + `,"intervalId":"Days"}}}}`
		d.Queue, d.Patron.ExpirationDate.Time = tt.queue, tt.expires
		if tt.later != nil {
			d.lending = []error{fault.New(fault.RequestChanged, "changed")}
			d.onRepeat = func() { d.Queue = tt.later }
		}
		more := ""
		if tt.due != "" {
			more = `,"dueDate":"` + tt.due + `"`
		}
		stored, err := d.service().Record(t.Context(), write(more))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, marked := d.lent[len(d.lent)-1], strings.Contains(string(stored), `"dueDateChangedByRecall":true`)
		if !strings.Contains(string(stored), `"dueDate":"`+tt.want+`"`) || marked != tt.recalled || got.Recalled == nil ||
			*got.Recalled != tt.recalled {
			t.Errorf("%s: lent %s, recalled %v, want it due %s", name, stored, got.Recalled, tt.want)
		}
	}
}

func TestRecord_Refusals(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		prepare func(*backend)
		more    string
		want    string
	}{
		"the id of a loan":  {more: `,"id":"` + loanID + `"`, want: "id value already exists in table loan: " + loanID},
		"no user":           {more: `,"userId":null`, want: "Open loan must have a user ID"},
		"an unknown status": {more: `,"status":{"name":"Lost"}`, want: `Loan status must be "Open" or "Closed"`},
		"no loan date":      {more: `,"loanDate":null`, want: "loanDate is required"},
		"an action alone":   {more: `,"action":7`, want: "action must be of type string, not number"},
		"no action":         {more: `,"status":{"name":"Open"}`, want: "action is required"},
		"lent at no desk": {
			more: `,"checkoutServicePointId":"` + librarytest.OtherID + `"`, want: "Check Out Service Point does not exist",
		},
		"returned at no desk": {
			more: `,"checkinServicePointId":"` + librarytest.OtherID + `"`, want: "Check In Service Point does not exist",
		},
		"no item": {
			more: `,"itemId":"` + librarytest.OtherID + `"`, want: "No item with ID " + librarytest.OtherID + " could be found",
		},
		"an unknown user": {prepare: func(d *backend) { d.NoPatron = true }, want: "user is not found"},
		"on loan": {
			prepare: func(d *backend) { d.Book.Status.Name = "Checked out" }, want: "Item is already checked out",
		},
		"on loan, by its loan alone": {
			prepare: func(d *backend) { d.onLoan = true }, want: "Item is already checked out",
		},
		"missing": {
			prepare: func(d *backend) { d.Book.Status.Name = "Missing" },
			want:    "Moby Dick (book) (Barcode: book) has the item status Missing, loan cannot be created",
		},
		"declared lost": {
			prepare: func(d *backend) { d.Book.Status.Name = "Declared lost" },
			want:    "Moby Dick (book) (Barcode: book) has the item status Declared lost, loan cannot be created",
		},
		"a proxy of no sponsor": {more: `,"proxyUserId":"` + librarytest.CarlID + `"`, want: "proxyUserId is not valid"},
		"a proxy of the past": {
			prepare: func(d *backend) { d.relations = []library.ProxyRelation{{Status: "Inactive"}} },
			more:    `,"proxyUserId":"` + librarytest.CarlID + `"`, want: "proxyUserId is not valid",
		},
		"requested by Carl": {
			prepare: func(d *backend) {
				d.Queue = []schemas.QueuedRequest{
					librarytest.NewRequest("q", librarytest.CarlID, "Hold", "Item", schemas.RequestNotYetFilled, 1),
				}
			},
			want: "Moby Dick (Barcode: book) cannot be checked out to user Reader, Ann because it has been requested by " +
				"another patron",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newBackend()
			if tt.prepare != nil {
				tt.prepare(d)
			}
			_, err := d.service().Record(t.Context(), write(tt.more))
			if got := librarytest.Messages(err); !fault.Is(err, fault.Invalid) || !slices.Equal(got, []string{tt.want}) {
				t.Errorf("got %q (%v), want %q", got, err, tt.want)
			}
			if d.lent != nil || d.created != "" {
				t.Errorf("lent %+v, stored %s", d.lent, d.created)
			}
		})
	}
	if _, err := newBackend().service().Record(t.Context(), json.RawMessage(`[]`)); !fault.Is(err, fault.Malformed) {
		t.Errorf("a list: got %v, want %s", err, fault.Malformed)
	}
}

func TestReplace_WritesTheLoanOrTakesItsItemBack(t *testing.T) {
	t.Parallel()
	const closed = `,"status":{"name":"Closed"},"action":"checkedin","checkinServicePointId":"` + librarytest.DeskID + `"`
	d := newBackend()
	if err := d.service().Replace(t.Context(), loanID,
		write(`,"dueDate":"2026-04-01T10:00:00Z","id":"`+librarytest.OtherID+`"`)); err != nil {
		t.Fatal(err)
	}
	if len(d.replaced) != 1 || !strings.Contains(string(d.replaced[0].Loan), `"id":"`+loanID+`"`) ||
		!schemas.IsUUID(d.replaced[0].ID) || d.returned != nil {
		t.Errorf("an open loan: replaced %+v, returned %+v", d.replaced, d.returned)
	}

	d = newBackend()
	d.closing = []error{fault.New(fault.ItemChanged, "changed")}
	if err := d.service().Replace(t.Context(), loanID, write(closed)); err != nil || len(d.returned) != 2 ||
		d.replaced != nil {
		t.Fatalf("a closed loan: got %v, replaced %+v, returned %+v", err, d.replaced, d.returned)
	}
	if c := d.returned[1]; c.ItemID != librarytest.BookItemID || c.ServicePointID != librarytest.DeskID ||
		c.CheckInDate != "2026-03-01T10:00:00.000Z" || len(c.Loan) == 0 {
		t.Errorf("took back %+v", c)
	}

	d = newBackend()
	if err := d.service().Replace(t.Context(), loanID,
		write(closed+`,"itemId":"`+strings.ToUpper(librarytest.BookItemID)+`"`)); err != nil || len(d.returned) != 1 {
		t.Errorf("the item's id in upper case: got %v, returned %+v", err, d.returned)
	}

	d = newBackend() // another desk takes the item back first
	d.closing = []error{fault.New(fault.LoanChanged, "closed")}
	d.onRepeat = func() { d.loan = strings.Replace(d.loan, "Open", "Closed", 1) }
	if err := d.service().Replace(t.Context(), loanID, write(closed+`,"returnDate":"2026-02-01T10:00:00Z"`)); err != nil ||
		len(d.returned) != 1 || len(d.replaced) != 1 {
		t.Errorf("closed meanwhile: got %v, replaced %+v, returned %+v", err, d.replaced, d.returned)
	}
	if d.returned[0].CheckInDate != "2026-02-01T10:00:00Z" {
		t.Errorf("returned at %s", d.returned[0].CheckInDate)
	}
}

func TestReplace_Refusals(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ more, want string }{
		"closed at no desk": {
			`,"status":{"name":"Closed"},"action":"checkedin"`, "A Closed loan must have a Checkin Service Point",
		},
		"an unknown desk": {
			`,"status":{"name":"Closed"},"action":"checkedin","checkinServicePointId":"` + librarytest.OtherID +
				`"`, "Check In Service Point does not exist",
		},
		"another item": {
			`,"status":{"name":"Closed"},"action":"checkedin","itemId":"` + librarytest.OtherID + `","checkinServicePointId":"` +
				librarytest.DeskID + `"`,
			"itemId of a loan must stay",
		},
		"a new proxy": {`,"proxyUserId":"` + librarytest.CarlID + `"`, "proxyUserId is not valid"},
		"no user":     {`,"userId":null`, "Open loan must have a user ID"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newBackend()
			err := d.service().Replace(t.Context(), loanID, write(tt.more))
			if got := librarytest.Messages(err); !slices.Equal(got, []string{tt.want}) || d.replaced != nil ||
				d.returned != nil {
				t.Errorf("got %q (%v), want %q", got, err, tt.want)
			}
		})
	}
	d := newBackend()
	if err := d.service().Replace(t.Context(), librarytest.OtherID, write("")); !fault.Is(err, fault.NotFound) {
		t.Errorf("an unknown loan: got %v, want %s", err, fault.NotFound)
	}
	d.loan = strings.Replace(d.loan, `"status"`, `"proxyUserId":"`+librarytest.CarlID+`","status"`, 1)
	if err := d.service().Replace(t.Context(), loanID,
		write(`,"proxyUserId":"`+strings.ToUpper(librarytest.CarlID)+`"`)); err != nil {
		t.Errorf("the proxy of the check-out: got %v", err)
	}
}
