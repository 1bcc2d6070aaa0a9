package loans

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/redact"
)

// Record stores the loan in the body of POST /circulation/loans and returns it as stored. An open
// one lends the item: it fills the patron's own request, and the item is Checked out. It takes the
// loan policy of the circulation rules and the due date of the body, which a recall that waits
// changes. As in FOLIO it takes no lock, and neither limits nor blocks count.
//
// Faults: Malformed for a body that is no JSON; Invalid with FOLIO's messages; ItemChanged and
// RequestChanged if the item or its queue keeps changing.
func (s *Service) Record(ctx context.Context, body json.RawMessage) (json.RawMessage, error) {
	loan, err := parseDraft(body, "")
	if err != nil {
		return nil, err
	}
	if loan["id"] == nil {
		loan["id"] = uuid.NewString()
	} else if err := s.checkNew(ctx, loan.text("id")); err != nil {
		return nil, err
	}
	if err := s.checkServicePoints(ctx, loan); err != nil {
		return nil, err
	}
	if loan.isOpen() {
		return library.RetryChanged(func() (json.RawMessage, error) { return s.lend(ctx, loan) })
	}
	raw, err := loan.encode()
	if err != nil {
		return nil, err
	}
	return s.Changer.CreateLoan(ctx, raw)
}

// checkNew refuses the id of a stored loan, in storage's words. Storage takes a check-out with such an
// id for a repeat, and answers the stored loan, which may be closed.
func (s *Service) checkNew(ctx context.Context, id string) error {
	_, exists, err := fault.Found(s.Library.Loan(ctx, id))
	if exists {
		return fault.StorageRefusal("id value already exists in table loan: "+id, fault.Param("id", id))
	}
	return err
}

// lend judges the loan by what storage has now, and lends its item.
func (s *Service) lend(ctx context.Context, sent draft) (json.RawMessage, error) {
	loan := maps.Clone(sent) // a repeat may see no recall any more
	facts, err := library.ReadFacts(ctx, s.Library, schemas.CheckOutSubjects{UserID: loan.text("userId"), ItemID: loan.text("itemId")})
	if err != nil {
		return nil, err
	}
	if err := judge(&facts, loan); err != nil {
		return nil, err
	}
	if err := s.checkProxy(ctx, loan); err != nil {
		return nil, err
	}
	commit := schemas.CheckOut{ItemVersion: facts.Item.Version, TitleLevel: facts.TitleLevel, Unfenced: true}
	first, _ := facts.FindLent()
	commit.FilledRequestID = first.ID
	if facts.Rules, err = library.ReadRules(ctx, s.Library); err != nil {
		return nil, err
	}
	criteria, err := facts.Criteria()
	if err != nil {
		return nil, err
	}
	loan["loanPolicyId"] = facts.Rules.Match(policy.KindLoan, criteria).PolicyID
	_, recalled := facts.FindRecall(commit.FilledRequestID)
	if commit.Recalled = &recalled; recalled {
		if err := s.recall(ctx, loan, facts.User.ExpirationDate.Time); err != nil {
			return nil, err
		}
	}
	loan["patronGroupIdAtCheckout"], loan["itemStatus"] = facts.User.PatronGroup, library.StatusCheckedOut
	if commit.Loan, err = loan.encode(); err != nil {
		return nil, err
	}
	send := func(ctx context.Context) (schemas.CheckOutResult, error) { return s.Changer.CheckOut(ctx, commit) }
	result, err := library.FinishCommit(ctx, s.Log.With("loan", redact.Mask(loan.text("id"))), "a recorded loan", send)
	return result.Loan, err
}

// recall gives the loan the due date of a recalled one, by its policy. The borrower's card ends at expires.
func (s *Service) recall(ctx context.Context, loan draft, expires time.Time) error {
	terms := policy.RecallTerms{Now: s.Now().UTC(), LoanDate: loan.instant("loanDate"), DueDate: loan.instant("dueDate"), PatronExpires: expires}
	due, err := library.ComputeRecall(ctx, s.Library, loan.text("loanPolicyId"), terms)
	if err != nil {
		return err
	}
	loan["dueDateChangedByRecall"] = true
	if !due.Equal(terms.DueDate) {
		loan["dueDate"] = library.Instant{Time: due}.Text()
	}
	return nil
}

