package checkout_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// ending is what was observed of a check-out. Patron and loan are named instead of their ids; the
// wait is empty if no lock was asked for.
type ending struct {
	outcome, code, reason string
	patron, loan, wait    string
	repeats               int
}

func TestEnding(t *testing.T) {
	t.Parallel()
	off := settings.Settings{Version: "7"}
	const limit = "Patron has reached maximum limit of 3 items for material type"
	tests := map[string]struct {
		prepare func(*backend)
		want    ending
	}{
		"lent":                {func(*backend) {}, ending{outcome: "lent", patron: "ann", loan: "loan", wait: "0s"}},
		"lent without a lock": {func(w *backend) { w.set = off }, ending{outcome: "lent", patron: "ann", loan: "loan"}},
		"lent after waiting": {
			func(w *backend) { w.held = 2 },
			ending{outcome: "lent", patron: "ann", loan: "loan", wait: "1s"},
		},
		"a lock lost meanwhile": {
			func(w *backend) { w.held, w.commit = 1, []error{errLost} },
			ending{outcome: "lent", patron: "ann", loan: "loan", wait: "500ms", repeats: 1},
		},
		"two waits, summed": {
			func(w *backend) { w.acquire, w.commit = []error{errHeld, nil, errHeld}, []error{errLost} },
			ending{outcome: "lent", patron: "ann", loan: "loan", wait: "1.5s", repeats: 1},
		},
		"a commit without answer and a changed item": {
			func(w *backend) { w.commit, w.set = []error{errChanged, errGone}, off },
			ending{outcome: "lent", patron: "ann", loan: "loan", repeats: 2},
		},
		"limit reached at once": {
			func(w *backend) { w.open = []int{3} },
			ending{outcome: "limit_reached", code: "ITEM_LIMIT_MATERIAL_TYPE", reason: limit, patron: "ann"},
		},
		"limit reached while waiting": {
			func(w *backend) { w.open = []int{2, 3} },
			ending{outcome: "limit_reached", code: "ITEM_LIMIT_MATERIAL_TYPE", reason: limit, patron: "ann", wait: "0s"},
		},
		"an item on loan, by its status and its loan": {
			func(w *backend) { w.Book.Status.Name, w.onLoan = "Checked out", true },
			ending{
				outcome: "refused", code: "ITEM_ALREADY_CHECKED_OUT",
				reason: "Item is already checked out",
				patron: "ann",
			},
		},
		"an item on loan, and the limit reached": {
			func(w *backend) { w.Book.Status.Name, w.onLoan, w.open = "Checked out", true, []int{3} },
			ending{
				outcome: "refused", code: "ITEM_ALREADY_CHECKED_OUT",
				reason: "Item is already checked out; " + limit,
				patron: "ann",
			},
		},
		"a lost item, and the limit reached": {
			func(w *backend) { w.Book.Status.Name, w.open = "Declared lost", []int{3} },
			ending{
				outcome: "refused", code: "ITEM_STATUS",
				reason: "Moby Dick (book) (Barcode: book) has the item status Declared lost and cannot be checked out; " + limit,
				patron: "ann",
			},
		},
		"the limit reached, and an item that is not lent": {
			func(w *backend) {
				w.Policy, w.open = strings.Replace(w.Policy, `"loanable":true`, `"loanable":false`, 1), []int{3}
			},
			ending{
				outcome: "limit_reached", code: "ITEM_LIMIT_MATERIAL_TYPE",
				reason: limit + "; Item is not loanable",
				patron: "ann",
			},
		},
		"an item on loan, by its status alone": {
			func(w *backend) { w.Book.Status.Name = "Checked out" },
			ending{
				outcome: "refused", code: "ITEM_ALREADY_CHECKED_OUT",
				reason: "Item is already checked out",
				patron: "ann",
			},
		},
		"an item on loan, by its loan alone": {
			func(w *backend) { w.onLoan = true },
			ending{
				outcome: "refused", code: "ITEM_HAS_OPEN_LOAN",
				reason: "Cannot check out item that already has an open loan",
				patron: "ann",
			},
		},
		"requested by another, without the patron's name": {
			func(w *backend) {
				w.Queue = []schemas.QueuedRequest{librarytest.NewRequest("1", librarytest.CarlID, "Hold", "Item", open, 1)}
			},
			ending{
				outcome: "refused", code: "ITEM_REQUESTED",
				reason: "Moby Dick (Barcode: book) cannot be checked out to user … because it has been requested by another patron",
				patron: "ann",
			},
		},
		"no such patron": {
			func(w *backend) { w.NoPatron = true },
			ending{outcome: "refused", code: "USER_BARCODE_NOT_FOUND", reason: "Could not find user with matching barcode"},
		},
		"no lock in time, for another check-out": {
			func(w *backend) { w.held = 9 },
			ending{
				outcome: "lock_not_acquired", code: "LOCK_NOT_ACQUIRED",
				reason: "unable to acquire lock",
				patron: "ann", wait: "2s",
			},
		},
		"rules that name nothing": {
			func(w *backend) { w.NoPolicy = true },
			ending{
				outcome: "failed", code: "INTERNAL",
				reason: "Loan policy " + librarytest.ThreeID + " could not be found, please check circulation rules",
				patron: "ann",
			},
		},
		"a failure that is for the log": {
			func(w *backend) {
				w.acquire = []error{fault.Wrap(errors.New("secret"), fault.Internal, "Storage failed")}
			},
			ending{outcome: "failed", code: "INTERNAL", reason: "Storage failed", patron: "ann", wait: "0s"},
		},
		"a failure without a code": {
			func(w *backend) { w.acquire = []error{errors.New("secret")} },
			ending{outcome: "failed", code: "INTERNAL", reason: "Internal server error", patron: "ann", wait: "0s"},
		},
		"taken over": {
			func(w *backend) { w.commit = []error{fault.New(fault.KeyLeaseLost, "taken")} },
			ending{outcome: "taken_over", code: "CLAIM_LOST", reason: "taken", patron: "ann", wait: "0s"},
		},
		"given up by another": {
			func(w *backend) { w.commit = []error{fault.New(fault.GivenUp, "given up")} },
			ending{outcome: "taken_over", code: string(fault.GivenUp), reason: "given up", patron: "ann", wait: "0s"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newBackend()
				tt.prepare(w)
				start := time.Now()
				_, _ = w.checkOut(t)
				if len(w.endings) != 1 {
					t.Fatalf("observed %d endings", len(w.endings))
				}
				e := w.endings[0]
				got := ending{
					outcome: e.Outcome, code: e.Code, reason: e.Reason, repeats: e.Repeats,
					patron: nameID(e.UserID, librarytest.AnnID, "ann"), loan: nameID(e.LoanID, w.loanID(t), "loan"),
				}
				if e.Wait != nil {
					got.wait = e.Wait.String()
				}
				if got != tt.want {
					t.Errorf("got  %+v\nwant %+v", got, tt.want)
				}
				if e.UserBarcode != "ann" || e.ItemBarcode != "book" || e.ServicePointID != librarytest.DeskID ||
					e.Took != time.Since(start) {
					t.Errorf("got %+v", e)
				}
				if e.Repeats != len(w.again) {
					t.Errorf("%d repeats, but %v were observed", e.Repeats, w.again)
				}
			})
		})
	}
}

