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
	ServicePointID string         `json:"servicePointId"`
	OverrideBlocks OverrideBlocks `json:"overrideBlocks"`

	library.Sent `json:"-"`
	// Seen is how often the loan was renewed when the caller judged it; nil for a caller that did not.
	// With another number the fault is LoanChanged.
	Seen *int `json:"-"`
}

// ByIDRequest is the body of POST /circulation/renew-by-id. Unknown properties are ignored.
type ByIDRequest struct {
	ItemID         string         `json:"itemId"`
	UserID         string         `json:"userId"`
	ServicePointID string         `json:"servicePointId"`
	OverrideBlocks OverrideBlocks `json:"overrideBlocks"`

	library.Sent `json:"-"`
	// Seen is how often the loan was renewed when the caller judged it; nil for a caller that did not.
	// With another number the fault is LoanChanged.
	Seen *int `json:"-"`
}

// Renewer reads what only renewals are judged by, and writes a renewal wholly or not at all.
type Renewer interface {
	// OpenLoan returns the item's open loan. Fault: NotFound.
	OpenLoan(ctx context.Context, itemID string) (json.RawMessage, error)
	// User returns a patron. Fault: NotFound.
	User(ctx context.Context, id string) (library.User, error)
	// RenewalPolicy returns the terms of a loan policy. Fault: NotFound.
	RenewalPolicy(ctx context.Context, id string) (policy.LoanPolicy, error)
	// Renew commits and returns the loan. Faults that say it did not happen: LoanChanged,
	// ItemChanged, Invalid.
	Renew(ctx context.Context, r schemas.Renewal) (json.RawMessage, error)
}

// Renewals is a Service, or stands for one in tests.
type Renewals interface {
	Renew(ctx context.Context, req Request) (json.RawMessage, error)
	RenewByID(ctx context.Context, req ByIDRequest) (json.RawMessage, error)
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
	ID           string             `json:"id"`
	UserID       string             `json:"userId"`
	DueDate      library.Instant    `json:"dueDate"`
	RenewalCount policy.WholeNumber `json:"renewalCount"`
}

// Renew extends the patron's loan of the item by the policy that the circulation rules choose
// today, and returns the stored loan.
//
// Faults: Invalid with FOLIO's messages for everything that is wrong; LoanChanged and ItemChanged
// if loan or item keeps changing; Internal for faults of stored configuration; any other answer of
// storage. A renewal whose answer was lost may have happened; the loan shows that.
func (s *Service) Renew(ctx context.Context, req Request) (json.RawMessage, error) {
	return s.renew(ctx, renewalRequest{
		subjects: schemas.CheckOutSubjects{ItemBarcode: library.KeepBarcode(req.ItemBarcode), UserBarcode: library.KeepBarcode(req.UserBarcode)},
		wrong:    req.check(), item: fault.Param("itemBarcode", req.ItemBarcode), user: fault.Param("userBarcode", req.UserBarcode),
		noItem:    library.NewBarcodeUnknown(req.ItemBarcode),
		noLoan:    fmt.Sprintf("No open loan of the item with barcode %s exists", req.ItemBarcode),
		overrides: req.OverrideBlocks, seen: req.Seen,
	})
}

// RenewByID is Renew for an item and a patron by id.
func (s *Service) RenewByID(ctx context.Context, req ByIDRequest) (json.RawMessage, error) {
	return s.renew(ctx, renewalRequest{
		subjects: schemas.CheckOutSubjects{ItemID: library.KeepUUID(req.ItemID), UserID: library.KeepUUID(req.UserID)},
		wrong:    req.check(), item: fault.Param("itemId", req.ItemID), user: fault.Param("userId", req.UserID),
		noItem:    fault.Refusal(library.CodeItemUnknown, fmt.Sprintf("No item with ID %s exists", req.ItemID), fault.Param("itemId", req.ItemID)),
		noLoan:    fmt.Sprintf("No open loan of the item with ID %s exists", req.ItemID),
		overrides: req.OverrideBlocks, seen: req.Seen,
	})
}

// renewalRequest is what a request asks for, with the words in which it is refused.
type renewalRequest struct {
	subjects   schemas.CheckOutSubjects
	wrong      fault.List      // with the request by itself
	item, user fault.Parameter // as the request names them
	noItem     fault.Detail
	noLoan     string
	overrides  OverrideBlocks
	seen       *int
}