// judge refuses an item that cannot be lent to the patron.
func judge(facts *library.Facts, loan draft) error {
	item, itemID := facts.Item, fault.Param("itemId", loan.text("itemId"))
	unlendable := []string{
		"Missing", library.StatusDeclaredLost, library.StatusClaimedReturned, library.StatusAgedToLost, library.StatusIntellectualItem,
	}
	switch {
	case item.ID == "":
		return library.NewNoItem(loan.text("itemId"))
	case facts.IsOnLoan() || item.Status.Name == library.StatusCheckedOut:
		return fault.Validation(fault.Refusal(library.CodeItemCheckedOut, "Item is already checked out", itemID))
	case slices.Contains(unlendable, item.Status.Name):
		return fault.Validation(fault.Refusal(library.CodeItemStatus, fmt.Sprintf("%s (%s) (Barcode: %s) has the item status %s, loan cannot be created",
			facts.Instance.Title, facts.Material.Name, item.Barcode, item.Status.Name), itemID))
	case facts.User.ID == "":
		return fault.Validation(fault.Refusal("USER_NOT_FOUND", "user is not found", fault.Param("userId", loan.text("userId"))))
	}
	if first, exists := facts.FindLent(); exists && !strings.EqualFold(first.RequesterID, facts.User.ID) {
		return fault.Validation(fault.Refusal(library.CodeItemRequested, fmt.Sprintf("%s (Barcode: %s) cannot be checked out to user %s because it has been requested by another patron",
			facts.Instance.Title, item.Barcode, facts.User.Personal.FullName()), fault.Param("userId", loan.text("userId"))))
	}
	return nil
}

// Replace writes the loan in the body of PUT /circulation/loans/{id} over the stored one. A loan that
// it closes takes its item back, at the service point that the loan names.
//
// Faults: NotFound; Malformed for a body that is no JSON; Invalid with FOLIO's messages; ItemChanged,
// LoanChanged and RequestChanged if loan, item or queue keeps changing.
func (s *Service) Replace(ctx context.Context, id string, body json.RawMessage) error {
	loan, err := parseDraft(body, id)
	if err != nil {
		return err
	}
	return library.RetryChange(func() error { return s.replace(ctx, id, loan) })
}

func (s *Service) replace(ctx context.Context, id string, loan draft) error {
	raw, err := s.Library.Loan(ctx, id)
	if err != nil {
		return err
	}
	var stored draft
	if err := json.Unmarshal(raw, &stored); err != nil {
		return fmt.Errorf("reading the stored loan: %w", err)
	}
	if err := s.checkServicePoints(ctx, loan); err != nil {
		return err
	}
	if !loan.isOpen() && loan.text("checkinServicePointId") == "" {
		return refuse("checkinServicePointId", "A Closed loan must have a Checkin Service Point").Err()
	}
	if !strings.EqualFold(loan.text("proxyUserId"), stored.text("proxyUserId")) {
		if err := s.checkProxy(ctx, loan); err != nil {
			return err
		}
	}
	if raw, err = loan.encode(); err != nil {
		return err
	}
	if stored.isOpen() && !loan.isOpen() {
		return s.close(ctx, stored.text("itemId"), loan, raw)
	}
	replacement := schemas.LoanReplacement{ID: uuid.NewString(), Loan: raw}
	send := func(ctx context.Context) error { return s.Changer.ReplaceLoan(ctx, id, replacement) }
	return library.FinishChange(ctx, s.Log.With("change_id", replacement.ID, "loan", redact.Mask(id)), "the replacement of a loan", send)
}

// close takes the loan's item back. A loan without a return date is returned now.
func (s *Service) close(ctx context.Context, itemID string, loan draft, raw json.RawMessage) error {
	if !strings.EqualFold(loan.text("itemId"), itemID) {
		return fault.Validation(fault.Refusal("", "itemId of a loan must stay", fault.Param("itemId", loan.text("itemId"))))
	}
	date := cmp.Or(loan.text("returnDate"), library.Instant{Time: s.Now()}.Text())
	return s.Close(ctx, schemas.CheckIn{ItemID: itemID, ServicePointID: loan.text("checkinServicePointId"), CheckInDate: date, Loan: raw})
}
