// Package renewal extends loans.
package renewal

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/redact"
)

// Request is the body of POST /circulation/renew-by-barcode. Unknown properties are ignored.
type Request struct {
	ItemBarcode string `json:"itemBarcode"`
	UserBarcode string `json:"userBarcode"`
	// ServicePointID is where the patron stands; optional. It decides nothing.
	ServicePointID string `json:"servicePointId"`
	// OverrideBlocks is refused and not ignored, because staff who lift a block expect it to be
	// lifted.
	OverrideBlocks json.RawMessage `json:"overrideBlocks"`
}

// Renewer reads what only renewals are judged by, and writes a renewal wholly or not at all.
type Renewer interface {
	// OpenLoan returns the item's open loan. Fault: NotFound.
	OpenLoan(ctx context.Context, itemID string) (json.RawMessage, error)
	// RenewalPolicy returns the terms of a loan policy. Fault: NotFound.
	RenewalPolicy(ctx context.Context, id string) (policy.LoanPolicy, error)
	// Renew commits and returns the loan. Faults that say it did not happen: LoanChanged,
	// ItemChanged, Invalid.
	Renew(ctx context.Context, r schemas.Renewal) (json.RawMessage, error)
}

// Service renews loans. It takes no lock, because the patron's count stays the same. All fields are
// required.
type Service struct {
	Library library.Records
	Renewer Renewer
	Log     *slog.Logger
	// Now is the time by which a patron's expiration and the due date are judged.
	Now func() time.Time
}

// storedLoan is what a renewal judges of the stored loan.
type storedLoan struct {
	ID           string          `json:"id"`
	UserID       string          `json:"userId"`
	DueDate      library.Instant `json:"dueDate"`
	RenewalCount int             `json:"renewalCount"`
}

// Renew extends the patron's loan of the item by the policy that the circulation rules choose
// today, and returns the stored loan.
//
// Faults: Invalid with FOLIO's messages for everything that is wrong; LoanChanged and ItemChanged
// if loan or item keeps changing; Internal for faults of stored configuration; any other answer of
// storage. A renewal whose answer was lost may have happened; the loan shows that.
func (s *Service) Renew(ctx context.Context, req Request) (json.RawMessage, error) {
	start := time.Now()
	loan, err := s.renewLoan(ctx, req)
	if fault.Is(err, fault.LoanChanged) || fault.Is(err, fault.ItemChanged) {
		loan, err = s.renewLoan(ctx, req)
	}
	attrs := []slog.Attr{
		slog.Bool("renewed", err == nil), slog.String("patron", redact.Mask(req.UserBarcode)),
		slog.String("item", library.MaskBarcodes(req.ItemBarcode, req.UserBarcode)),
		slog.Float64("took_ms", library.Milliseconds(time.Since(start))),
	}
	if err != nil {
		attrs = append(attrs, slog.String("why", library.MaskBarcodes(err.Error(), req.UserBarcode)))
	}
	s.Log.LogAttrs(ctx, slog.LevelInfo, "renewal", attrs...)
	return loan, err
}

// renewLoan reads everything, judges it, and commits what it judged.
func (s *Service) renewLoan(ctx context.Context, req Request) (json.RawMessage, error) {
	facts := &library.Facts{}
	if err := facts.Read(ctx, s.Library, req.UserBarcode, "", req.ItemBarcode); err != nil {
		return nil, err
	}
	found := slices.Concat(req.check(), facts.CheckUserFound(req.UserBarcode), facts.CheckItemFound(req.ItemBarcode))
	if err := found.Err(); err != nil {
		return nil, err
	}
	var err error
	if facts.Rules, err = library.ReadRules(ctx, s.Library); err != nil {
		return nil, err
	}
	loan, err := s.findLoan(ctx, req, facts)
	if err != nil {
		return nil, err
	}
	renewal, err := s.judgeRenewal(ctx, req, facts, loan)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err // nothing is written for a machine that left
	}
	send := func(ctx context.Context) (json.RawMessage, error) { return s.Renewer.Renew(ctx, renewal) }
	return library.SendCommit(context.WithoutCancel(ctx), send)
}

// check returns what is wrong with the request by itself.
func (r Request) check() fault.List {
	var found fault.List
	if r.ServicePointID != "" {
		found = library.CheckUUID("servicePointId", r.ServicePointID)
	}
	if given := string(r.OverrideBlocks); given != "" && given != "null" && given != "{}" {
		found = append(found, fault.Refusal("", "This version does not support overrideBlocks in renewals", fault.Parameter{Key: "overrideBlocks"}))
	}
	return found
}