func TestEnding_UnknownOutcomeNamesTheLoan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newBackend()
		w.commit, w.loanErr = slices.Repeat([]error{errGone}, 99), errGone
		_, err := w.checkOut(t)
		e := w.endings[0]
		if !fault.Is(err, fault.OutcomeUnknown) || e.Outcome != checkout.OutcomeUnknown ||
			e.Code != "CHECK_OUT_OUTCOME_UNKNOWN" || e.LoanID != w.loanID(t) {
			t.Errorf("got %+v", e)
		}
	})
}

func TestObserver_EveryWaitEnds(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*backend){
		"got":           func(w *backend) { w.held = 1 },
		"not got":       func(w *backend) { w.held = 9 },
		"failed":        func(w *backend) { w.acquire = []error{errDown} },
		"lost and anew": func(w *backend) { w.commit = []error{errLost} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newBackend()
				prepare(w)
				_, _ = w.checkOut(t)
				waiting := 0
				for _, delta := range w.waiting {
					if waiting += delta; waiting < 0 || waiting > 1 {
						t.Errorf("observed %v", w.waiting)
					}
				}
				if waiting != 0 || len(w.waiting) == 0 {
					t.Errorf("observed %v, want as many ends as beginnings", w.waiting)
				}
			})
		})
	}
	w := newBackend()
	w.set = settings.Settings{Version: "7"}
	if _, err := w.checkOut(t); err != nil || len(w.waiting) != 0 {
		t.Errorf("with the feature off, observed %v, %v", w.waiting, err)
	}
}

