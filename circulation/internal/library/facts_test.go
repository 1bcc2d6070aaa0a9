package library_test

import (
	"context"
	"testing"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/schemas"
)

func TestFacts_ReloadItemCountsTheLoansOfItsPatron(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ owner, want string }{
		"read again":                    {librarytest.AnnID, "now"},
		"kept if the patron is deleted": {librarytest.CarlID, "before"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := librarytest.New()
			r.Patron.ID = tt.owner
			facts := library.Facts{
				User: library.User{ID: librarytest.AnnID}, Item: r.Book,
				OpenLoans: []schemas.OpenLoans{{LoanTypeID: "before"}},
			}
			facts, err := facts.ReloadItem(t.Context(), counting{r}, "")
			if err != nil || facts.OpenLoans[0].LoanTypeID != tt.want {
				t.Errorf("got %v, %v, want the count of %s", facts.OpenLoans, err, tt.want)
			}
		})
	}
}

// counting adds a count to each snapshot of a patron.
type counting struct{ *librarytest.Records }

func (c counting) Snapshot(ctx context.Context, subjects schemas.CheckOutSubjects) (library.Facts, error) {
	seen, err := c.Records.Snapshot(ctx, subjects)
	if seen.User.ID != "" {
		seen.OpenLoans = []schemas.OpenLoans{{LoanTypeID: "now"}}
	}
	return seen, err
}
