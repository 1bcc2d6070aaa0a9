package checkout_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// The refusals of a request without a barcode.
const (
	noItemBarcode = "itemBarcode is required: a barcode as text"
	noUserBarcode = "userBarcode is required: a barcode as text"
)

func TestPlan_Refusals(t *testing.T) {
	t.Parallel()
	inactive := false
	limit := "Patron has reached maximum limit of 3 items for material type"
	tests := map[string]struct {
		prepare func(*backend, *checkout.Request)
		want    []string
	}{
		"no service point": {
			func(_ *backend, r *checkout.Request) { r.ServicePointID = " " },
			[]string{"Check out must be performed at a service point"},
		},
		"service point is no id": {
			func(_ *backend, r *checkout.Request) { r.ServicePointID = "desk" }, []string{"servicePointId must be a UUID"},
		},
		"unknown patron": {
			func(_ *backend, r *checkout.Request) { r.UserBarcode = "bob" }, []string{
				"Could not find user with matching barcode",
			},
		},
		"unknown patron, requested item": {
			func(w *backend, r *checkout.Request) {
				r.UserBarcode = "bob"
				w.Queue = []schemas.QueuedRequest{librarytest.NewRequest("1", librarytest.CarlID, "Hold", "Item", open, 1)}
			}, []string{"Could not find user with matching barcode"},
		},
		"no patron at all": {func(_ *backend, r *checkout.Request) { r.UserBarcode = "" }, []string{noUserBarcode}},
		"no item at all":   {func(_ *backend, r *checkout.Request) { r.ItemBarcode = "" }, []string{noItemBarcode}},
		"activity unknown": {
			func(w *backend, _ *checkout.Request) { w.Patron.Active = nil }, []string{
				"Cannot determine if user is active or not",
			},
		},
		"inactive": {
			func(w *backend, _ *checkout.Request) { w.Patron.Active = &inactive }, []string{"Cannot check out to inactive user"},
		},
		"expired": {func(w *backend, _ *checkout.Request) {
			w.Patron.ExpirationDate.Time = librarytest.Today.Add(-time.Second)
		}, []string{"Cannot check out to inactive user"}},
		"unknown item": {
			func(_ *backend, r *checkout.Request) { r.ItemBarcode = "x" }, []string{"No item with barcode x could be found"},
		},
		"a barcode that none has": {
			func(_ *backend, r *checkout.Request) { r.ItemBarcode = "x\x00" },
			[]string{"No item with barcode x\x00 could be found"},
		},
		"already checked out": {
			func(w *backend, _ *checkout.Request) { w.Book.Status.Name = "Checked out" }, []string{
				"Item is already checked out",
			},
		},
		"checked out to the same patron": {
			func(w *backend, _ *checkout.Request) {
				w.Book.Status.Name, w.onLoan, w.toUser = "Checked out", true, true
			},
			[]string{"Item is already checked out to this patron"},
		},
		"checked out, and another open loan": {
			func(w *backend, _ *checkout.Request) { w.Book.Status.Name, w.onLoan = "Checked out", true },
			[]string{"Item is already checked out"},
		},
		"a misspelt service point": {
			func(_ *backend, r *checkout.Request) {
				r.ServicePointID, r.Sent = "", `{"itemBarcode":"book","userBarcode":"ann","service_point_id":"1"}`
			},
			[]string{"Check out must be performed at a service point. It was sent as service_point_id, " +
				"but names of properties are compared exactly"},
		},
		"declared lost": {
			func(w *backend, _ *checkout.Request) { w.Book.Status.Name = "Declared lost" },
			[]string{"Moby Dick (book) (Barcode: book) has the item status Declared lost and cannot be checked out"},
		},
		"an intellectual item": {
			func(w *backend, _ *checkout.Request) { w.Book.Status.Name = "Intellectual item" },
			[]string{"Moby Dick (book) (Barcode: book) has the item status Intellectual item and cannot be checked out"},
		},
		"open loan": {
			func(w *backend, _ *checkout.Request) { w.onLoan = true },
			[]string{"Cannot check out item that already has an open loan"},
		},
		"limit reached": {func(w *backend, _ *checkout.Request) { w.open = []int{3} }, []string{limit}},
		"not loanable": {
			func(w *backend, _ *checkout.Request) {
				w.Policy = strings.Replace(w.Policy, `"loanable":true`, `"loanable":false`, 1)
			},
			[]string{"Item is not loanable"},
		},
		"due date cannot be computed": {
			func(w *backend, _ *checkout.Request) { w.Policy = strings.Replace(w.Policy, "Weeks", "Fortnights", 1) },
			[]string{`the interval "Fortnights" in the loan policy is not recognised`},
		},
		"everything at once": {
			func(w *backend, r *checkout.Request) {
				r.ServicePointID, w.Patron.Active = "", &inactive
				w.Book.Status.Name, w.onLoan, w.open = "Checked out", true, []int{5}
			},
			[]string{
				"Check out must be performed at a service point", "Cannot check out to inactive user",
				"Item is already checked out", limit,
			},
		},
		"an unknown patron and a forced policy that does not lend": {
			func(w *backend, r *checkout.Request) {
				r.UserBarcode, r.ForceLoanPolicyID = "bob", librarytest.ThreeID
				w.Policy = strings.Replace(w.Policy, `"loanable":true`, `"loanable":false`, 1)
			},
			[]string{"Could not find user with matching barcode", "Item is not loanable"},
		},
		"neither patron nor item": {
			func(_ *backend, r *checkout.Request) { r.UserBarcode, r.ItemBarcode = "bob", "x" },
			[]string{"Could not find user with matching barcode", "No item with barcode x could be found"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newBackend()
			r := checkout.Request{ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID}
			tt.prepare(w, &r)
			_, err := w.service().CheckOut(asStaff(t, mayLimit), r) // for the forced policies
			if got := librarytest.Messages(err); !slices.Equal(got, tt.want) || !fault.Is(err, fault.Invalid) {
				t.Errorf("got %q (%v), want %q", got, err, tt.want)
			}
			checkDetails(t, err)
			if len(w.requests)+len(w.commits) != 0 {
				t.Error("a refused check-out took a lock or was committed")
			}
		})
	}
}

