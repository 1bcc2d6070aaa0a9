package postgres

import (
	"fmt"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/database"
	"checkoutlock/schemas/fault"
)

// isWaiting is the condition of an open request r of an item. It is written so that it implies no
// partial index: without statistics, PostgreSQL reads all open requests of the library by one, beside
// those of the item.
const isWaiting = `r.is_open IS NOT FALSE`

const getRequestSQL = `SELECT clock_timestamp(), (SELECT jsonb::text FROM {schema}.request WHERE id = $1::uuid)`

// readRequest adds the statements that read a request, Nil for none, after the locks. The request needs
// no lock of its own, because commits refuse one that is open and not in the queue. An earlier change
// held the locks until its COMMIT, so changeID is looked for after them, and after the request, which
// it may have deleted.
func readRequest(requestID, changeID uuid.UUID) func(*batch, *commit.Seen) {
	return func(b *batch, seen *commit.Seen) {
		b.query(getRequestSQL, []any{requestID}, &seen.Now, (*stored)(&seen.Request))
		if changeID != uuid.Nil {
			b.query(pastRequestChangeSQL, []any{changeID}, &seen.Before)
		}
	}
}

// All in one statement, because positions are compared at its end: one by one,
// requests that change places would collide.
const updateRequestsSQL = `
UPDATE {schema}.request r SET jsonb = new.doc::jsonb
  FROM unnest($1::text[]) AS new(doc)
 WHERE r.id = (new.doc::jsonb->>'id')::uuid`

// updateRequests adds statements that write those requests of a queue that changed.
func (b *batch) updateRequests(changed []records.Record) {
	if len(changed) == 0 {
		return
	}
	docs := make([]string, len(changed))
	for i, r := range changed {
		docs[i] = b.encode(r)
	}
	b.query(updateRequestsSQL, []any{docs})
}

const (
	// positionKey lets no two open requests of an item have the same position.
	positionKey = "request_item_id_position_key"
	// requestChangeKey lets each change of a request happen once.
	requestChangeKey = "request_change_pkey"
)

// explainTakenPosition returns the fault for a queue whose position another
// transaction gave to another request, or for a change that another one makes. This transaction runs
// again, and then sees what the other wrote. It returns nil for any other error.
func explainTakenPosition(err error) error {
	if code, constraint := database.SQLState(err); code != database.UniqueViolation || constraint != positionKey && constraint != requestChangeKey {
		return nil
	}
	return fault.Wrap(fmt.Errorf("%w: %w", database.ErrRunAgain, err), fault.RequestChanged,
		"The queue of requests is being changed by others: read it again")
}
