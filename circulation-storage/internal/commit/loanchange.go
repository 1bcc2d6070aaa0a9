package commit

import (
	"cmp"
	"context"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// LoanChange is a change of a loan to commit, from ParseLoanChange. The caller has judged nothing:
// Decide does, by what the transaction locked.
type LoanChange struct {
	ID     uuid.UUID // chosen by the caller; a repeat has the same one
	LoanID uuid.UUID

	action  string
	comment string
	date    string // as sent; "" for none
}

// changedStatuses are the statuses that actions give the item.
var changedStatuses = map[string]string{
	schemas.ClaimedReturned: claimedReturned, schemas.DeclaredLost: declaredLost, schemas.MarkedMissing: "Missing",
}

// changeEvents are the events of actions; the others are only logged.
var changeEvents = map[string]string{
	schemas.DueDateChanged: LoanDueDateChanged, schemas.ClaimedReturned: ItemClaimedReturned,
	schemas.DeclaredLost: ItemDeclaredLost, schemas.MarkedMissing: LoanClosed,
}

const (
	claimedReturned = "Claimed returned"
	declaredLost    = "Declared lost"
	agedToLost      = "Aged to lost"

	closed = "Closed" // the status of a loan
)

// ParseLoanChange reads the body of POST /loan-storage/loans/{id}/changes. Faults: Malformed for
// bad JSON, Invalid for the rest, with place and rule.
func ParseLoanChange(loanID uuid.UUID, body []byte) (LoanChange, error) {
	doc, err := parseBody("loan-change", body)
	if err != nil {
		return LoanChange{}, err
	}
	c := LoanChange{ID: readID(doc, "id"), LoanID: loanID, action: doc.Text("action"), comment: doc.Text("comment"), date: doc.Text("date")}
	if c.date == "" && (c.action == schemas.DueDateChanged || c.action == schemas.ClaimedReturned) {
		return LoanChange{}, newInvalid("date is required with the action "+c.action, "date", "")
	}
	return c, nil
}

// ChangesItem reports whether the item gets another status.
func (c LoanChange) ChangesItem() bool { return changedStatuses[c.action] != "" }

// ReadsItem reports whether the item or its requests decide.
func (c LoanChange) ReadsItem() bool { return c.ChangesItem() || c.action == schemas.DueDateChanged }

// Decide judges a change in mod-circulation's words. Faults: NotFound, Invalid.
func (c LoanChange) Decide(ctx context.Context, seen Seen) (Change, error) {
	if repeated, err := seen.findRepeat(c.ID, c.LoanID); repeated || err != nil {
		return Change{Repeated: repeated}, err
	}
	if err := c.check(seen); err != nil {
		return Change{}, err
	}
	change := Change{Loan: c.changeLoan(seen)}
	if c.ChangesItem() {
		change.setItem(withStatus(seen.Item, changedStatuses[c.action]))
	}
	change.Events = []Event{newLoanEvent(ctx, cmp.Or(changeEvents[c.action], LogRecord), seen.Loan, change.Loan)}
	return change.complete(ctx, seen.Now, seen.Loan, []records.Record{seen.Item}, nil)
}

// check refuses a change that loan or item do not allow. Information is added to closed loans too.
func (c LoanChange) check(seen Seen) error {
	status, itemID := seen.Item.Text("status.name"), fault.Param("itemId", seen.Loan.Text("itemId"))
	switch {
	case !c.ReadsItem():
		return nil
	case !records.IsOpenLoan(seen.Loan):
		return refuse("LOAN_CLOSED", "Loan is closed", fault.Param("loanId", c.LoanID.String()))
	case c.action == schemas.DueDateChanged && isUnmovable(status):
		return refuse("ITEM_STATUS", "item is "+status, itemID)
	case c.ChangesItem() && seen.Item == nil:
		return refuse("ITEM_NOT_FOUND", "No item with ID "+seen.Loan.Text("itemId")+" could be found", itemID)
	case c.action == schemas.DeclaredLost && status == declaredLost:
		return refuse("ITEM_STATUS", "The item is already declared lost", itemID)
	case c.action == schemas.MarkedMissing && status != claimedReturned:
		return refuse("ITEM_STATUS", "Item is not Claimed returned", itemID)
	}
	return nil
}

// isUnmovable reports whether the due date of an item with the status stays.
func isUnmovable(status string) bool {
	return status == declaredLost || status == claimedReturned || status == agedToLost
}

// refuse returns a refusal that circulation passes on as it is.
func refuse(code, message string, about ...fault.Parameter) error {
	return fault.Validation(fault.Refusal(code, message, about...))
}

func (c LoanChange) changeLoan(seen Seen) records.Record {
	loan := clone(seen.Loan)
	loan["action"] = c.action
	delete(loan, "actionComment") // it belonged to the action before
	if c.comment != "" || c.action == schemas.DeclaredLost {
		loan["actionComment"] = c.comment
	}
	if c.ChangesItem() {
		loan["itemStatus"] = changedStatuses[c.action]
	}
	switch c.action {
	case schemas.DueDateChanged:
		loan["dueDate"] = c.date
		delete(loan, remindersOfFines) // they were about the date before
		if loan[changedByRecall] == true {
			loan[changedByRecall] = seen.Recalled
		}
	case schemas.ClaimedReturned:
		loan["claimedReturnedDate"] = c.date
	case schemas.DeclaredLost:
		loan["declaredLostDate"] = cmp.Or(c.date, seen.Now.UTC().Format(schemas.FolioTime))
	case schemas.MarkedMissing:
		loan["status"] = map[string]any{"name": closed}
	}
	return loan
}

// findRepeat reports whether a change of the loan was committed before. It refuses the id of a change
// of another loan, and a loan that does not exist.
func (seen Seen) findRepeat(id, loanID uuid.UUID) (bool, error) {
	switch {
	case seen.Before != uuid.Nil && seen.Before != loanID:
		return false, newInvalid("id is already that of a change of another loan", "id", id.String())
	case seen.Before != uuid.Nil:
		return true, nil
	case seen.Loan == nil:
		return false, fault.New(fault.NotFound, "Not found: there is no loan with id %s", loanID)
	}
	return false, nil
}
