package checkout_test

import (
	"errors"
	"slices"
	"testing"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// withGroupLimits gives Ann's group limits of 5 loans and of no overdue ones.
func withGroupLimits() *backend {
	w := newBackend()
	w.blockLimits = []schemas.BlockLimit{
		{Limit: schemas.LoanLimit{Max: 5}, Message: "Too many loans"},
		{Limit: schemas.LoanLimit{Max: 1, OverdueMinutes: 1}, Message: "Overdue items"},
	}
	return w
}

func TestGroupLimits_GoWithTheCommit(t *testing.T) {
	t.Parallel()
	w := withGroupLimits()
	if _, err := w.checkOut(t); err != nil {
		t.Fatal(err)
	}
	want := []schemas.LoanLimit{{Max: 5}, {Max: 1, OverdueMinutes: 1}, {Max: 3, MaterialTypeID: librarytest.BookTypeID}}
	if got := w.commits[0].Limits; !slices.Equal(got, want) {
		t.Errorf("the commit has the limits %+v, want %+v", got, want)
	}
}

func TestGroupLimits_NeedTheLock(t *testing.T) {
	t.Parallel()
	w := withGroupLimits()
	w.set = settings.Settings{Version: "7"}
	if _, err := w.checkOut(t); err != nil || len(w.commits[0].Limits) > 0 {
		t.Errorf("got %v, committed %+v, want no limits without the lock", err, w.commits)
	}
	w.Automated = []library.AutomatedBlock{{BlockBorrowing: true, Message: "Too many loans"}}
	_, err := w.checkOut(t)
	if got := describeDetails(err); !slices.Equal(got, []string{"Too many loans [patronBlock " + mayPatron + "]"}) ||
		len(w.commits) != 1 {
		t.Errorf("got %q after %d commits, want the first count's refusal", got, len(w.commits))
	}
}

func TestGroupLimits_ReachedMeanwhileAreRefusedAsBlocks(t *testing.T) {
	t.Parallel()
	const (
		loans   = "Too many loans [patronBlock " + mayPatron + "]"
		overdue = "Overdue items [patronBlock " + mayPatron + "]"
		books   = "Patron has reached maximum limit of 3 items for material type [itemLimitBlock " + mayLimit + "]"
	)
	for name, tt := range map[string]struct {
		places  []int
		outcome string
		want    []string
	}{
		"the first":    {places: []int{0}, outcome: checkout.OutcomeRefused, want: []string{loans}},
		"the second":   {places: []int{1}, outcome: checkout.OutcomeRefused, want: []string{overdue}},
		"the policy's": {places: []int{2}, outcome: checkout.OutcomeLimitReached, want: []string{books}},
		"two":          {places: []int{0, 2}, outcome: checkout.OutcomeRefused, want: []string{loans, books}},
		"none named":   {outcome: checkout.OutcomeRefused, want: []string{loans, overdue, books}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withGroupLimits()
			w.commit = []error{newLimitReached(tt.places...)}
			_, err := w.checkOut(t)
			if got := describeDetails(err); !slices.Equal(got, tt.want) {
				t.Fatalf("got %q (%v), want %q", got, err, tt.want)
			}
			var f *fault.Error
			if errors.As(err, &f) && tt.outcome == checkout.OutcomeRefused &&
				f.Details[0].Code != "USER_IS_BLOCKED_AUTOMATICALLY" {
				t.Errorf("got the code %q", f.Details[0].Code)
			}
			if e := w.endings[0]; e.Outcome != tt.outcome || len(w.commits) != 1 || len(w.released) != 1 {
				t.Errorf("ended as %s after %d commits, released %v", e.Outcome, len(w.commits), w.released)
			}
		})
	}
}

func TestGroupLimits_AreLiftedWithThePatronsBlocks(t *testing.T) {
	t.Parallel()
	w := withGroupLimits()
	if _, err := w.service().CheckOut(asStaff(t, mayPatron),
		newOverride(t, `{"patronBlock":{},"comment":"c"}`)); err != nil {
		t.Fatal(err)
	}
	if got := w.commits[0].Limits; !slices.Equal(got, []schemas.LoanLimit{
		{Max: 3, MaterialTypeID: librarytest.BookTypeID},
	}) {
		t.Errorf("the commit has the limits %+v, want the policy's alone", got)
	}
}
