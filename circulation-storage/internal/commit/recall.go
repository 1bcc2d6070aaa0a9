package commit

import (
	"context"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// recall is the new due date of the open loan of a recalled item.
type recall struct {
	loanID        uuid.UUID
	judgedDueDate string // "" for a loan without one
	dueDate       string // as sent
}

// The actions of a loan that a request changed, and its fields of recalls and reminders.
const (
	actionOfRecall   = "recallrequested"
	actionOfHold     = "holdrequested"
	changedByRecall  = "dueDateChangedByRecall"
	remindersOfFines = "reminders"
)

// readRecall reads a recall that the schema has checked; nil if there is none.
func readRecall(doc records.Record) *recall {
	if doc == nil {
		return nil
	}
	return &recall{loanID: readID(doc, "loanId"), judgedDueDate: doc.Text("judgedDueDate"), dueDate: doc.Text("dueDate")}
}

// ChangesLoan reports whether the request changes the open loan of its item.
func (p Placement) ChangesLoan() bool {
	kind := p.request.Text("requestType")
	return p.ItemID != uuid.Nil && (kind == schemas.RequestHold || kind == schemas.RequestRecall)
}

// changeLoan returns the item's loan as the request changes it, nil if it does not, and the event of a
// recall, from which mod-patron-blocks learns it also if the due date stays. A hold changes the action. A
// recall also sets the due date, once: a loan whose date was changed by another recall stays as it is. So
// does one whose caller sent no recall. Fault: LoanChanged.
func (p Placement) changeLoan(ctx context.Context, item, stored records.Record) (loan records.Record, events []Event, err error) {
	recalls := p.request.Text("requestType") == schemas.RequestRecall
	switch {
	case !p.ChangesLoan(), recalls && (p.recall == nil || stored[changedByRecall] == true):
		return nil, nil, nil
	case recalls:
		if err := p.recall.check(stored); err != nil {
			return nil, nil, err
		}
	case stored == nil:
		return nil, nil, nil
	}
	loan = clone(stored)
	loan["action"], loan["itemStatus"] = actionOfHold, item.Text("status.name")
	delete(loan, "actionComment") // it belonged to the action before
	if recalls {
		loan["action"], loan["dueDate"], loan[changedByRecall] = actionOfRecall, p.recall.dueDate, true
		delete(loan, remindersOfFines) // FOLIO counts them from the due date
		events = []Event{newLoanEvent(ctx, LoanDueDateChanged, stored, loan)}
	}
	return loan, events, nil
}

// check refuses a recall of a loan that is not as the caller judged it. Fault: LoanChanged.
func (r *recall) check(loan records.Record) error {
	switch {
	case loan == nil || readID(loan, "id") != r.loanID:
		return fault.New(fault.LoanChanged, "The loan %s is not the open one of the item: read it again", r.loanID)
	case !readInstant(loan.Text("dueDate")).Equal(readInstant(r.judgedDueDate)):
		return fault.New(fault.LoanChanged, "The loan %s has another due date: read it again", r.loanID)
	}
	return nil
}
