package schemas_test

import (
	"testing"

	"checkoutlock/schemas"
)

func TestLoanLimit_Count(t *testing.T) {
	t.Parallel()
	loans := []schemas.OpenLoans{
		{MaterialTypeID: "book", LoanTypeID: "week", Count: 2},
		{MaterialTypeID: "book", LoanTypeID: "day", Count: 3},
		{MaterialTypeID: "dvd", LoanTypeID: "day", Count: 4},
		{MaterialTypeID: "dvd", LoanTypeID: "day", OverdueMinutes: 90, Count: 10},
		{MaterialTypeID: "dvd", LoanTypeID: "day", OverdueMinutes: 2000, Recalled: true, Count: 20},
		{MaterialTypeID: "map", LoanTypeID: "day", OverdueMinutes: 9000, Lost: true, Count: 40},
	}
	for _, tt := range []struct {
		name  string
		limit schemas.LoanLimit
		want  int
	}{
		{name: "all", want: 79},
		{name: "of a material type", limit: schemas.LoanLimit{MaterialTypeID: "book"}, want: 5},
		{name: "of a loan type", limit: schemas.LoanLimit{LoanTypeID: "week"}, want: 2},
		{name: "of both, in capitals", limit: schemas.LoanLimit{MaterialTypeID: "DVD", LoanTypeID: "Day"}, want: 34},
		{name: "of a type that none has", limit: schemas.LoanLimit{MaterialTypeID: "score"}, want: 0},
		{name: "overdue", limit: schemas.LoanLimit{OverdueMinutes: 1}, want: 70},
		{name: "overdue for two hours", limit: schemas.LoanLimit{OverdueMinutes: 120}, want: 60},
		{name: "overdue to the minute", limit: schemas.LoanLimit{OverdueMinutes: 9000}, want: 40},
		{name: "recalled", limit: schemas.LoanLimit{OverdueMinutes: 1, Recalled: true}, want: 20},
		{name: "lost", limit: schemas.LoanLimit{Lost: true}, want: 40},
	} {
		if got := tt.limit.Count(loans); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}
