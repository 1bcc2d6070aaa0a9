package renewal_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/circulation/internal/renewal"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// renewals is a library in which the book is on loan to Ann, and the storage that
// renews it.
type renewals struct {
	*librarytest.Records
	loan    string // stored; "" for none
	renewed []schemas.Renewal
	answers []error // of Renew; afterwards it succeeds
	onRenew func()
}

func newRenewals() *renewals {
	w := librarytest.New()
	w.Book.Status.Name = "Checked out"
	w.Policy = strings.Replace(w.Policy, `"renewable":true`,
		`"renewable":true,"renewalsPolicy":{"numberAllowed":3,"renewFromId":"SYSTEM_DATE"}`, 1)
	return &renewals{
		Records: w,
		loan:    `{"id":"l","userId":"` + librarytest.AnnID + `","dueDate":"2026-03-05T12:00:00.500+01:00","renewalCount":2}`,
	}
}

func (r *renewals) OpenLoan(_ context.Context, itemID string) (json.RawMessage, error) {
	if r.loan == "" || itemID != librarytest.BookItemID {
		return nil, librarytest.ErrNone
	}
	return json.RawMessage(r.loan), r.Unread()
}

// User finds Ann unless she was deleted, and Carl.
func (r *renewals) User(_ context.Context, id string) (library.User, error) {
	if id == librarytest.CarlID || strings.EqualFold(id, librarytest.AnnID) && !r.NoPatron {
		return library.User{ID: id}, r.Unread()
	}
	return library.User{}, librarytest.ErrNone
}

func (r *renewals) RenewalPolicy(context.Context, string) (policy.LoanPolicy, error) {
	if r.NoPolicy {
		return policy.LoanPolicy{}, librarytest.ErrNone
	}
	p, err := policy.ParseLoanPolicy([]byte(r.Policy))
	return p, cmp.Or(err, r.Unread())
}

func (r *renewals) Renew(_ context.Context, renewal schemas.Renewal) (json.RawMessage, error) {
	r.renewed = append(r.renewed, renewal)
	if r.onRenew != nil {
		r.onRenew()
	}
	if len(r.answers) > 0 {
		err := r.answers[0]
		r.answers = r.answers[1:]
		if err != nil {
			return nil, err
		}
	}
	return json.RawMessage(`{"id":"` + renewal.LoanID + `"}`), nil
}

func (r *renewals) service() *renewal.Service {
	return &renewal.Service{
		Library: r, Renewer: r, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return librarytest.Today },
	}
}

// renew renews Ann's loan of the book.
func (r *renewals) renew(t *testing.T) (json.RawMessage, error) {
	t.Helper()
	return r.send(t, renewal.Request{ItemBarcode: "book", UserBarcode: "ann"})
}

func (r *renewals) send(t *testing.T, req renewal.Request) (json.RawMessage, error) {
	t.Helper()
	return r.service().Renew(t.Context(), req)
}

func TestRenew_MovesTheDueDateOfTheJudgedLoan(t *testing.T) {
	t.Parallel()
	r := newRenewals()
	loan, err := r.renew(t)
	want := schemas.Renewal{
		LoanID: "l", ItemID: librarytest.BookItemID, ItemVersion: 4, JudgedDueDate: "2026-03-05T12:00:00.5+01:00",
		JudgedRenewalCount: 2,
		DueDate:            "2026-03-15T10:00:00.000Z", LoanPolicyID: librarytest.ThreeID,
	}
	if err != nil || string(loan) != `{"id":"l"}` || !slices.Equal(r.renewed, []schemas.Renewal{want}) {
		t.Errorf("got %s, %v after %+v, want %+v", loan, err, r.renewed, want)
	}

	whole := newRenewals()
	whole.loan = strings.Replace(whole.loan, ":2}", ":2.0}", 1)
	if _, err := whole.renew(t); err != nil || whole.renewed[0].JudgedRenewalCount != 2 {
		t.Errorf("renewed 2.0 times: got %v after %+v", err, whole.renewed)
	}

	first := newRenewals()
	first.loan = `{"id":"l","userId":"` + strings.ToUpper(librarytest.AnnID) + `"}` // never renewed, and due never
	if _, err := first.renew(t); err != nil || first.renewed[0].JudgedDueDate != "" ||
		first.renewed[0].JudgedRenewalCount != 0 {
		t.Errorf("got %v after %+v", err, first.renewed)
	}
}

