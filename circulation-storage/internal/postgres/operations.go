package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/okapi"
)

const (
	addPrintsSQL = `
INSERT INTO {schema}.print_events (id, jsonb)
SELECT new.id, jsonb_build_object('id', new.id, 'requestId', new.request_id, 'requesterId', $2::text, 'requesterName', $3::text,
       'printEventDate', $4::text, 'metadata', jsonb_strip_nulls(jsonb_build_object('createdDate', at, 'updatedDate', at,
       'createdByUserId', nullif($5::text, ''), 'updatedByUserId', nullif($5::text, ''))))
  FROM (SELECT gen_random_uuid() AS id, unnest($1::uuid[]) AS request_id) AS new,
       ` + folioNow + ` AS at`
	notePrintsSQL = `
UPDATE {schema}.request r SET jsonb = r.jsonb || jsonb_build_object('printDetails', jsonb_build_object(
       'printCount', n.count, 'requesterId', $2::text, 'isPrinted', true, 'printEventDate', $3::text))
  FROM (SELECT request_id, count(*) FROM {schema}.print_events WHERE request_id = ANY ($1::uuid[]) GROUP BY request_id) AS n
 WHERE r.id = n.request_id`
	lastPrintsSQL = `
SELECT DISTINCT ON (request_id) request_id::text, jsonb->>'requesterId', jsonb->>'requesterName',
       count(*) OVER (PARTITION BY request_id), jsonb->>'printEventDate'
  FROM {schema}.print_events WHERE request_id = ANY ($1::uuid[])
 ORDER BY request_id, {schema}.record_time(jsonb->>'printEventDate') DESC, id`
)

// AddPrint implements records.Store. It locks the requests first, so that of two prints at once the
// second one counts both.
func (s *RecordStore) AddPrint(ctx context.Context, p records.Print) error {
	return s.db.runTx(ctx, s.db.conns.Ordinary, shortTx, "writing a print", func(tx pgx.Tx) error {
		if _, err := runStatement(ctx, tx, lockRequestsSQL, p.RequestIDs); err != nil {
			return err
		}
		if _, err := runStatement(ctx, tx, addPrintsSQL, p.RequestIDs, p.RequesterID, p.RequesterName, p.At, okapi.FromContext(ctx).UserID); err != nil {
			return err
		}
		_, err := runStatement(ctx, tx, notePrintsSQL, p.RequestIDs, p.RequesterID, p.At)
		return err
	})
}

// LastPrints implements records.Store.
func (s *RecordStore) LastPrints(ctx context.Context, requestIDs []string) ([]records.LastPrint, error) {
	return readRows(ctx, s.db, "reading prints", lastPrintsSQL, []any{requestIDs}, pgx.RowToStructByPos[records.LastPrint])
}

// AnonymizeLoans implements records.Store.
func (s *RecordStore) AnonymizeLoans(ctx context.Context, ids []string) error {
	return s.anonymize(ctx, lockClosedLoansSQL, ids)
}

// AnonymizeLoansOf implements records.Store.
func (s *RecordStore) AnonymizeLoansOf(ctx context.Context, userID string) error {
	return s.anonymize(ctx, lockClosedLoansOfUserSQL, userID)
}

// anonymize takes the patrons off the loans that lockLoans selects. The trigger of a loan that loses its
// patron takes the patron off its history too. FOLIO's circulation log does the same after the event.
func (s *RecordStore) anonymize(ctx context.Context, lockLoans string, whose any) error {
	statement := `
WITH anonymized AS (
UPDATE {schema}.loan l SET jsonb = l.jsonb - 'userId' - 'proxyUserId' FROM (` + lockLoans + `) AS closed WHERE l.id = closed.id
RETURNING l.id, l.item_id, closed.user_id, coalesce(l.jsonb->>'checkinServicePointId', l.jsonb->>'checkoutServicePointId') AS place)
INSERT INTO {schema}.outbox (event_type, patron_id, payload)
SELECT '` + commit.LogRecord + `', user_id, jsonb_strip_nulls(jsonb_build_object('logEventType', 'LOAN', 'action', 'anonymized',
       'loanId', id, 'itemId', item_id, 'servicePointId', place)) FROM anonymized WHERE EXISTS (SELECT` + toReader + `)`
	return s.db.runTx(ctx, s.db.conns.Ordinary, shortTx, "anonymizing loans", func(tx pgx.Tx) error {
		_, err := runStatement(ctx, tx, statement, whose)
		return err
	})
}
