package loans

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/redact"
)

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
	_, err = library.RetryChanged(func() (struct{}, error) { return struct{}{}, s.replace(ctx, id, loan) })
	return err
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
	if err := ctx.Err(); err != nil {
		return err // nothing is written for a client that left
	}
	if raw, err = loan.encode(); err != nil {
		return err
	}
	if stored.isOpen() && !loan.isOpen() {
		return s.close(ctx, stored.text("itemId"), loan, raw)
	}
	replacement := schemas.LoanReplacement{ID: uuid.NewString(), Loan: raw}
	send := func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.Changer.ReplaceLoan(ctx, id, replacement)
	}
	_, err = library.FinishCommit(ctx, s.Log.With("change_id", replacement.ID, "loan", redact.Mask(id)), "the replacement of a loan", send)
	return err
}

// close takes the loan's item back. A loan without a return date is returned now.
func (s *Service) close(ctx context.Context, itemID string, loan draft, raw json.RawMessage) error {
	if !strings.EqualFold(loan.text("itemId"), itemID) {
		return fault.Validation(fault.Refusal("", "itemId of a loan must stay", fault.Param("itemId", loan.text("itemId"))))
	}
	date := loan.text("returnDate")
	if date == "" {
		date = library.Instant{Time: s.Now()}.Text()
	}
	return s.Close(ctx, schemas.CheckIn{ItemID: itemID, ServicePointID: loan.text("checkinServicePointId"), CheckInDate: date, Loan: raw})
}
