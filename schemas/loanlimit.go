package schemas

import "strings"

// LoanLimit bounds the open loans of a patron that meet all of its conditions. Loans of items
// that are claimed returned never count. A zero field is no condition.
type LoanLimit struct {
	Max            int    `json:"max"` // a patron with so many loans gets no other
	MaterialTypeID string `json:"materialTypeId,omitempty"`
	LoanTypeID     string `json:"loanTypeId,omitempty"`     // the one in force for the item
	OverdueMinutes int    `json:"overdueMinutes,omitempty"` // overdue for so long, by the database's clock
	Recalled       bool   `json:"recalled,omitempty"`       // a recall changed the due date
	Lost           bool   `json:"lost,omitempty"`           // the item is declared or aged to lost
}

// LimitPlace is the parameter of a refused check-out that has the place of a reached limit in
// CheckOut.Limits, counted from 0.
const LimitPlace = "limit"

// OpenLoans is how many of a patron's open loans are alike.
type OpenLoans struct {
	MaterialTypeID string `json:"materialTypeId"`
	LoanTypeID     string `json:"loanTypeId"`               // the temporary one if the item has one
	OverdueMinutes int    `json:"overdueMinutes,omitempty"` // 0 for loans that are not overdue
	Recalled       bool   `json:"recalled,omitempty"`       // overdue after a recall
	Lost           bool   `json:"lost,omitempty"`
	Count          int    `json:"count"`
}

// Count returns how many of the loans the limit counts.
func (l LoanLimit) Count(loans []OpenLoans) int {
	n := 0
	for _, o := range loans {
		if l.counts(o) {
			n += o.Count
		}
	}
	return n
}

func (l LoanLimit) counts(o OpenLoans) bool {
	isOf := func(wanted, id string) bool { return wanted == "" || strings.EqualFold(wanted, id) }
	return isOf(l.MaterialTypeID, o.MaterialTypeID) && isOf(l.LoanTypeID, o.LoanTypeID) &&
		o.OverdueMinutes >= l.OverdueMinutes && (o.Recalled || !l.Recalled) && (o.Lost || !l.Lost)
}

// BlockLimit is a limit of a patron group that blocks borrowing, and the message of the block.
type BlockLimit struct {
	Limit   LoanLimit `json:"limit"`
	Message string    `json:"message"`
}
