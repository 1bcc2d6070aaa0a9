package checkout

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/redact"
)

// RenewalRequest is the body of POST /circulation/renew-by-barcode. Unknown
// properties are ignored.
type RenewalRequest struct {
	ItemBarcode string `json:"itemBarcode"`
	UserBarcode string `json:"userBarcode"`
	// ServicePointID, if given, is where the patron stands. It decides nothing.
	ServicePointID string `json:"servicePointId"`
	// OverrideBlocks is refused rather than ignored: staff who lift a block must
	// not be told that it stands.
	OverrideBlocks json.RawMessage `json:"overrideBlocks"`
}

// Renewer reads what a renewal judges, and writes it wholly or not at all.
type Renewer interface {
	// OpenLoan returns the item's open loan. Fault: NotFound.
	OpenLoan(ctx context.Context, itemID string) (json.RawMessage, error)
	// RenewalPolicy returns the terms of a loan policy. Fault: NotFound.
	RenewalPolicy(ctx context.Context, id string) (policy.RenewalPolicy, error)
	// Renew commits and returns the loan. Faults that say it did not happen:
	// LoanChanged, ItemChanged, Invalid.
	Renew(ctx context.Context, r schemas.Renewal) (json.RawMessage, error)
}

// Renewals extends loans. It takes no lock: the patron has as many loans as
// before. All fields are required.
type Renewals struct {
	// Service finds and judges what check-outs judge too: patron, item, queue, rules.
	Service *Service
	Renewer Renewer
}

// renewableLoan is what a renewal judges of the stored loan.
type renewableLoan struct {
	ID           string  `json:"id"`
	UserID       string  `json:"userId"`
	DueDate      Instant `json:"dueDate"`
	RenewalCount int     `json:"renewalCount"`
}

// Renew extends the patron's loan of the item by the policy that the circulation
// rules choose today, and returns the stored loan.
//
// Faults: Invalid with FOLIO's messages for everything that is wrong; LoanChanged
// and ItemChanged when others keep changing them; Internal for faults of stored
// configuration; whatever else storage answered. A renewal whose answer was lost
// may have happened: the loan tells.
func (r *Renewals) Renew(ctx context.Context, req RenewalRequest) (json.RawMessage, error) {
	start := time.Now()
	loan, err := r.once(ctx, req)
	if fault.Is(err, fault.LoanChanged) || fault.Is(err, fault.ItemChanged) {
		loan, err = r.once(ctx, req)
	}
	attrs := []slog.Attr{
		slog.Bool("renewed", err == nil), slog.String("patron", redact.Mask(req.UserBarcode)),
		slog.String("item", maskBarcodes(req.ItemBarcode, req.UserBarcode)), slog.Float64("took_ms", milliseconds(time.Since(start))),
	}
	if err != nil {
		attrs = append(attrs, slog.String("why", maskBarcodes(err.Error(), req.UserBarcode)))
	}
	r.Service.Log.LogAttrs(ctx, slog.LevelInfo, "renewal", attrs...)
	return loan, err
}

// once reads everything, judges, and commits what it judged.
func (r *Renewals) once(ctx context.Context, req RenewalRequest) (json.RawMessage, error) {
	p := &plan{req: Request{ItemBarcode: req.ItemBarcode, UserBarcode: req.UserBarcode}}
	if err := r.Service.gather(ctx, p.req, &p.facts); err != nil {
		return nil, err
	}
	wrong := slices.Concat(req.check(), p.checkUserFound(), p.checkItemFound())
	if len(wrong) > 0 {
		return nil, fault.Validation(wrong...)
	}
	loan, err := r.openLoan(ctx, p)
	if err != nil {
		return nil, err
	}
	renewal, err := r.judge(ctx, p, loan)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err // nothing is written for a machine that left
	}
	cctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	return r.Renewer.Renew(cctx, renewal)
}

// check returns what is wrong with the request by itself.
func (r RenewalRequest) check() []fault.Detail {
	var wrong []fault.Detail
	if r.ServicePointID != "" && !schemas.IsUUID(r.ServicePointID) {
		wrong = append(wrong, detail("", "servicePointId must be a UUID", fault.Param("servicePointId", r.ServicePointID)))
	}
	if given := string(r.OverrideBlocks); given != "" && given != "null" && given != "{}" {
		wrong = append(wrong, fault.Detail{
			Message: "This version does not support overrideBlocks in renewals", Parameters: []fault.Parameter{{Key: "overrideBlocks"}},
		})
	}
	return wrong
}

