package records

import (
	"context"
	"strings"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

// Loan is an open or closed loan (mod-circulation-storage).
var Loan = Type{
	Name: "loan", Path: "/loan-storage/loans", Collection: "loans", Table: "loan", Schema: "loan",
	Permission: "circulation-storage.loans", Interface: "loan-storage 7.4", Upsert: true, Prepare: prepareLoan,
	Indexes: newIndexes(fields{
		Text: {"status", "status.name", "action", "actionComment", "itemStatus", "forUseAtLocation.status"},
		UUID: {
			"proxyUserId", "loanPolicyId", "checkoutServicePointId", "checkinServicePointId", "patronGroupIdAtCheckout",
			"itemEffectiveLocationIdAtCheckOut", "overdueFinePolicyId", "lostItemPolicyId",
		},
		Boolean: {"dueDateChangedByRecall", "isDcb", "agedToLostDelayedBilling.lostItemHasBeenBilled"},
		Number:  {"renewalCount", "reminders.lastFeeBilled.number"},
		Time: {
			"loanDate", "dueDate", "returnDate", "systemReturnDate", "declaredLostDate", "claimedReturnedDate",
			"agedToLostDelayedBilling.dateLostItemShouldBeBilled", "agedToLostDelayedBilling.agedToLostDate",
			"reminders.lastFeeBilled.date", "forUseAtLocation.statusDate", "forUseAtLocation.holdShelfExpirationDate",
		},
	}, "userId", "itemId").inColumns("loanDate", "dueDate"),
	Unique: []Unique{{
		Constraint: "loan_open_item_id_key", Fields: []string{"itemId"},
		Message: "Cannot have more than one open loan for the same item",
	}},
}

// PatronActionSession is a check-out or check-in since the patron's last notice
// (mod-circulation-storage).
var PatronActionSession = Type{
	Name: "patron action session", Path: "/patron-action-session-storage/patron-action-sessions", Collection: "patronActionSessions",
	Table: "patron_action_session", Schema: "patron-action-session",
	Permission: "patron-action-session-storage.patron-action-sessions", Interface: "patron-action-session-storage 0.3",
	Indexes: newIndexes(fields{Text: {"actionType"}, UUID: {"sessionId"}},
		"patronId", "loanId"),
}

// Session is what a patron did at a desk since the patron's last notice.
type Session struct {
	PatronID   string `json:"patronId"`
	ActionType string `json:"actionType"`
}

// ActionTypes are what a session may be about.
func ActionTypes() []string { return []string{"Check-out", "Check-in"} }

// prepareLoan applies the rules of mod-circulation-storage's loans, with its
// messages.
func prepareLoan(_ context.Context, _ Reader, w Write) error {
	loan := w.Record
	if err := checkDates(loan); err != nil {
		return err
	}
	if loan.Object("status") == nil {
		loan["status"] = map[string]any{"name": openStatus}
	}
	if IsOpenLoan(loan) && loan.Text("userId") == "" {
		return fault.StorageRefusal("Open loan must have a user ID", fault.Parameter{Key: "userId"})
	}
	return nil
}

// checkDates names each date that is none, on a line of its own.
func checkDates(loan Record) error {
	var wrong []string
	for _, date := range []struct{ field, name string }{{"loanDate", "loan date"}, {"returnDate", "return date"}} {
		if _, ok := loan[date.field]; !ok {
			continue
		}
		if _, err := jsonschema.ParseTime(loan.Text(date.field)); err != nil {
			wrong = append(wrong, date.name+" must be a date time (in RFC3339 format)")
		}
	}
	if wrong == nil {
		return nil
	}
	return fault.New(fault.Malformed, "%s", strings.Join(wrong, "\n"))
}

const openStatus = "Open"

// IsOpenLoan reports whether a loan is open.
func IsOpenLoan(loan Record) bool { return loan.Text("status.name") == openStatus }
