package checkout_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// messages returns the messages of a fault's details.
func messages(err error) []string {
	var f *fault.Error
	if !errors.As(err, &f) {
		return nil
	}
	var all []string
	for _, d := range f.Details {
		all = append(all, d.Message)
	}
	return all
}

func TestWhatACheckOutIsRefusedFor(t *testing.T) {
	t.Parallel()
	inactive := false
	limit := "Patron has reached maximum limit of 3 items for material type"
	tests := map[string]struct {
		prepare func(*world, *checkout.Request)
		want    []string
	}{
		"no service point":        {func(_ *world, r *checkout.Request) { r.ServicePointID = " " }, []string{"Check out must be performed at a service point"}},
		"service point is no id":  {func(_ *world, r *checkout.Request) { r.ServicePointID = "desk" }, []string{"servicePointId must be a UUID"}},
		"unknown patron":          {func(_ *world, r *checkout.Request) { r.UserBarcode = "bob" }, []string{"Could not find user with matching barcode"}},
		"no patron at all":        {func(_ *world, r *checkout.Request) { r.UserBarcode = "" }, []string{"Could not find user with matching barcode"}},
		"activity unknown":        {func(w *world, _ *checkout.Request) { w.user.Active = nil }, []string{"Cannot determine if user is active or not"}},
		"inactive":                {func(w *world, _ *checkout.Request) { w.user.Active = &inactive }, []string{"Cannot check out to inactive user"}},
		"expired":                 {func(w *world, _ *checkout.Request) { w.user.ExpirationDate.Time = today.Add(-time.Second) }, []string{"Cannot check out to inactive user"}},
		"unknown item":            {func(_ *world, r *checkout.Request) { r.ItemBarcode = "x" }, []string{"No item with barcode x could be found"}},
		"a barcode that none has": {func(_ *world, r *checkout.Request) { r.ItemBarcode = "x\x00" }, []string{"No item with barcode x\x00 could be found"}},
		"already checked out":     {func(w *world, _ *checkout.Request) { w.item.Status.Name = "Checked out" }, []string{"Item is already checked out"}},
		"declared lost": {
			func(w *world, _ *checkout.Request) { w.item.Status.Name = "Declared lost" },
			[]string{"Moby Dick (book) (Barcode: book) has the item status Declared lost and cannot be checked out"},
		},
		"open loan":     {func(w *world, _ *checkout.Request) { w.onLoan = true }, []string{"Cannot check out item that already has an open loan"}},
		"limit reached": {func(w *world, _ *checkout.Request) { w.open = []int{3} }, []string{limit}},
		"not loanable": {
			func(w *world, _ *checkout.Request) {
				w.policy = strings.Replace(w.policy, `"loanable":true`, `"loanable":false`, 1)
			},
			[]string{"Item is not loanable"},
		},
		"due date cannot be computed": {
			func(w *world, _ *checkout.Request) { w.policy = strings.Replace(w.policy, "Weeks", "Fortnights", 1) },
			[]string{`the interval "Fortnights" in the loan policy is not recognised`},
		},
		"everything at once": {
			func(w *world, r *checkout.Request) {
				r.ServicePointID, w.user.Active, w.item.Status.Name, w.onLoan, w.open = "", &inactive, "Checked out", true, []int{5}
			},
			[]string{
				"Check out must be performed at a service point", "Cannot check out to inactive user", "Item is already checked out",
				"Cannot check out item that already has an open loan", limit,
			},
		},
		"an unknown patron and a forced policy that does not lend": {
			func(w *world, r *checkout.Request) {
				r.UserBarcode, r.ForceLoanPolicyID = "bob", threeID
				w.policy = strings.Replace(w.policy, `"loanable":true`, `"loanable":false`, 1)
			},
			[]string{"Could not find user with matching barcode", "Item is not loanable"},
		},
		"neither patron nor item": {
			func(_ *world, r *checkout.Request) { r.UserBarcode, r.ItemBarcode = "bob", "x" },
			[]string{"Could not find user with matching barcode", "No item with barcode x could be found"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			r := checkout.Request{ItemBarcode: "book", UserBarcode: "ann", ServicePointID: deskID}
			tt.prepare(w, &r)
			_, err := w.service().CheckOut(asStaff(t, mayLimit), r) // for the forced policies
			if got := messages(err); !slices.Equal(got, tt.want) || !fault.Is(err, fault.Invalid) {
				t.Errorf("got %q (%v), want %q", got, err, tt.want)
			}
			if len(w.requests)+len(w.commits) != 0 {
				t.Error("a refused check-out took a lock or was committed")
			}
		})
	}
}