// openLoan returns the patron's loan of the item.
func (r *Renewals) openLoan(ctx context.Context, p *plan) (renewableLoan, error) {
	stored, exists, err := fault.Found(r.Renewer.OpenLoan(ctx, p.item.ID))
	switch {
	case err != nil:
		return renewableLoan{}, err
	case !exists:
		return renewableLoan{}, fault.Validation(detail("", fmt.Sprintf("No open loan of the item with barcode %s exists", p.req.ItemBarcode),
			fault.Param("itemBarcode", p.req.ItemBarcode)))
	}
	var loan renewableLoan
	if err := json.Unmarshal(stored, &loan); err != nil {
		return loan, fmt.Errorf("reading the stored loan: %w", err)
	}
	if !strings.EqualFold(loan.UserID, p.user.ID) {
		return loan, fault.Validation(detail("", "Cannot renew item checked out to different user", fault.Param("userBarcode", p.req.UserBarcode)))
	}
	return loan, nil
}

// judge returns what to write, or everything that is wrong.
func (r *Renewals) judge(ctx context.Context, p *plan, loan renewableLoan) (schemas.Renewal, error) {
	now := r.Service.Now()
	wrong := p.checkRenewable(now)
	terms, err := r.terms(ctx, p)
	if err != nil {
		return schemas.Renewal{}, err
	}
	t := policy.RenewalTerms{
		Now: now.UTC(), DueDate: loan.DueDate.Time, Renewals: loan.RenewalCount, PatronExpires: p.user.ExpirationDate.Time,
		Recalled: p.recalled(), HoldWaits: p.holdWaits(),
	}
	if t.Schedule, err = r.Service.schedule(ctx, terms.ScheduleID, terms.ID); err != nil {
		return schemas.Renewal{}, err
	}
	due, refusals := terms.Renew(t)
	for _, why := range refusals {
		wrong = append(wrong, detail("", why, fault.Param("loanPolicyId", terms.ID), fault.Param("loanPolicyName", terms.Name)))
	}
	if len(wrong) > 0 {
		return schemas.Renewal{}, fault.Validation(wrong...)
	}
	renewal := schemas.Renewal{
		LoanID: loan.ID, ItemID: p.item.ID, ItemVersion: p.item.Version, JudgedRenewalCount: loan.RenewalCount,
		DueDate: Instant{due}.text(), LoanPolicyID: terms.ID,
	}
	if !loan.DueDate.IsZero() {
		renewal.JudgedDueDate = loan.DueDate.Format(time.RFC3339Nano)
	}
	return renewal, nil
}

// checkRenewable makes the checks that need no policy.
func (p *plan) checkRenewable(now time.Time) []fault.Detail {
	var wrong []fault.Detail
	barcode := fault.Param("userBarcode", p.req.UserBarcode)
	switch {
	case p.user.Active == nil:
		wrong = append(wrong, detail("", "Cannot determine if user is active or not", barcode))
	case p.user.Inactive(now):
		wrong = append(wrong, detail("", "Cannot renew item checked out to inactive user", barcode))
	}
	wrong = append(wrong, p.blockedFrom("renewing", now,
		func(b ManualBlock) bool { return b.Renewals }, func(b AutomatedBlock) bool { return b.BlockRenewals })...)
	switch status := p.item.Status.Name; status {
	case statusDeclared, statusClaimed, statusAged:
		wrong = append(wrong, detail("", "item is "+status, fault.Param("itemId", p.item.ID)))
	}
	return wrong
}

// recalled tells whether somebody else called the item back, by whatever level
// of request: a recall names the item that it called.
func (p *plan) recalled() bool {
	return slices.ContainsFunc(p.queue, func(q schemas.QueuedRequest) bool {
		return q.RequestType == "Recall" && q.Open() && strings.EqualFold(q.ItemID, p.item.ID)
	})
}

// terms finds the loan policy that the rules choose now: FOLIO renews under the
// rules of the day and not those of the check-out.
func (r *Renewals) terms(ctx context.Context, p *plan) (policy.RenewalPolicy, error) {
	criteria, err := p.criteria()
	if err != nil {
		return policy.RenewalPolicy{}, err
	}
	id := p.rules.Match(policy.KindLoan, criteria).PolicyID
	terms, err := r.Renewer.RenewalPolicy(ctx, id)
	if fault.Is(err, fault.NotFound) {
		err = noLoanPolicy(id)
	}
	return terms, err
}
