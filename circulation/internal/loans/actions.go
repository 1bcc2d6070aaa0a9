// Package loans has what staff do to loans besides lending, renewing and taking back.
package loans

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/redact"
)

// Changer changes a loan and its item, wholly or not at all. A repeat with the same id changes
// nothing. Faults: NotFound; Invalid with FOLIO's messages.
type Changer interface {
	ChangeLoan(ctx context.Context, loanID string, c schemas.LoanChange) error
	// ReplaceLoan neither closes nor opens a loan. Fault: LoanChanged if it would close it.
	ReplaceLoan(ctx context.Context, loanID string, r schemas.LoanReplacement) error
	// CheckOut lends. Faults: those of a check-out's commit.
	CheckOut(ctx context.Context, c schemas.CheckOut) (schemas.CheckOutResult, error)
	// CreateLoan stores a closed loan and leaves its item as it is.
	CreateLoan(ctx context.Context, loan json.RawMessage) (json.RawMessage, error)
}

// Library is what loans are judged by.
type Library interface {
	library.Records
	library.LoanPolicies
	Loan(ctx context.Context, id string) (json.RawMessage, error)
	// ServicePoint may be two seconds old.
	ServicePoint(ctx context.Context, id string) (library.ServicePoint, error)
	// ProxyRelations returns those by which the proxy may borrow for the user, also ended ones.
	ProxyRelations(ctx context.Context, userID, proxyID string) ([]library.ProxyRelation, error)
}

// Service does what staff ask for. All fields are required.
type Service struct {
	Library Library
	Changer Changer
	// Close takes an item back with the loan as it is then: item, service point, date and loan are
	// set. Faults: LoanChanged if the loan is no longer the item's open one; those of a check-in.
	Close func(ctx context.Context, c schemas.CheckIn) error
	Log   *slog.Logger
	// Now is the time by which proxies and recalls are judged.
	Now func() time.Time
}

// Wish is what staff want to do to a loan.
type Wish interface {
	// change returns what storage does, or what is wrong with the wish by itself.
	change() (schemas.LoanChange, fault.List)
}

// AddInfo is the body of POST /circulation/loans/{id}/add-info. Unknown properties are ignored, as
// in the other wishes.
type AddInfo struct {
	Action        string `json:"action"` // patronInfoAdded or staffInfoAdded
	ActionComment string `json:"actionComment"`
}

// ChangeDueDate is the body of POST /circulation/loans/{id}/change-due-date.
type ChangeDueDate struct {
	DueDate library.Instant `json:"dueDate"`
}

// ClaimReturned is the body of POST /circulation/loans/{id}/claim-item-returned.
type ClaimReturned struct {
	Date    library.Instant `json:"itemClaimedReturnedDateTime"`
	Comment string          `json:"comment"`
}

// DeclareLost is the body of POST /circulation/loans/{id}/declare-item-lost.
type DeclareLost struct {
	Date           library.Instant `json:"declaredLostDateTime"` // zero means now
	Comment        string          `json:"comment"`
	ServicePointID string          `json:"servicePointId"` // it decides nothing without fees
}

// DeclareMissing is the body of POST
// /circulation/loans/{id}/declare-claimed-returned-item-as-missing.
type DeclareMissing struct {
	Comment string `json:"comment"`
}

// Change does what staff wish, and logs how it ended. Storage judges and writes it in one
// transaction.
//
// Faults: NotFound for an unknown loan; Invalid with FOLIO's messages; any other answer of storage.
// A wish whose outcome is unknown may be sent again.
func (s *Service) Change(ctx context.Context, loanID string, wish Wish) error {
	change, wrong := wish.change()
	if err := wrong.Err(); err != nil {
		return err
	}
	change.ID = uuid.NewString()
	send := func(ctx context.Context) error { return s.Changer.ChangeLoan(ctx, loanID, change) }
	err := library.FinishChange(ctx, s.Log.With("change_id", change.ID, "loan", redact.Mask(loanID)), "the change of a loan", send)
	attrs := []slog.Attr{slog.String("loan", redact.Mask(loanID)), slog.String("action", change.Action), slog.Bool("done", err == nil)}
	if err != nil {
		attrs = append(attrs, slog.Any("why", err))
	}
	s.Log.LogAttrs(ctx, slog.LevelInfo, "change of a loan", attrs...)
	return err
}

func (w AddInfo) change() (schemas.LoanChange, fault.List) {
	known := w.Action == schemas.PatronInfoAdded || w.Action == schemas.StaffInfoAdded
	if !known || isBlank(w.ActionComment) {
		return schemas.LoanChange{}, refuse("action", fmt.Sprintf("An action of type %s or %s, with associated actionComment, required in order to add info",
			schemas.PatronInfoAdded, schemas.StaffInfoAdded))
	}
	return schemas.LoanChange{Action: w.Action, Comment: w.ActionComment}, nil
}

func (w ChangeDueDate) change() (schemas.LoanChange, fault.List) {
	if w.DueDate.IsZero() {
		return schemas.LoanChange{}, refuse("dueDate", "A new due date is required in order to change the due date")
	}
	return schemas.LoanChange{Action: schemas.DueDateChanged, Date: w.DueDate.Text()}, nil
}

func (w ClaimReturned) change() (schemas.LoanChange, fault.List) {
	if w.Date.IsZero() {
		return schemas.LoanChange{}, refuse("itemClaimedReturnedDateTime", "Item claimed returned date is a required field")
	}
	return schemas.LoanChange{Action: schemas.ClaimedReturned, Date: w.Date.Text(), Comment: w.Comment}, nil
}

func (w DeclareLost) change() (schemas.LoanChange, fault.List) {
	if isBlank(w.ServicePointID) {
		return schemas.LoanChange{}, refuse("servicePointId", "A service point is required for item to be declared lost")
	}
	change := schemas.LoanChange{Action: schemas.DeclaredLost, Comment: w.Comment}
	if !w.Date.IsZero() {
		change.Date = w.Date.Text()
	}
	return change, library.CheckUUID("servicePointId", w.ServicePointID)
}

func (w DeclareMissing) change() (schemas.LoanChange, fault.List) {
	if isBlank(w.Comment) {
		return schemas.LoanChange{}, refuse("comment", "Comment is a required field")
	}
	return schemas.LoanChange{Action: schemas.MarkedMissing, Comment: w.Comment}, nil
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }

// refuse refuses a wish that lacks a property.
func refuse(key, message string) fault.List {
	return fault.List{fault.Refusal("", message, fault.Parameter{Key: key})}
}