// A caller that saw another loan decides anew.
func TestRenew_FailsIfAnythingCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, borrower := range []string{librarytest.AnnID, librarytest.CarlID} {
		for n := int64(1); ; n++ {
			r := newRenewals()
			r.FailAt, r.loan = n, strings.Replace(r.loan, librarytest.AnnID, borrower, 1)
			_, err := r.renew(t)
			if r.Reads() < n {
				break
			}
			if !errors.Is(err, librarytest.ErrUnread) || r.renewed != nil {
				t.Errorf("read %d: got %v after %+v", n, err, r.renewed)
			}
		}
	}
}

func TestRenew_EndsWithThePatronsExpiration(t *testing.T) {
	t.Parallel()
	r := newRenewals()
	r.Patron.ExpirationDate.Time = librarytest.Today.AddDate(0, 0, 7)
	if _, err := r.renew(t); err != nil || r.renewed[0].DueDate != "2026-03-08T10:00:00.000Z" {
		t.Errorf("got %v after %+v", err, r.renewed)
	}
}

func TestRenew_OfALoanThatWasRenewedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		seen    int
		renewed bool
	}{{seen: 2, renewed: true}, {seen: 1, renewed: false}} {
		r := newRenewals()
		_, err := r.send(t, renewal.Request{ItemBarcode: "book", UserBarcode: "ann", Seen: &c.seen})
		if c.renewed != (err == nil) || c.renewed != (len(r.renewed) == 1) ||
			!c.renewed && !fault.Is(err, fault.LoanChanged) {
			t.Errorf("seen %d: got %v after %d renewals", c.seen, err, len(r.renewed))
		}
	}
}

func TestRenew_Refusals(t *testing.T) {
	t.Parallel()
	request := func(kind, item string) []schemas.QueuedRequest {
		return []schemas.QueuedRequest{
			{ID: "q", RequestType: kind, RequestLevel: "Item", ItemID: item, Status: schemas.RequestNotYetFilled, Position: 1},
		}
	}
	inactive := false
	tests := map[string]struct {
		prepare func(*renewals, *renewal.Request)
		want    []string
	}{
		"nothing is known": {
			func(_ *renewals, r *renewal.Request) {
				*r = renewal.Request{ItemBarcode: "x", UserBarcode: "y"}
			},
			[]string{"No item with barcode x exists"},
		},
		"no item barcode": {
			func(_ *renewals, r *renewal.Request) { *r = renewal.Request{ServicePointID: librarytest.DeskID} },
			[]string{"Renewal request must have an item barcode"},
		},
		"no user barcode": {
			func(_ *renewals, r *renewal.Request) { r.UserBarcode = " " }, []string{"Renewal request must have a user barcode"},
		},
		"no service point": {
			func(_ *renewals, r *renewal.Request) { r.ServicePointID = "desk" }, []string{"servicePointId must be a UUID"},
		},
		"not on loan": {
			func(r *renewals, _ *renewal.Request) { r.loan = "" }, []string{"No open loan of the item with barcode book exists"},
		},
		"unknown patron": {
			func(_ *renewals, r *renewal.Request) { r.UserBarcode = "y" },
			[]string{"Cannot renew item checked out to different user"},
		},
		"another's loan": {
			func(r *renewals, _ *renewal.Request) { r.loan = `{"id":"l","userId":"` + librarytest.CarlID + `"}` },
			[]string{"Cannot renew item checked out to different user"},
		},
		"inactive": {
			func(r *renewals, _ *renewal.Request) { r.Patron.Active = &inactive },
			[]string{"Cannot renew loan when user is inactive or expired"},
		},
		"activity unknown": {
			func(r *renewals, _ *renewal.Request) { r.Patron.Active = nil }, []string{"Cannot determine if user is active."},
		},
		"declared lost": {
			func(r *renewals, _ *renewal.Request) { r.Book.Status.Name = "Declared lost" }, []string{"item is Declared lost"},
		},
		"claimed returned": {
			func(r *renewals, _ *renewal.Request) { r.Book.Status.Name = "Claimed returned" },
			[]string{"item is Claimed returned"},
		},
		"aged to lost": {
			func(r *renewals, _ *renewal.Request) { r.Book.Status.Name = "Aged to lost" }, []string{"item is Aged to lost"},
		},
		"blocked": {
			func(r *renewals, _ *renewal.Request) {
				r.Manual = []library.ManualBlock{{Desc: "owes", Renewals: true}, {Desc: "noisy", Borrowing: true}}
				r.Automated = []library.AutomatedBlock{
					{Message: "too many overdue", BlockRenewals: true}, {Message: "too many", BlockBorrowing: true},
				}
			},
			[]string{"Patron blocked from renewing", "too many overdue"},
		},
		"recalled": {
			func(r *renewals, _ *renewal.Request) { r.Queue = request("Recall", librarytest.BookItemID) },
			[]string{"items cannot be renewed when there is an active recall request"},
		},
		"on hold": {
			func(r *renewals, _ *renewal.Request) { r.Queue = request("Hold", librarytest.BookItemID) },
			[]string{"Items with this loan policy cannot be renewed when there is an active, pending hold request"},
		},
		"everything at once": {
			func(r *renewals, _ *renewal.Request) {
				r.Book.Status.Name, r.Queue = "Aged to lost", request("Recall", librarytest.BookItemID)
				r.loan = `{"id":"l","userId":"` + librarytest.AnnID + `","dueDate":"2027-01-01T00:00:00Z","renewalCount":3}`
			},
			[]string{
				"items cannot be renewed when there is an active recall request", "item is Aged to lost",
				"renewal would not change the due date", "loan at maximum renewal number",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, req := newRenewals(), renewal.Request{ItemBarcode: "book", UserBarcode: "ann"}
			tt.prepare(r, &req)
			_, err := r.send(t, req)
			if got := librarytest.Messages(err); !fault.Is(err, fault.Invalid) || !slices.Equal(got, tt.want) {
				t.Errorf("got %q (%v), want %q", got, err, tt.want)
			}
			if r.renewed != nil {
				t.Errorf("renewed %+v, want nothing renewed", r.renewed)
			}
		})
	}
}

