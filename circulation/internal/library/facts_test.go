package library_test

import (
	"context"
	"testing"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/schemas"
)

func TestFacts_CountOpenLoans(t *testing.T) {
	t.Parallel()
	facts := library.Facts{OpenLoans: []schemas.OpenLoans{
		{MaterialTypeID: "book", LoanTypeID: "week", Count: 2},
		{MaterialTypeID: "book", LoanTypeID: "day", Count: 3},
		{MaterialTypeID: "dvd", LoanTypeID: "day", Count: 4},
	}}
	for _, tt := range []struct {
		name               string
		material, loanType string
		want               int
	}{
		{name: "all", want: 9},
		{name: "of a material type", material: "book", want: 5},
		{name: "of a loan type", loanType: "day", want: 7},
		{name: "of both, in capitals", material: "DVD", loanType: "Day", want: 4},
		{name: "of a type that none has", material: "map", want: 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := facts.CountOpenLoans(tt.material, tt.loanType); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

func TestFacts_ReloadItemCountsTheLoansOfItsPatron(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ owner, want string }{
		"read again": {librarytest.AnnID, "now"},
		"kept if another patron has the barcode now": {librarytest.CarlID, "before"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := librarytest.New()
			r.Patron.ID = tt.owner
			facts := library.Facts{
				User: library.User{ID: librarytest.AnnID, Barcode: "ann"}, UserFound: true, Copy: library.Copy{Item: r.Book},
				OpenLoans: []schemas.OpenLoans{{LoanTypeID: "before"}},
			}
			if err := facts.ReloadItem(t.Context(), counting{r}); err != nil || facts.OpenLoans[0].LoanTypeID != tt.want {
				t.Errorf("got %v, %v, want the count of %s", facts.OpenLoans, err, tt.want)
			}
		})
	}
}

// counting adds a count to each snapshot of a patron.
type counting struct{ *librarytest.Records }

func (c counting) Snapshot(ctx context.Context, subjects schemas.CheckOutSubjects) (library.Snapshot, error) {
	seen, err := c.Records.Snapshot(ctx, subjects)
	if seen.User != nil {
		seen.OpenLoans = []schemas.OpenLoans{{LoanTypeID: "now"}}
	}
	return seen, err
}