// findLoan returns the patron's loan of the item.
func (s *Service) findLoan(ctx context.Context, req Request, facts *library.Facts) (storedLoan, error) {
	stored, exists, err := fault.Found(s.Renewer.OpenLoan(ctx, facts.Copy.Item.ID))
	switch {
	case err != nil:
		return storedLoan{}, err
	case !exists:
		return storedLoan{}, fault.Validation(fault.Refusal("", fmt.Sprintf("No open loan of the item with barcode %s exists", req.ItemBarcode),
			fault.Param("itemBarcode", req.ItemBarcode)))
	}
	var loan storedLoan
	if err := json.Unmarshal(stored, &loan); err != nil {
		return loan, fmt.Errorf("reading the stored loan: %w", err)
	}
	if !strings.EqualFold(loan.UserID, facts.User.ID) {
		return loan, fault.Validation(fault.Refusal("", "Cannot renew item checked out to different user",
			fault.Param("userBarcode", req.UserBarcode)))
	}
	return loan, nil
}

// judgeRenewal returns what to write, or everything that is wrong.
func (s *Service) judgeRenewal(ctx context.Context, req Request, facts *library.Facts, loan storedLoan) (schemas.Renewal, error) {
	now, item := s.Now(), facts.Copy.Item
	found := checkRenewable(req, facts, now)
	terms, err := s.findPolicy(ctx, facts)
	if err != nil {
		return schemas.Renewal{}, err
	}
	t := policy.RenewalTerms{
		Now: now.UTC(), DueDate: loan.DueDate.Time, Renewals: loan.RenewalCount, PatronExpires: facts.User.ExpirationDate.Time,
		Recalled: isRecalled(facts), HoldWaits: facts.Queue.HasHold(facts.Copy, ""),
	}
	if t.Schedule, err = library.ReadSchedule(ctx, s.Library, terms.RenewalScheduleID, terms.ID); err != nil {
		return schemas.Renewal{}, err
	}
	due, refusals := terms.Renew(t)
	for _, message := range refusals {
		found = append(found, fault.Refusal("", message, library.NamePolicy(terms)...))
	}
	if err := found.Err(); err != nil {
		return schemas.Renewal{}, err
	}
	renewal := schemas.Renewal{
		LoanID: loan.ID, ItemID: item.ID, ItemVersion: item.Version, JudgedRenewalCount: loan.RenewalCount,
		DueDate: library.Instant{Time: due}.Text(), LoanPolicyID: terms.ID,
	}
	if !loan.DueDate.IsZero() {
		renewal.JudgedDueDate = loan.DueDate.Format(time.RFC3339Nano)
	}
	return renewal, nil
}

// checkRenewable makes the checks that need no policy.
func checkRenewable(req Request, facts *library.Facts, now time.Time) fault.List {
	found := facts.User.CheckActive(now, "Cannot determine if user is active or not", "Cannot renew item checked out to inactive user",
		fault.Param("userBarcode", req.UserBarcode))
	found = append(found, facts.ListBlocks("renewing", now,
		func(b library.ManualBlock) bool { return b.Renewals }, func(b library.AutomatedBlock) bool { return b.BlockRenewals })...)
	item := facts.Copy.Item
	switch item.Status.Name {
	case library.StatusDeclaredLost, library.StatusClaimedReturned, library.StatusAgedToLost:
		found = append(found, fault.Refusal("", "item is "+item.Status.Name, fault.Param("itemId", item.ID)))
	}
	return found
}

// isRecalled reports whether another patron recalled the item, with either level of requests: a
// recall names the item.
func isRecalled(facts *library.Facts) bool {
	return slices.ContainsFunc(facts.Queue.Requests, func(q schemas.QueuedRequest) bool {
		return q.RequestType == "Recall" && q.Open() && strings.EqualFold(q.ItemID, facts.Copy.Item.ID)
	})
}

// findPolicy finds the loan policy that the rules choose now. FOLIO renews by today's rules and not
// by those of the check-out.
func (s *Service) findPolicy(ctx context.Context, facts *library.Facts) (policy.LoanPolicy, error) {
	criteria, err := facts.Criteria()
	if err != nil {
		return policy.LoanPolicy{}, err
	}
	id := facts.Rules.Match(policy.KindLoan, criteria).PolicyID
	terms, err := s.Renewer.RenewalPolicy(ctx, id)
	if fault.Is(err, fault.NotFound) {
		err = library.NewPolicyNotFound(id)
	}
	return terms, err
}
