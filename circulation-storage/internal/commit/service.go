package commit

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

// Store commits for the tenant in ctx.
type Store interface {
	// CheckOut reads and locks what Seen holds, lets c decide, and writes all of
	// the Lending or nothing. The outcome is Committed or Repeated. Faults: those
	// of Decide.
	CheckOut(ctx context.Context, c CheckOut) (schemas.CheckOutResult, Outcome, error)

	// CheckIn does the same for a check-in. It never touches the patron's lock.
	CheckIn(ctx context.Context, c CheckIn) (schemas.CheckInResult, Outcome, error)

	// Renew does the same for a renewal. Faults: those of Decide.
	Renew(ctx context.Context, r Renewal) (schemas.RenewalResult, error)

	// ChangeLoan does the same for a change of a loan. Faults: those of Decide.
	ChangeLoan(ctx context.Context, c LoanChange) error

	// ReplaceLoan does the same for a loan that staff write. Faults: those of Decide.
	ReplaceLoan(ctx context.Context, r LoanReplacement) error

	// Place does the same for a new request. Faults: those of Decide; RequestChanged if
	// other transactions keep writing the same queue.
	Place(ctx context.Context, p Placement) (schemas.PlacedRequest, error)

	// SweepRepeats forgets check-ins, changes of loans and changes of requests that are a day old: at
	// most limit of each. It returns how many.
	SweepRepeats(ctx context.Context, limit int) (int, error)

	// ReadCheckOutFacts reads what a check-out is judged by, as of one moment. It locks
	// nothing.
	ReadCheckOutFacts(ctx context.Context, subjects schemas.CheckOutSubjects) (schemas.CheckOutFacts, error)

	// DurableLoan returns a stored loan that no crash and no failover to a synchronous
	// standby can lose. Faults: NotFound; Timeout while that is unknown.
	DurableLoan(ctx context.Context, id uuid.UUID) (json.RawMessage, error)
}

// Service commits check-outs and check-ins from request bodies. It is safe for
// concurrent use.
type Service struct {
	store    Store
	released func(ctx context.Context, userID uuid.UUID)
}

// NewService returns a Service on store. It calls released after each commit that released
// the patron's lock.
func NewService(store Store, released func(ctx context.Context, userID uuid.UUID)) *Service {
	return &Service{store: store, released: released}
}

// CheckOut commits the body of POST /loan-storage/check-outs and returns the id
// of its loan with the answer. Faults: those of ParseCheckOut and Decide.
func (s *Service) CheckOut(ctx context.Context, body []byte) (uuid.UUID, schemas.CheckOutResult, error) {
	c, err := ParseCheckOut(body)
	if err != nil {
		return uuid.Nil, schemas.CheckOutResult{}, err
	}
	result, _, err := s.store.CheckOut(ctx, c)
	if result.LockReleased {
		s.released(ctx, c.UserID)
	}
	return c.LoanID, result, err
}

// CheckIn commits the body of POST /loan-storage/check-ins. Faults: those of
// ParseCheckIn and Decide.
func (s *Service) CheckIn(ctx context.Context, body json.RawMessage) (schemas.CheckInResult, error) {
	c, err := ParseCheckIn(body)
	if err != nil {
		return schemas.CheckInResult{}, err
	}
	result, _, err := s.store.CheckIn(ctx, c)
	return result, err
}

// ReadCheckOutFacts reads the facts for the body of POST /loan-storage/check-out-facts.
// Faults: Malformed and Invalid for a bad body.
func (s *Service) ReadCheckOutFacts(ctx context.Context, body json.RawMessage) (schemas.CheckOutFacts, error) {
	if err := jsonschema.Validate("check-out-subjects", body); err != nil {
		return schemas.CheckOutFacts{}, err
	}
	var subjects schemas.CheckOutSubjects
	if err := json.Unmarshal(body, &subjects); err != nil {
		return schemas.CheckOutFacts{}, fault.Wrap(err, fault.Malformed, "The body cannot be read: %v", err)
	}
	return s.store.ReadCheckOutFacts(ctx, subjects)
}