// checkDetails fails the test if a detail has no code, or a parameter no key.
func checkDetails(t *testing.T, err error) {
	t.Helper()
	f, _ := errors.AsType[*fault.Error](err)
	for _, d := range f.Details {
		if d.Code == "" || slices.ContainsFunc(d.Parameters, func(p fault.Parameter) bool { return p.Key == "" }) {
			t.Errorf("got %+v, want a code, and a key for each parameter", d)
		}
	}
}

// Refusals stand in the order of FOLIO's checks. A check is skipped only if its subject was not
// found.
func TestPlan_ReportsEverythingInOrder(t *testing.T) {
	t.Parallel()
	inactive := false
	w := newBackend()
	w.Patron.Active, w.Book.Status.Name, w.onLoan, w.open = &inactive, "Checked out", true, []int{5}
	w.Policy = strings.Replace(w.Policy, `"loanable":true`, `"loanable":false`, 1)
	w.Manual = []library.ManualBlock{{Desc: "owes", Borrowing: true}}
	w.Automated = []library.AutomatedBlock{{BlockBorrowing: true, Message: "Too many overdue"}}
	w.Others = map[string]library.User{"carl": {ID: librarytest.CarlID}}
	w.Queue = []schemas.QueuedRequest{librarytest.NewRequest("1", librarytest.CarlID, "Hold", "Item", open, 1)}
	_, err := w.service().CheckOut(t.Context(), checkout.Request{
		ItemBarcode: "book", UserBarcode: "ann", ProxyUserBarcode: "carl", ForceLoanPolicyID: "",
	})
	want := []string{
		"Check out must be performed at a service point", "Patron blocked from borrowing", "Too many overdue",
		"Cannot check out to inactive user", "Cannot determine if proxying user is active or not",
		"Cannot check out item via proxy when relationship is invalid", "Item is already checked out",
		refused, "Patron has reached maximum limit of 3 items for material type", "Item is not loanable",
	}
	if got := librarytest.Messages(err); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestPlan_ConfigurationFaultsNameTheirCause(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		prepare func(*backend)
		want    string
	}{
		"patron without group": {
			func(w *backend) { w.Patron.PatronGroup = "" },
			"Unable to apply circulation rules to a user with null value as patronGroupId",
		},
		"item without place": {
			func(w *backend) { w.Book.EffectiveLocationID = "" },
			"Unable to apply circulation rules to an item with null value as locationId",
		},
		"item without loan type": {
			func(w *backend) { w.Book.PermanentLoanTypeID = "" },
			"Unable to apply circulation rules to an item which loan type can not be determined",
		},
		"item without type": {
			func(w *backend) { w.Book.MaterialTypeID = "" },
			"Unable to apply circulation rules to an item with null value as materialTypeId",
		},
		"rules name no such thing": {
			func(w *backend) { w.NoPolicy = true },
			"Loan policy " + librarytest.ThreeID + " could not be found, please check circulation rules",
		},
		"a schedule that is gone": {
			func(w *backend) {
				w.Policy = strings.Replace(w.Policy, `"itemLimit":3`, `"fixedDueDateScheduleId":"s1"`, 1)
			},
			"Fixed due date schedule s1 of the loan policy " + librarytest.ThreeID + " could not be found",
		},
		"no rules": {func(w *backend) { w.RulesText = "" }, "Cannot apply blank circulation rules"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newBackend()
			tt.prepare(w)
			_, err := w.checkOut(t)
			var f *fault.Error
			if !errors.As(err, &f) || f.Code != fault.Internal || f.Msg != tt.want {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestPlan_FailsIfAnythingCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, forced := range []string{"", librarytest.ThreeID} {
		for n := int64(1); ; n++ {
			w := newBackend()
			w.FailAt = n
			_, err := w.service().CheckOut(asStaff(t, mayLimit), checkout.Request{
				ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID, ForceLoanPolicyID: forced,
			})
			if w.Reads() < n {
				break
			}
			if !errors.Is(err, librarytest.ErrUnread) || len(w.requests)+len(w.commits) != 0 {
				t.Errorf("read %d: got %v, asked for %v, committed %v", n, err, w.requests, w.commits)
			}
		}
	}
}

func TestPlan_LoanHasTheDateOfTheRequest(t *testing.T) {
	t.Parallel()
	w := newBackend()
	_, err := w.service().CheckOut(t.Context(), checkout.Request{
		ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID, LoanDate: until(-24 * time.Hour),
	})
	if err != nil || !contains(w, `"loanDate":"2026-02-28T10:00:00.000Z","dueDate":"2026-03-14T10:00:00.000Z"`) {
		t.Errorf("got %v, lent %+v", err, w.commits)
	}
}

func TestPlan_LimitCountsWhatItsRuleNames(t *testing.T) {
	t.Parallel()
	const rest = " r r1 n n1 o o1 i i1\n"
	tests := map[string]struct {
		rule string
		want []schemas.LoanLimit // of the count under the lock
	}{
		"by material type": {
			"m " + librarytest.BookTypeID, []schemas.LoanLimit{{Max: 3, MaterialTypeID: librarytest.BookTypeID}},
		},
		"by loan type": {
			"t " + librarytest.CanLendID, []schemas.LoanLimit{{Max: 3, LoanTypeID: librarytest.CanLendID}},
		},
		"by both": {
			"m " + librarytest.BookTypeID + " + t " + librarytest.CanLendID,
			[]schemas.LoanLimit{{Max: 3, MaterialTypeID: librarytest.BookTypeID, LoanTypeID: librarytest.CanLendID}},
		},
		"by material type, in one library": {
			"m " + librarytest.BookTypeID + " + c lib + b city + a uni",
			[]schemas.LoanLimit{{Max: 3, MaterialTypeID: librarytest.BookTypeID}},
		},
		"by patron group, never": {"g " + librarytest.AdultsID, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newBackend()
			w.RulesText = "priority: last-line\nfallback-policy: l " + librarytest.OtherID + rest + tt.rule + ": l " +
				librarytest.ThreeID + rest
			if _, err := w.checkOut(t); err != nil {
				t.Fatal(err)
			}
			if got := w.commits[0].Limits; !slices.Equal(got, tt.want) {
				t.Errorf("the commit has the limits %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestPlan_LimitNamesThePermissionThatLiftsIt(t *testing.T) {
	t.Parallel()
	for granted, want := range map[string][]string{
		"": {"circulation.override-item-limit-block.post"},
		"circulation.override-item-limit-block.post": {},
	} {
		w := newBackend()
		w.open = []int{3}
		ctx := okapi.NewContext(t.Context(), okapi.Call{Permissions: []string{granted}})
		_, err := w.service().CheckOut(ctx, checkout.Request{
			ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID,
		})
		var f *fault.Error
		if !errors.As(err, &f) || f.Details[0].OverridableBlock == nil ||
			f.Details[0].OverridableBlock.MissingPermissions == nil ||
			!slices.Equal(f.Details[0].OverridableBlock.MissingPermissions, want) {
			t.Errorf("with %q: got %v", granted, err)
		}
	}
}

func TestPlan_LoanEndsWithThePatronsExpiration(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.Patron.ExpirationDate.Time = librarytest.Today.AddDate(0, 0, 3)
	if _, err := w.checkOut(t); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(w.commits[0].Loan), `"dueDate":"2026-03-04T10:00:00.000Z"`) {
		t.Errorf("lent %s", w.commits[0].Loan)
	}
}

// until returns the time d after today.
func until(d time.Duration) library.Instant { return library.Instant{Time: librarytest.Today.Add(d)} }
