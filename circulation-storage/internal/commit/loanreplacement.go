package commit

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// LoanReplacement is a loan that staff write over the stored one, to commit; from
// ParseLoanReplacement.
type LoanReplacement struct {
	ID     uuid.UUID // chosen by the caller; a repeat has the same one
	LoanID uuid.UUID

	loan records.Record
}

// ParseLoanReplacement reads the body of POST /loan-storage/loans/{id}/replacements. Faults:
// Malformed for bad JSON, Invalid for the rest, with place and rule.
func ParseLoanReplacement(loanID uuid.UUID, body []byte) (LoanReplacement, error) {
	doc, err := parseBody("loan-replacement", body)
	if err != nil {
		return LoanReplacement{}, err
	}
	r := LoanReplacement{ID: readID(doc, "id"), LoanID: loanID, loan: doc.Object("loan")}
	r.loan["id"] = loanID.String()
	return r, nil
}

// Decide judges a replacement. As in mod-circulation, the item of an open loan becomes Checked out
// unless it is declared lost. A closed loan leaves its item as it is, because the item may be lent
// again. Faults: NotFound, Invalid; LoanChanged for a loan that is to be closed, because its item
// has to be taken back.
func (r LoanReplacement) Decide(ctx context.Context, seen Seen) (Change, error) {
	if repeated, err := seen.findRepeat(r.ID, r.LoanID); repeated || err != nil {
		return Change{Repeated: repeated}, err
	}
	loan := clone(r.loan)
	keepHidden(loan, seen.Loan)
	change, err := Change{Loan: loan}.complete(ctx, seen.Now, seen.Loan, nil, nil) // with a status, which decides
	if err != nil {
		return Change{}, err
	}
	// A closed loan has no due date, and its item may be lent again.
	moved := records.IsOpenLoan(loan) && !readInstant(loan.Text("dueDate")).Equal(readInstant(seen.Loan.Text("dueDate")))
	if moved && loan[changedByRecall] == true {
		loan[changedByRecall] = seen.Recalled
	}
	if err := r.check(seen, loan, moved); err != nil {
		return Change{}, err
	}
	if status := seen.Item.Text("status.name"); records.IsOpenLoan(loan) && status != declaredLost && status != checkedOut {
		loan["itemStatus"] = checkedOut
		endBilling(loan, seen.Item)
		change.setItem(withStatus(seen.Item, checkedOut))
	}
	if moved {
		change.Events = []Event{newLoanEvent(ctx, LoanDueDateChanged, seen.Loan, loan)}
		change.Events[0].Payload["action"] = schemas.DueDateChanged // the loan keeps the action before
	}
	return change.complete(ctx, seen.Now, seen.Loan, []records.Record{seen.Item}, nil)
}

// check refuses a loan that contradicts the stored one or its item.
func (r LoanReplacement) check(seen Seen, loan records.Record, moved bool) error {
	open, wasOpen := records.IsOpenLoan(loan), records.IsOpenLoan(seen.Loan)
	status, itemID := seen.Item.Text("status.name"), fault.Param("itemId", seen.Loan.Text("itemId"))
	switch {
	case wasOpen && !open:
		return fault.New(fault.LoanChanged, "The loan %s is open: take its item back", r.LoanID)
	case open && !wasOpen:
		return refuse("LOAN_CLOSED", "Loan is closed", fault.Param("loanId", r.LoanID.String()))
	case !strings.EqualFold(loan.Text("itemId"), seen.Loan.Text("itemId")):
		return refuse("PROPERTY_IS_FIXED", "itemId of a loan must stay", fault.Param("itemId", loan.Text("itemId")))
	case open && !strings.EqualFold(loan.Text("userId"), seen.Loan.Text("userId")):
		return refuse("PROPERTY_IS_FIXED", "userId of an open loan must stay", fault.Param("userId", loan.Text("userId")))
	case open && seen.Item == nil:
		return refuse("ITEM_NOT_FOUND", "No item with ID "+seen.Loan.Text("itemId")+" could be found", itemID)
	case moved && isUnmovable(status):
		return refuse("ITEM_STATUS", "item is "+status, itemID)
	}
	return nil
}

// keepHidden takes over what circulation's clients do not get, and so cannot send back.
func keepHidden(loan, stored records.Record) {
	for _, key := range []string{"itemStatus", "patronGroupIdAtCheckout", delayedBilling} {
		if value, exists := stored[key]; exists && loan[key] == nil {
			loan[key] = value
		}
	}
}
