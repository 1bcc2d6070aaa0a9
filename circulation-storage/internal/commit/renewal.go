package commit

import (
	"context"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

// Renewal is a renewal to commit, as ParseRenewal read it. It needs no lock: the
// patron's count stays the same.
type Renewal struct {
	LoanID uuid.UUID
	ItemID uuid.UUID
	// ItemVersion is the _version of the item that the caller judged.
	ItemVersion int

	judgedDueDate string // "" for a loan that had none
	judgedCount   int
	dueDate       string // as sent
	policyID      string
}

// LoanDueDateChanged is the type of a renewal's event, as FOLIO names it.
const LoanDueDateChanged = "LOAN_DUE_DATE_CHANGED"

const renewed = "renewed"

// ParseRenewal reads the body of POST /loan-storage/renewals. Faults: Malformed
// for what is no JSON, Invalid for everything else, a due date that is no later
// than the one before among it.
func ParseRenewal(body []byte) (Renewal, error) {
	doc, err := parse("renewal", body)
	if err != nil {
		return Renewal{}, err
	}
	r := Renewal{
		LoanID: id(doc, "loanId"), ItemID: id(doc, "itemId"), ItemVersion: integer(doc["itemVersion"]),
		judgedDueDate: doc.Text("judgedDueDate"), judgedCount: integer(doc["judgedRenewalCount"]),
		dueDate: doc.Text("dueDate"), policyID: id(doc, "loanPolicyId").String(),
	}
	before, after := instant(r.judgedDueDate), instant(r.dueDate)
	if !after.After(before) {
		return Renewal{}, invalid("dueDate must be later than judgedDueDate", "dueDate", r.dueDate)
	}
	return r, nil
}

// instant reads a date that the schema has checked; zero when there is none.
func instant(date string) time.Time {
	t, err := jsonschema.ParseTime(date)
	if err != nil {
		return time.Time{}
	}
	return t
}

// SeenRenewal is what the transaction of a renewal found, the item kept from
// changing and then the loan locked.
type SeenRenewal struct {
	Item     records.Record // nil when there is none
	Loan     records.Record // nil when there is none
	Recalled bool           // an open recall names the item
	Moment
}

// Renewing is what to write for a renewal.
type Renewing struct {
	Loan  records.Record
	Event Event
}

// Decide judges a renewal: the loan must be as the caller judged it. Faults:
// ItemChanged, LoanChanged, Invalid.
func (r Renewal) Decide(ctx context.Context, seen SeenRenewal) (Renewing, error) {
	if seen.Item == nil {
		return Renewing{}, noItem("itemId", r.ItemID)
	}
	if seen.Loan == nil || id(seen.Loan, "itemId") != r.ItemID {
		return Renewing{}, invalid("there is no loan of the item with this id", "loanId", r.LoanID.String())
	}
	if err := checkVersion(seen.Item, r.ItemVersion); err != nil {
		return Renewing{}, err
	}
	if err := r.checkLoan(seen); err != nil {
		return Renewing{}, err
	}
	loan := clone(seen.Loan)
	loan["action"], loan["dueDate"], loan["loanPolicyId"] = renewed, r.dueDate, r.policyID
	loan["renewalCount"] = r.judgedCount + 1
	delete(loan, "actionComment") // it belonged to the action before
	if err := seen.complete(ctx, records.Loan(), loan, seen.Loan); err != nil {
		return Renewing{}, err
	}
	return Renewing{Loan: loan, Event: newEvent(ctx, LoanDueDateChanged, map[string]string{
		"loanId": r.LoanID.String(), "userId": loan.Text("userId"), "itemId": r.ItemID.String(), "dueDate": r.dueDate,
	})}, nil
}

func (r Renewal) checkLoan(seen SeenRenewal) error {
	var changed string
	switch due := instant(seen.Loan.Text("dueDate")); {
	case !records.IsOpenLoan(seen.Loan):
		changed = "is closed"
	case !due.Equal(instant(r.judgedDueDate)):
		changed = "has another due date"
	case integer(seen.Loan["renewalCount"]) != r.judgedCount:
		changed = "was renewed"
	case seen.Recalled:
		changed = "was recalled"
	default:
		return nil
	}
	return fault.New(fault.LoanChanged, "The loan %s %s: read it again", r.LoanID, changed)
}
