// Package requests places patrons' requests for items and titles, edits, moves and ends them, and
// orders their queues.
package requests

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/redact"
)

// Library is what requests read.
type Library interface {
	library.Records
	library.LoanPolicies
	Item(ctx context.Context, id string) (library.Item, error)
	Holdings(ctx context.Context, id string) (library.Holdings, error)
	Instance(ctx context.Context, id string) (library.Instance, error)
	PickupPoint(ctx context.Context, id string) (library.ServicePoint, error)
	// PickupPoints returns all service points that are pickup locations.
	PickupPoints(ctx context.Context) ([]library.ServicePoint, error)
	// TitleItems returns all items of the instance.
	TitleItems(ctx context.Context, instanceID string) ([]library.Item, error)
	// OpenLoans returns the open loans of items.
	OpenLoans(ctx context.Context, itemIDs []string) ([]library.OpenLoan, error)
	// OpenLoan returns the item's open loan.
	OpenLoan(ctx context.Context, itemID string) (json.RawMessage, error)
	// Request returns a stored request.
	Request(ctx context.Context, id string) (json.RawMessage, error)
	User(ctx context.Context, id string) (library.User, error)
	// ProxyRelations returns those by which the proxy may act for the user, also ended ones.
	ProxyRelations(ctx context.Context, userID, proxyID string) ([]library.ProxyRelation, error)
	// These may be two seconds old.
	RequestPolicy(ctx context.Context, id string) (policy.RequestPolicy, error)
	// TitleHoldsObeyRules reports whether holds of titles ask the request policies
	// (tlrHoldShouldFollowCirculationRules). Without the setting they ask none.
	TitleHoldsObeyRules(ctx context.Context) (bool, error)
}

// Placer puts a request at the end of its queue and changes item and loan with it, wholly or not at
// all. A repeat with the same ids gets the same answer, or NotFound if the request was deleted since.
// Faults that say it did not happen: ItemChanged, LoanChanged, RequestChanged, Invalid.
type Placer interface {
	Place(ctx context.Context, p schemas.Placement) (schemas.PlacedRequest, error)
}

// Service places and changes requests. All fields are required. It is safe for concurrent use.
type Service struct {
	Library Library
	Placer  Placer
	Keeper  Keeper
	Log     *slog.Logger
	// Now is the time by which a patron's expiration, blocks and new due dates are judged.
	Now func() time.Time
}

// Create places the request in the body of POST /circulation/requests and returns it as stored:
// open, not yet filled, at the end of its queue. A page of an available item makes it Paged. A page
// for a title takes an available copy, and a recall the lent one that is recalled least and due
// first. A recall changes the due date of the item's loan.
//
// A body with the id of a stored request is a repeat, whose answer was lost: it returns that
// request, as it is by now.
//
// Faults: Malformed for a body that is no JSON; Invalid with FOLIO's messages for everything that
// is wrong, and for a request that others deleted while its outcome was unknown; ItemChanged, LoanChanged
// and RequestChanged if others keep changing item, loan or queue; Internal for faults of stored
// configuration. A request whose outcome is unknown may be sent again, with an id.
func (s *Service) Create(ctx context.Context, body []byte) (json.RawMessage, error) {
	w, err := s.parseWish(ctx, body)
	if err != nil {
		return nil, err
	}
	if stored, err := s.findRepeated(ctx, w); stored != nil || err != nil {
		return stored, err
	}
	placed, err := library.RetryChanged(func() (schemas.PlacedRequest, error) { return s.place(ctx, w) })
	if fault.Is(err, fault.Invalid) { // it may be refused because the same request was placed meanwhile
		if stored, readErr := s.findRepeated(ctx, w); stored != nil && readErr == nil {
			return stored, nil
		}
	}
	if err == nil {
		s.Log.InfoContext(ctx, "request placed", "placed_id", w.record.ID, "type", w.record.RequestType, "item_id", w.record.ItemID,
			"patron", redact.Mask(w.record.RequesterID), "overridden", w.unblocked)
	}
	return placed.Request, err
}

// findRepeated returns the stored request with the id that the client chose; nil if there is none.
func (s *Service) findRepeated(ctx context.Context, w wish) (json.RawMessage, error) {
	if !w.named {
		return nil, nil
	}
	raw, exists, err := fault.Found(s.Library.Request(ctx, w.record.ID))
	if err != nil || !exists {
		return nil, err
	}
	var stored schemas.QueuedRequest
	if err := json.Unmarshal(raw, &stored); err != nil {
		return nil, fmt.Errorf("reading the stored request: %w", err)
	}
	if !strings.EqualFold(stored.RequesterID, w.record.RequesterID) || !strings.EqualFold(stored.InstanceID, w.record.InstanceID) {
		return nil, fault.Validation(fault.Refusal("REQUEST_ID_IN_USE", "The id is that of another request", newParameter("id", w.record.ID)))
	}
	return raw, nil
}

// place judges the request by what storage has now, and places it. From the commit on, the client's
// connection does not matter.
func (s *Service) place(ctx context.Context, w wish) (schemas.PlacedRequest, error) {
	f, err := s.readFacts(ctx, w)
	if err != nil {
		return schemas.PlacedRequest{}, err
	}
	if err := w.judge(ctx, f, s.Now()).Err(); err != nil {
		return schemas.PlacedRequest{}, err
	}
	placement, err := s.completePlacement(ctx, w, f)
	if err != nil {
		return schemas.PlacedRequest{}, err
	}
	send := func(ctx context.Context) (schemas.PlacedRequest, error) { return s.Placer.Place(ctx, placement) }
	placed, err := library.FinishCommit(ctx, s.Log.With("change_id", placement.ID, "placed_id", w.record.ID), "the request", send)
	if fault.Is(err, fault.NotFound) {
		return placed, fault.Validation(fault.Refusal("REQUEST_NOT_FOUND", "The request was placed, and deleted since", newParameter("id", w.record.ID)))
	}
	return placed, err
}

// completePlacement returns the placement, with an id of its own and the new due date of a loan that is
// recalled.
func (s *Service) completePlacement(ctx context.Context, w wish, f facts) (schemas.Placement, error) {
	placement, err := w.makePlacement(f)
	placement.ID = uuid.NewString()
	if err == nil && w.record.RequestType == schemas.RequestRecall && f.loan.ID != "" {
		placement.Recall, err = s.recallLoan(ctx, f)
	}
	return placement, err
}

// newParameter returns a parameter, which is null for an empty value.
func newParameter(key, v string) fault.Parameter {
	if v == "" {
		return fault.Parameter{Key: key}
	}
	return fault.Param(key, fault.Shown(v))
}
