package records

import (
	"context"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

// prepareLoan applies the rules of mod-circulation-storage's loans, with its
// messages.
func prepareLoan(_ context.Context, _ Reader, w Write) error {
	loan := w.Record
	if err := checkDate(loan, "loanDate", "loan date"); err != nil {
		return err
	}
	if err := checkDate(loan, "returnDate", "return date"); err != nil {
		return err
	}
	if loan.Object("status") == nil {
		loan["status"] = map[string]any{"name": openStatus}
	}
	if OpenLoan(loan) && loan.Text("userId") == "" {
		return fault.StorageRefusal("Open loan must have a user ID", fault.Parameter{Key: "userId"})
	}
	return nil
}

func checkDate(loan Record, field, name string) error {
	if _, ok := loan[field]; !ok {
		return nil
	}
	if _, err := jsonschema.ParseTime(loan.Text(field)); err != nil {
		return fault.New(fault.Malformed, "%s must be a date time (in RFC3339 format)", name)
	}
	return nil
}

const openStatus = "Open"

// OpenLoan reports whether a loan still runs.
func OpenLoan(loan Record) bool { return loan.Text("status.name") == openStatus }