// What is wrong is told in the order of FOLIO's checks, each skipped only when
// what it is about was not found.
func TestEverythingThatIsWrongIsToldAtOnceAndInOrder(t *testing.T) {
	t.Parallel()
	inactive := false
	w := newWorld()
	w.user.Active, w.item.Status.Name, w.onLoan, w.open = &inactive, "Checked out", true, []int{5}
	w.policy = strings.Replace(w.policy, `"loanable":true`, `"loanable":false`, 1)
	w.manual = []checkout.ManualBlock{{Desc: "owes", Borrowing: true}}
	w.auto = []checkout.AutomatedBlock{{BlockBorrowing: true, Message: "Too many overdue"}}
	w.people = map[string]checkout.User{"carl": {ID: carlID}}
	w.queue = []schemas.QueuedRequest{wish("1", carlID, "Hold", "Item", open, 1)}
	_, err := w.service().CheckOut(t.Context(), checkout.Request{
		ItemBarcode: "book", UserBarcode: "ann", ProxyUserBarcode: "carl", ForceLoanPolicyID: "",
	})
	want := []string{
		"Check out must be performed at a service point", "Patron blocked from borrowing", "Too many overdue",
		"Cannot check out to inactive user", "Cannot determine if proxying user is active or not",
		"Cannot check out item via proxy when relationship is invalid", "Item is already checked out",
		"Cannot check out item that already has an open loan", refused,
		"Patron has reached maximum limit of 3 items for material type", "Item is not loanable",
	}
	if got := messages(err); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestFaultsOfStoredConfigurationNameTheirCause(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		prepare func(*world)
		want    string
	}{
		"patron without group":     {func(w *world) { w.user.PatronGroup = "" }, "Unable to apply circulation rules to a user with null value as patronGroupId"},
		"item without place":       {func(w *world) { w.item.EffectiveLocationID = "" }, "Unable to apply circulation rules to an item with null value as locationId"},
		"item without loan type":   {func(w *world) { w.item.PermanentLoanTypeID = "" }, "Unable to apply circulation rules to an item which loan type can not be determined"},
		"item without type":        {func(w *world) { w.item.MaterialTypeID = "" }, "Unable to apply circulation rules to an item with null value as materialTypeId"},
		"rules name no such thing": {func(w *world) { w.noPolicy = true }, "Loan policy " + threeID + " could not be found, please check circulation rules"},
		"a schedule that is gone": {
			func(w *world) {
				w.policy = strings.Replace(w.policy, `"itemLimit":3`, `"fixedDueDateScheduleId":"s1"`, 1)
			},
			"Fixed due date schedule s1 of the loan policy " + threeID + " could not be found",
		},
		"no rules": {func(w *world) { w.rules = "" }, "Cannot apply blank circulation rules"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			tt.prepare(w)
			_, err := w.checkOut(t)
			var f *fault.Error
			if !errors.As(err, &f) || f.Code != fault.Internal || f.Msg != tt.want {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestTheLimitCountsWhatItsRuleNames(t *testing.T) {
	t.Parallel()
	const rest = " r r1 n n1 o o1 i i1\n"
	tests := map[string]struct {
		rule string
		want []string // counts before and under the lock
	}{
		"by material type":       {"m " + bookTypeID, []string{annID + "|" + bookTypeID + "|"}},
		"by loan type":           {"t " + canLendID, []string{annID + "||" + canLendID}},
		"by both":                {"m " + bookTypeID + " + t " + canLendID, []string{annID + "|" + bookTypeID + "|" + canLendID}},
		"by patron group, never": {"g " + adultsID, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.rules = "priority: last-line\nfallback-policy: l " + otherID + rest + tt.rule + ": l " + threeID + rest
			if _, err := w.checkOut(t); err != nil {
				t.Fatal(err)
			}
			if want := append(slices.Clone(tt.want), tt.want...); !slices.Equal(w.counted, want) {
				t.Errorf("counted %v, want %v", w.counted, want)
			}
		})
	}
}

func TestStaffLearnWhichPermissionWouldLiftTheLimit(t *testing.T) {
	t.Parallel()
	for granted, want := range map[string][]string{
		"": {"circulation.override-item-limit-block.post"},
		"circulation.override-item-limit-block.post": {},
	} {
		w := newWorld()
		w.open = []int{3}
		ctx := okapi.NewContext(t.Context(), okapi.Call{Permissions: []string{granted}})
		_, err := w.service().CheckOut(ctx, checkout.Request{ItemBarcode: "book", UserBarcode: "ann", ServicePointID: deskID})
		var f *fault.Error
		if !errors.As(err, &f) || f.Details[0].OverridableBlock == nil || !slices.Equal(f.Details[0].OverridableBlock.MissingPermissions, want) {
			t.Errorf("with %q: got %v", granted, err)
		}
	}
}

func TestALoanEndsWithThePatronsExpiration(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.user.ExpirationDate.Time = today.AddDate(0, 0, 3)
	if _, err := w.checkOut(t); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(w.commits[0].Loan), `"dueDate":"2026-03-04T10:00:00.000Z"`) {
		t.Errorf("lent %s", w.commits[0].Loan)
	}
}