// nameID returns name for the known id, and the id otherwise.
func nameID(id, known, name string) string {
	if id == known && id != "" {
		return name
	}
	return id
}

// loanID returns the id of the loan in the last commit; "" for none.
func (w *backend) loanID(t *testing.T) string {
	t.Helper()
	if len(w.commits) == 0 {
		return ""
	}
	var loan struct{ ID string }
	if err := json.Unmarshal(w.commits[len(w.commits)-1].Loan, &loan); err != nil {
		t.Fatal(err)
	}
	return loan.ID
}

func TestEnding_CountsRefusalsByCause(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		prepare func(*backend, *checkout.Request)
		want    string // the history's code
		answer  string // the errors without their parameters
	}{
		"no such item": {
			prepare: func(_ *backend, r *checkout.Request) { r.ItemBarcode = "x" },
			want:    "ITEM_BARCODE_NOT_FOUND",
			answer:  `[{"message":"No item with barcode x could be found","code":"ITEM_BARCODE_NOT_FOUND"}]`,
		},
		"a lost item": {
			prepare: func(w *backend, _ *checkout.Request) { w.Book.Status.Name = "Aged to lost" },
			want:    "ITEM_STATUS",
			answer: `[{"message":"Moby Dick (book) (Barcode: book) has the item status Aged to lost ` +
				`and cannot be checked out",` +
				`"code":"ITEM_STATUS"}]`,
		},
		"requested by another": {
			prepare: func(w *backend, _ *checkout.Request) {
				w.Queue = []schemas.QueuedRequest{librarytest.NewRequest("1", librarytest.CarlID, "Hold", "Item", open, 1)}
			},
			want: "ITEM_REQUESTED", answer: `[{"message":"` + refused + `","code":"ITEM_REQUESTED"}]`,
		},
		"no such policy": {
			prepare: func(w *backend, r *checkout.Request) { w.NoPolicy, r.ForceLoanPolicyID = true, librarytest.OtherID },
			want:    "LOAN_POLICY_NOT_FOUND", answer: `[{"message":"Loan policy ` + librarytest.OtherID +
				` could not be found","code":"LOAN_POLICY_NOT_FOUND"}]`,
		},
		"two of them: the first counts": {
			prepare: func(w *backend, _ *checkout.Request) {
				w.Book.Status.Name, w.Queue = "Declared lost", []schemas.QueuedRequest{
					librarytest.NewRequest("1", librarytest.CarlID, "Hold", "Item", open, 1),
				}
			},
			want: "ITEM_STATUS",
			answer: `[{"message":"Moby Dick (book) (Barcode: book) has the item status Declared lost ` +
				`and cannot be checked out",` +
				`"code":"ITEM_STATUS"},{"message":"` + refused + `","code":"ITEM_REQUESTED"}]`,
		},
		"a lost item with a loan": {
			prepare: func(w *backend, _ *checkout.Request) { w.Book.Status.Name, w.onLoan = "Claimed returned", true },
			want:    "ITEM_STATUS",
			answer: `[{"message":"Moby Dick (book) (Barcode: book) has the item status Claimed returned and cannot be checked ` +
				`out",` +
				`"code":"ITEM_STATUS"},{"message":"Cannot check out item that already has an open loan",` +
				`"code":"ITEM_HAS_OPEN_LOAN"}]`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newBackend()
			r := checkout.Request{ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID}
			tt.prepare(w, &r)
			_, err := w.service().CheckOut(asStaff(t, mayLimit), r) // for the forced policies
			if e := w.endings[0]; e.Outcome != checkout.OutcomeRefused || e.Code != tt.want {
				t.Errorf("the history has %s %q, want refused %q", e.Outcome, e.Code, tt.want)
			}
			if got := withoutParameters(t, err); got != tt.answer {
				t.Errorf("answered %s\nwant     %s", got, tt.answer)
			}
		})
	}
}

// withoutParameters returns the JSON of a refusal's errors without their parameters.
func withoutParameters(t *testing.T, err error) string {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Fatalf("got %v, want a refusal", err)
	}
	answered, err := json.Marshal(f.Details)
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		Message string          `json:"message"`
		Code    json.RawMessage `json:"code,omitempty"`
	}
	if err := json.Unmarshal(answered, &list); err != nil {
		t.Fatal(err)
	}
	if answered, err = json.Marshal(list); err != nil {
		t.Fatal(err)
	}
	return string(answered)
}