// renew renews, once more after a change by others, and logs how it ended.
func (s *Service) renew(ctx context.Context, w renewalRequest) (json.RawMessage, error) {
	start := time.Now()
	loan, err := library.RetryChanged(func() (json.RawMessage, error) { return s.renewLoan(ctx, w) })
	card := w.subjects.UserBarcode
	attrs := []slog.Attr{
		slog.Bool("renewed", err == nil), slog.String("patron", redact.Mask(card)),
		slog.String("item", redact.MaskIn(*w.item.Value, card)), slog.Float64("took_ms", schemas.Milliseconds(time.Since(start))),
	}
	if err != nil {
		attrs = append(attrs, slog.String("why", redact.MaskIn(err.Error(), card)))
	}
	s.Log.LogAttrs(ctx, slog.LevelInfo, "renewal", attrs...)
	return loan, err
}

// renewLoan reads everything, judges it, and commits what it judged.
func (s *Service) renewLoan(ctx context.Context, w renewalRequest) (json.RawMessage, error) {
	if err := w.wrong.Err(); err != nil {
		return nil, err
	}
	facts, err := library.ReadFacts(ctx, s.Library, w.subjects)
	if err != nil {
		return nil, err
	}
	loan, err := s.findLoan(ctx, w, &facts)
	if err != nil {
		return nil, err
	}
	if w.seen != nil && *w.seen != int(loan.RenewalCount) {
		return nil, fault.New(fault.LoanChanged, "The loan was renewed meanwhile")
	}
	if facts.Rules, err = library.ReadRules(ctx, s.Library); err != nil {
		return nil, err
	}
	renewal, err := s.judgeRenewal(ctx, w, &facts, loan)
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
	switch {
	case strings.TrimSpace(r.ItemBarcode) == "":
		return fault.List{r.NewMissing("RENEWAL_REQUEST_ITEM_BARCODE_REQUIRED", "itemBarcode", "Renewal request must have an item barcode")}
	case strings.TrimSpace(r.UserBarcode) == "":
		return fault.List{r.NewMissing("RENEWAL_REQUEST_USER_BARCODE_REQUIRED", "userBarcode", "Renewal request must have a user barcode")}
	case r.ServicePointID != "":
		return library.CheckUUID("servicePointId", r.ServicePointID)
	}
	return nil
}

// check returns what is wrong with the request by itself.
func (r ByIDRequest) check() fault.List {
	if strings.TrimSpace(r.ItemID) == "" {
		return fault.List{r.NewMissing(library.CodeMissing, "itemId", "Renewal request must have an item ID")}
	}
	if strings.TrimSpace(r.UserID) == "" {
		return fault.List{r.NewMissing(library.CodeMissing, "userId", "Renewal request must have a user ID")}
	}
	found := slices.Concat(library.CheckUUID("itemId", r.ItemID), library.CheckUUID("userId", r.UserID))
	if r.ServicePointID != "" {
		found = append(found, library.CheckUUID("servicePointId", r.ServicePointID)...)
	}
	return found
}

// findLoan returns the patron's loan of the item. It refuses in FOLIO's order: the item first, then a
// borrower who was deleted, then another borrower. So an unknown patron is one who did not borrow the item.
func (s *Service) findLoan(ctx context.Context, w renewalRequest, facts *library.Facts) (storedLoan, error) {
	if facts.Item.ID == "" {
		return storedLoan{}, fault.Validation(w.noItem)
	}
	stored, exists, err := fault.Found(s.Renewer.OpenLoan(ctx, facts.Item.ID))
	switch {
	case err != nil:
		return storedLoan{}, err
	case !exists:
		return storedLoan{}, fault.Validation(fault.Refusal(library.CodeNotOnLoan, w.noLoan, w.item))
	}
	var loan storedLoan
	if err := json.Unmarshal(stored, &loan); err != nil {
		return loan, fmt.Errorf("reading the stored loan: %w", err)
	}
	if facts.User.ID == "" || !strings.EqualFold(loan.UserID, facts.User.ID) {
		_, exists, err := fault.Found(s.Renewer.User(ctx, loan.UserID))
		switch {
		case err != nil:
			return loan, err
		case !exists:
			return loan, fault.Validation(fault.Refusal("USER_NOT_FOUND", "user is not found", fault.Param("userId", loan.UserID)))
		}
		return loan, fault.Validation(fault.Refusal("ITEM_CHECKED_OUT_TO_DIFFERENT_USER", "Cannot renew item checked out to different user", w.user))
	}
	return loan, nil
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