func TestRenew_RefusalsNameThePolicy(t *testing.T) {
	t.Parallel()
	r := newRenewals()
	r.Policy = strings.Replace(r.Policy, `"renewable":true`, `"renewable":false`, 1)
	_, err := r.renew(t)
	var f *fault.Error
	if !errors.As(err, &f) || len(f.Details) != 1 || f.Details[0].Message != "loan is not renewable" ||
		*f.Details[0].Parameters[0].Value != "Three" || *f.Details[0].Parameters[1].Value != librarytest.ThreeID {
		t.Errorf("got %v", err)
	}
}

func TestRenew_IgnoresARecallOfAnotherCopy(t *testing.T) {
	t.Parallel()
	r := newRenewals()
	r.Titles = true
	r.Queue = []schemas.QueuedRequest{{
		ID: "q", RequestType: "Recall", RequestLevel: "Title", ItemID: librarytest.OtherID, InstanceID: "i",
		Status: schemas.RequestNotYetFilled, Position: 1,
	}}
	if _, err := r.renew(t); err != nil {
		t.Error(err)
	}
}

func TestRenew_JudgesAChangedLoanOnce(t *testing.T) {
	t.Parallel()
	changed := fault.New(fault.LoanChanged, "renewed meanwhile")
	r := newRenewals()
	r.answers = []error{changed}
	r.onRenew = func() { r.loan = strings.Replace(r.loan, `"renewalCount":2`, `"renewalCount":3`, 1) }
	if _, err := r.renew(t); !slices.Equal(librarytest.Messages(err), []string{"loan at maximum renewal number"}) ||
		len(r.renewed) != 1 {
		t.Errorf("got %v after %d tries, want the number that another renewal reached", err, len(r.renewed))
	}
	for name, answer := range map[string]error{"loan": changed, "item": fault.New(fault.ItemChanged, "changed")} {
		r = newRenewals()
		r.answers = []error{answer}
		if _, err := r.renew(t); err != nil || len(r.renewed) != 2 {
			t.Errorf("%s: got %v after %d tries, want success after 2", name, err, len(r.renewed))
		}
		r = newRenewals()
		r.answers = []error{answer, answer, answer}
		if _, err := r.renew(t); !errors.Is(err, answer) || len(r.renewed) != 2 {
			t.Errorf("%s: got %v after %d tries, want %v after 2", name, err, len(r.renewed), answer)
		}
	}
}

func TestRenew_DoesNotRepeatAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	r := newRenewals()
	r.answers = []error{fault.New(fault.Timeout, "no answer")}
	if _, err := r.renew(t); !fault.Is(err, fault.Timeout) || len(r.renewed) != 1 {
		t.Errorf("got %v after %d tries, want %s after 1: it may have happened", err, len(r.renewed), fault.Timeout)
	}
	r = newRenewals()
	r.NoPolicy = true
	if _, err := r.renew(t); !fault.Is(err, fault.Internal) ||
		!strings.Contains(err.Error(), "please check circulation rules") {
		t.Errorf("got %v, want a fault of the rules", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	r = newRenewals()
	cancel()
	if _, err := r.service().Renew(ctx, renewal.Request{
		ItemBarcode: "book", UserBarcode: "ann",
	}); !errors.Is(err, context.Canceled) || r.renewed != nil {
		t.Errorf("got %v, want nothing written for a machine that left", err)
	}
}
