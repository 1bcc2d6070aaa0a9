package library_test

import (
	"testing"

	"checkoutlock/circulation/internal/library"
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
