package checkout_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/schemas/fault"
)

// contains reports whether the first commit's loan has this part.
func contains(w *backend, part string) bool { return strings.Contains(string(w.commits[0].Loan), part) }

func TestForcedPolicy_NeedsNoRules(t *testing.T) {
	t.Parallel()
	ask := func(id string) checkout.Request {
		return checkout.Request{
			ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID, ForceLoanPolicyID: id,
		}
	}
	ctx := asStaff(t, mayLimit)
	w := newBackend()
	w.RulesText, w.open, w.Patron.PatronGroup = "", []int{99}, "" // no rules, no limit, no group that rules need
	if _, err := w.service().CheckOut(ctx, ask(librarytest.ThreeID)); err != nil {
		t.Fatal(err)
	}
	if len(w.commits[0].Limits) > 0 || !contains(w, `"loanPolicyId":"`+librarytest.ThreeID+`"`) {
		t.Errorf("committed %+v, want no limit and the policy", w.commits[0])
	}
	w.NoPolicy = true
	if _, err := w.service().CheckOut(ctx, ask(librarytest.OtherID)); !slices.Equal(librarytest.Messages(err), []string{
		"Loan policy " + librarytest.OtherID + " could not be found",
	}) {
		t.Errorf("got %v", err)
	}
	_, err := w.service().CheckOut(ctx, ask("three"))
	if want := []string{"forceLoanPolicyId must be a UUID"}; !slices.Equal(librarytest.Messages(err), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestForcedPolicy_NeedsThePermissionForTheLimit(t *testing.T) {
	t.Parallel()
	for name, permissions := range map[string][]string{"none": nil, "of another block": {mayPatron, mayLoanable}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newBackend()
			w.open, w.NoPolicy = []int{3}, true // an unknown policy is not disclosed either
			_, err := w.service().CheckOut(asStaff(t, permissions...), checkout.Request{
				ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID, ForceLoanPolicyID: librarytest.ThreeID,
			})
			if want := []string{
				"Insufficient override permissions [itemLimitBlock " + mayLimit + "]",
			}; !slices.Equal(describeDetails(err), want) {
				t.Fatalf("got %q (%v), want %q", describeDetails(err), err, want)
			}
			var f *fault.Error
			if !errors.As(err, &f) || f.Code != fault.Invalid || f.Details[0].Code != "INSUFFICIENT_OVERRIDE_PERMISSIONS" ||
				len(f.Details[0].Parameters) != 1 || f.Details[0].Parameters[0].Key != "forceLoanPolicyId" ||
				*f.Details[0].Parameters[0].Value != librarytest.ThreeID {
				t.Errorf("got %+v, want the parameter forceLoanPolicyId", f)
			}
			if len(w.requests)+len(w.commits) != 0 {
				t.Error("a refused check-out took a lock or was committed")
			}
		})
	}
}

// Desks show the first parameter as the loan policy.
func TestTerms_RefusalsNameThePolicyFirst(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.Policy = strings.Replace(w.Policy, `"loanable":true`, `"loanable":false`, 1)
	_, err := w.checkOut(t)
	var f *fault.Error
	if !errors.As(err, &f) || len(f.Details) != 1 {
		t.Fatalf("got %v, want one detail", err)
	}
	var got []string
	for _, p := range f.Details[0].Parameters {
		got = append(got, p.Key+"="+*p.Value)
	}
	if want := []string{
		"loanPolicyName=Three", "loanPolicyId=" + librarytest.ThreeID, "itemBarcode=book",
	}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTerms_HaveAllPoliciesOfTheRule(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.RulesText = strings.Replace(w.RulesText, "o o1 i i1\nm", "o o2 i i2\nm", 1)
	w.RulesText = strings.Replace(w.RulesText, "o o1 i i1", "o "+librarytest.OtherID+" i "+librarytest.CarlID, 1)
	if _, err := w.checkOut(t); err != nil {
		t.Fatal(err)
	}
	if !contains(w, `"overdueFinePolicyId":"`+librarytest.OtherID+`","lostItemPolicyId":"`+librarytest.CarlID+`"`) {
		t.Errorf("lent %s", w.commits[0].Loan)
	}
	w = newBackend() // its rules name them with texts that are no ids
	if _, err := w.checkOut(t); err != nil || contains(w, "FinePolicyId") {
		t.Errorf("got %v, lent %s", err, w.commits[0].Loan)
	}
}

func TestTerms_FollowTheSchedule(t *testing.T) {
	t.Parallel()
	const term = `{"schedules":[{"from":"2026-01-01T00:00:00Z","to":"2026-06-30T00:00:00Z","due":"2026-03-05T00:00:00Z"}]}`
	const past = `{"schedules":[{"from":"2025-01-01T00:00:00Z","to":"2025-06-30T00:00:00Z","due":"2025-07-05T00:00:00Z"}]}`
	const outside = "loan date falls outside of the date ranges in the loan policy"
	tests := map[string]struct {
		profile, schedule string
		want              []string
	}{
		"fixed":                    {profile: "Fixed", schedule: term},
		"rolling, limited":         {profile: "Rolling", schedule: term},
		"fixed, out of range":      {profile: "Fixed", schedule: past, want: []string{outside}},
		"rolling out of its range": {profile: "Rolling", schedule: past, want: []string{outside}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newBackend()
			w.Schedule = tt.schedule
			w.Policy = strings.Replace(w.Policy, `"profileId":"Rolling"`, `"profileId":"`+tt.profile+
				`","fixedDueDateScheduleId":"s1"`, 1)
			_, err := w.checkOut(t)
			if got := librarytest.Messages(err); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if err == nil && !contains(w, `"dueDate":"2026-03-05T00:00:00.000Z"`) {
				t.Errorf("lent %s", w.commits[0].Loan)
			}
		})
	}
}

func TestTerms_KeepTheCallersLoanID(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.commit = []error{errChanged}
	_, err := w.service().Lend(t.Context(), checkout.Request{
		ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID,
	}, checkout.KeyLease{LoanID: librarytest.CarlID})
	if err != nil || len(w.commits) != 2 || !contains(w, `{"id":"`+librarytest.CarlID+`"`) ||
		string(w.commits[0].Loan) != string(w.commits[1].Loan) {
		t.Errorf("got %v, committed %+v", err, w.commits)
	}
}
