package commit

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

// Store commits for the tenant in ctx. Each commit is one transaction. It locks and reads what its
// argument judges by the method Decide, and writes all of the Change or nothing. Its faults are
// those of Decide. An Observer receives its end.
type Store interface {
	CheckOut(ctx context.Context, c CheckOut) (schemas.CheckOutResult, error)
	// CheckIn never touches the patron's lock.
	CheckIn(ctx context.Context, c CheckIn) (schemas.CheckInResult, error)
	Renew(ctx context.Context, r Renewal) (schemas.RenewalResult, error)
	ChangeLoan(ctx context.Context, c LoanChange) error
	ReplaceLoan(ctx context.Context, r LoanReplacement) error

	// The commits of requests also have the fault RequestChanged if other transactions keep writing
	// the same queue.
	Place(ctx context.Context, p Placement) (schemas.PlacedRequest, error)
	ChangeRequest(ctx context.Context, c RequestChange) error
	MoveRequest(ctx context.Context, m RequestMove) (schemas.PlacedRequest, error)
	OrderQueue(ctx context.Context, o QueueOrder) (schemas.OrderedQueue, error)

	// ExpireRequests closes the requests that have expired, of at least limit queues if there are so
	// many, and returns how many. Each queue is a transaction of its own. One that fails stops no other.
	ExpireRequests(ctx context.Context, limit int) (int, error)

	// RunTitleJob renumbers the queues for a job of title level requests that is open or in progress, if
	// there is one, and ends the job: as failed with what is wrong, if anything is.
	RunTitleJob(ctx context.Context) error

	// ReadCheckOutFacts reads what a check-out is judged by, as of one moment. It locks
	// nothing.
	ReadCheckOutFacts(ctx context.Context, subjects schemas.CheckOutSubjects) (schemas.CheckOutFacts, error)

	// DurableLoan returns a stored loan that no crash and no failover to a synchronous
	// standby can lose. Faults: NotFound; Timeout while that is unknown.
	DurableLoan(ctx context.Context, id uuid.UUID) (json.RawMessage, error)

	// SettleCheckOut returns what a check-out of this loan lent, also if the loan was deleted since.
	// Without a loan it gives the id up: for a day, CheckOut refuses it as GivenUp. It waits for a
	// commit that is under way. No crash and no failover to a synchronous standby undoes the answer.
	// Faults: Timeout while that is unknown; InUse if the commit does not end in time, such as one that
	// waits for the standby. Then the outcome is unknown as well.
	SettleCheckOut(ctx context.Context, loanID uuid.UUID) (schemas.SettledCheckOut, error)
}

// ParseCheckOutSubjects reads the body of POST /loan-storage/check-out-facts. Faults: Malformed and
// Invalid for a bad body.
func ParseCheckOutSubjects(body []byte) (schemas.CheckOutSubjects, error) {
	if err := jsonschema.Validate("check-out-subjects", body); err != nil {
		return schemas.CheckOutSubjects{}, err
	}
	var subjects schemas.CheckOutSubjects
	if err := jsonschema.UnmarshalExact(body, &subjects); err != nil {
		return schemas.CheckOutSubjects{}, fault.Wrap(err, fault.Malformed, "The body cannot be read: %v", err)
	}
	return subjects, nil
}
