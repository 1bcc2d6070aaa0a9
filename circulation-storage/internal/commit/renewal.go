package commit

import (
	"context"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

// Renewal is a renewal to commit, from ParseRenewal. It needs no lock, because the
// patron's count stays the same.
type Renewal struct {
	LoanID uuid.UUID
	ItemID uuid.UUID
	// ItemVersion is the _version of the item that the caller judged.
	ItemVersion int

	judgedDueDate string // "" for a loan without one
	judgedCount   int
	dueDate       string // as sent
	policyID      string
	overridden    bool
	comment       string // of an override
	recalled      bool   // an open recall is allowed
	itemStatus    string // "" if the item keeps its own
}

const (
	renewed        = "renewed"
	renewedByStaff = "renewedThroughOverride"

	delayedBilling = "agedToLostDelayedBilling" // of a loan
)

// ChangesItem reports whether the item gets another status.
func (r Renewal) ChangesItem() bool { return r.itemStatus != "" }

// ParseRenewal reads the body of POST /loan-storage/renewals. Faults: Malformed for bad
// JSON, Invalid for the rest, also for a due date that is no later than before.
func ParseRenewal(body []byte) (Renewal, error) {
	doc, err := parseBody("renewal", body)
	if err != nil {
		return Renewal{}, err
	}
	r := Renewal{
		LoanID: readID(doc, "loanId"), ItemID: readID(doc, "itemId"), ItemVersion: readInteger(doc["itemVersion"]),
		judgedDueDate: doc.Text("judgedDueDate"), judgedCount: readInteger(doc["judgedRenewalCount"]),
		dueDate: doc.Text("dueDate"), policyID: readID(doc, "loanPolicyId").String(),
	}
	if override := doc.Object("override"); override != nil {
		r.overridden, r.comment, r.recalled, r.itemStatus = true, override.Text("comment"), override["recalled"] == true, override.Text("itemStatus")
	}
	before, after := readInstant(r.judgedDueDate), readInstant(r.dueDate)
	if !after.After(before) {
		return Renewal{}, newInvalid("dueDate must be later than judgedDueDate", "dueDate", r.dueDate)
	}
	return r, nil
}

// readInstant reads a date that the schema has checked; zero if there is none.
func readInstant(date string) time.Time {
	t, err := jsonschema.ParseTime(date)
	if err != nil {
		return time.Time{}
	}
	return t
}

// Decide judges a renewal. The loan must be as the caller saw it. Faults: ItemChanged,
// LoanChanged, Invalid.
func (r Renewal) Decide(ctx context.Context, seen Seen) (Change, error) {
	if seen.Item == nil {
		return Change{}, newNoItem("itemId", r.ItemID)
	}
	if readID(seen.Loan, "itemId") != r.ItemID {
		return Change{}, newInvalid("there is no loan of the item with this id", "loanId", r.LoanID.String())
	}
	if err := checkVersion(seen.Item, r.ItemVersion); err != nil {
		return Change{}, err
	}
	if err := r.checkLoan(seen); err != nil {
		return Change{}, err
	}
	loan := clone(seen.Loan)
	loan["action"], loan["dueDate"], loan["loanPolicyId"] = renewed, r.dueDate, r.policyID
	loan["renewalCount"] = r.judgedCount + 1
	delete(loan, "actionComment")  // it belonged to the action before
	delete(loan, remindersOfFines) // they were about the date before
	if loan[changedByRecall] == true && !seen.Recalled {
		loan[changedByRecall] = false // the next recall changes the new due date
	}
	if r.overridden {
		loan["action"], loan["actionComment"] = renewedByStaff, r.comment
	}
	change := Change{Loan: loan}
	if r.ChangesItem() {
		loan["itemStatus"] = r.itemStatus
		endBilling(loan, seen.Item)
		change.setItem(withStatus(seen.Item, r.itemStatus))
	}
	change.Events = []Event{newLoanEvent(ctx, LoanDueDateChanged, seen.Loan, loan)}
	return change.complete(ctx, seen.Now, seen.Loan, []records.Record{seen.Item}, nil)
}

// endBilling takes off the loan that an item which is aged to lost will be billed. As in FOLIO, the loan
// still says when it aged.
func endBilling(loan, item records.Record) {
	if billing := clone(loan.Object(delayedBilling)); billing != nil && item.Text("status.name") == agedToLost {
		delete(billing, "lostItemHasBeenBilled")
		delete(billing, "dateLostItemShouldBeBilled")
		loan[delayedBilling] = map[string]any(billing)
	}
}

func (r Renewal) checkLoan(seen Seen) error {
	var changed string
	switch due := readInstant(seen.Loan.Text("dueDate")); {
	case !records.IsOpenLoan(seen.Loan):
		changed = "is closed"
	case !due.Equal(readInstant(r.judgedDueDate)):
		changed = "has another due date"
	case readInteger(seen.Loan["renewalCount"]) != r.judgedCount:
		changed = "was renewed"
	case seen.Recalled && !r.recalled:
		changed = "was recalled"
	default:
		return nil
	}
	return fault.New(fault.LoanChanged, "The loan %s %s: read it again", r.LoanID, changed)
}
