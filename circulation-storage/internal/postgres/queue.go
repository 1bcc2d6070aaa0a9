package postgres

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

// With title-level requests the copies of a title share a queue. Whoever changes
// it holds the instance's row; it comes before the item's in the order of locks.
// FOR NO KEY UPDATE lets holdings that name the instance be written meanwhile.
const (
	lockTitleSQL = `
SELECT FROM {schema}.instance
 WHERE id = (SELECT h.instance_id FROM {schema}.item i JOIN {schema}.holdings_record h ON h.id = i.holdings_record_id WHERE i.id = $1::uuid)
   FOR NO KEY UPDATE`
	lockItemQueueSQL  = `SELECT jsonb::text FROM {schema}.request WHERE item_id = $1::uuid AND is_open ORDER BY id FOR UPDATE`
	lockTitleQueueSQL = `
SELECT jsonb::text FROM {schema}.request
 WHERE instance_id = (SELECT h.instance_id FROM {schema}.item i JOIN {schema}.holdings_record h ON h.id = i.holdings_record_id WHERE i.id = $1::uuid)
   AND is_open ORDER BY id FOR UPDATE`
)

// lockTitle locks the instance of an item.
func (b *batch) lockTitle(itemID uuid.UUID) { b.one(lockTitleSQL, []any{itemID}) }

// lockQueue reads and locks the open requests of an item or, with titles, of its
// instance. What it returns is filled by send.
func (b *batch) lockQueue(itemID uuid.UUID, titles bool) *[]string {
	statement := lockItemQueueSQL
	if titles {
		statement = lockTitleQueueSQL
	}
	queue := new([]string)
	b.many(statement, []any{itemID}, queue)
	return queue
}

func decodeQueue(docs []string) (commit.Queue, error) {
	var queue commit.Queue
	for _, doc := range docs {
		r, err := decodeStored(&doc)
		if err != nil {
			return nil, err
		}
		queue = append(queue, r)
	}
	return queue, nil
}

// All in one statement, because positions are compared at its end: one by one,
// requests that change places would collide.
const updateRequestsSQL = `
UPDATE {schema}.request r SET jsonb = new.doc::jsonb
  FROM unnest($1::text[]) AS new(doc)
 WHERE r.id = (new.doc::jsonb->>'id')::uuid`

// requests writes those of a queue that changed.
func (b *batch) requests(changed []records.Record) {
	if len(changed) == 0 {
		return
	}
	docs := make([]string, len(changed))
	for i, r := range changed {
		doc, err := json.Marshal(r)
		b.err = errors.Join(b.err, err)
		docs[i] = string(doc)
	}
	b.one(updateRequestsSQL, []any{docs})
}

const insertSessionSQL = `INSERT INTO {schema}.patron_action_session (id, jsonb) VALUES ($1::uuid, $2::jsonb)`

// session adds the record of what a patron did.
func (b *batch) session(s records.Record) {
	doc, err := json.Marshal(s)
	b.err = errors.Join(b.err, err)
	b.one(insertSessionSQL, []any{s.ID(), string(doc)})
}

// notWritten is why a commit of the thing named by what failed: its queue was
// changed by others, violation explains the constraint (nil for one that says
// nothing to the caller), or err as it is.
func notWritten(what string, err error, violation func(constraint string) error) error {
	if taken := placeTaken(err); taken != nil {
		return taken
	}
	if _, constraint := sqlState(err); constraint != "" {
		if refused := violation(constraint); refused != nil {
			return refused
		}
	}
	return fmt.Errorf("writing %s: %w", what, err)
}

// positionKey lets no two open requests of an item have the same position.
const positionKey = "request_item_id_position_key"

// placeTaken is the fault for a queue into which somebody wrote a request at a
// position that this transaction gives to another: it runs again, and then sees
// that request. It is nil for any other error.
func placeTaken(err error) error {
	if code, constraint := sqlState(err); code != uniqueViolation || constraint != positionKey {
		return nil
	}
	return fault.Wrap(fmt.Errorf("%w: %w", errRunAgain, err), fault.RequestChanged,
		"The queue of requests is being changed by others: read it again")
}
