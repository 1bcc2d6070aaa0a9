package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/events"
	"checkoutlock/database"
)

// OutboxStore implements events.Store on the tables outbox and outbox_lease.
type OutboxStore struct{ db *DB }

// NewOutboxStore returns the outboxes of all tenants in db.
func NewOutboxStore(db *DB) *OutboxStore { return &OutboxStore{db: db} }

const (
	// leaseOutboxSQL decides alone. A lease far ahead means that the clock was set back. The lease need
	// not be durable: the holder of one that a crash lost deletes nothing more.
	leaseOutboxSQL = `
UPDATE {schema}.outbox_lease l
   SET holder = $1::uuid, lease_until = clock_timestamp() + $2::interval, fence = fence + (holder IS DISTINCT FROM $1::uuid)::int
 WHERE holder = $1::uuid OR lease_until NOT BETWEEN clock_timestamp() AND clock_timestamp() + interval '1 minute'
RETURNING fence, ` + silentTables + `, ` + notDurable

	// silentTables are those whose trigger record_event is off, as it is until the first lease.
	silentTables = `ARRAY(SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname = 'record_event' AND tgenabled = 'D' AND tgrelid = ANY (ARRAY[
  '{schema}.loan', '{schema}.request', '{schema}.check_in_operation', '{schema}.circulation_settings', '{schema}.circulation_rules']::regclass[]))`

	// deleteEventsSQL need not lock the lease. Its rows were delivered, also if another process has the lease at the COMMIT.
	deleteEventsSQL = `
WITH held AS MATERIALIZED (
    SELECT FROM {schema}.outbox_lease WHERE holder = $1::uuid AND fence = $2::bigint),
deleted AS (DELETE FROM {schema}.outbox USING held WHERE id = ANY ($3::bigint[]))
SELECT EXISTS (SELECT FROM held)`

	// setAsideSQL need not lock the lease either, because the event was refused.
	setAsideSQL = `
WITH held AS MATERIALIZED (
    SELECT FROM {schema}.outbox_lease l WHERE l.holder = $1::uuid AND l.fence = $2::bigint),
changed AS (UPDATE {schema}.outbox o SET refused = left($4::text, 1000) FROM held WHERE o.id = $3::bigint)
SELECT EXISTS (SELECT FROM held)`

	giveUpOutboxSQL = `UPDATE {schema}.outbox_lease SET lease_until = '-infinity' WHERE holder = $1::uuid`

	// sweepEventsSQL looks at the oldest rows alone, so it reads few rows that stay.
	sweepEventsSQL = `
WITH oldest AS MATERIALIZED (SELECT id, creation_date FROM {schema}.outbox ORDER BY id LIMIT $2::bigint)
DELETE FROM {schema}.outbox o USING oldest
 WHERE o.id = oldest.id AND oldest.creation_date < clock_timestamp() - $1::interval
RETURNING ` + notDurable
)

// nextEventsSQL reads the newest id and the rows from one snapshot.
var nextEventsSQL = `
SELECT (SELECT max(id) FROM {schema}.outbox), id, creation_date, event_type, coalesce(topic, ''), record_id, patron_id,
       old::text, new::text, payload::text, clock_timestamp() - creation_date,
       CASE WHEN $2::boolean AND topic IS NULL THEN (` + namesOfEventSQL + `) END
  FROM {schema}.outbox o WHERE refused IS NULL AND id > $3::bigint AND id <= $4::bigint
 ORDER BY id LIMIT $1::bigint`

// namesOfEventSQL reads what the circulation log shows of the records that an event names by id. An event
// of a check-out that was refused has the barcode of the item alone. The grace period is that of a check-out.
var namesOfEventSQL = `
SELECT jsonb_strip_nulls(jsonb_build_object(
       'userBarcode', u.jsonb->>'barcode', 'proxyBarcode', p.jsonb->>'barcode', 'destinationServicePoint', d.jsonb->>'name',
       'source', nullif(concat_ws(', ', s.jsonb #>> '{personal,lastName}', s.jsonb #>> '{personal,firstName}'), ''),
       'itemId', i.id, 'itemBarcode', i.jsonb->>'barcode', 'holdingsRecordId', h.id, 'instanceId', h.instance_id,
       'gracePeriod', jsonb_path_query_first(l.jsonb, '$.loansPolicy.gracePeriod ? (@.duration > 0)')))
  FROM (SELECT) AS one
  LEFT JOIN {schema}.users u ON u.id = ` + eventID("userId") + `
  LEFT JOIN {schema}.users p ON p.id = ` + eventID("proxyUserId") + `
  LEFT JOIN {schema}.users s ON s.id = ` + eventID("updatedByUserId") + `
  LEFT JOIN {schema}.service_point d ON d.id = ` + eventID("destinationId") + `
  LEFT JOIN {schema}.loan_policy l ON l.id = ` + eventID("loanPolicyId") + `
  LEFT JOIN {schema}.item i ON i.id = coalesce(` + eventID("itemId") + `,
       (SELECT b.id FROM {schema}.item b WHERE lower(b.jsonb->>'barcode') = lower(o.payload->>'itemBarcode')))
  LEFT JOIN {schema}.holdings_record h ON h.id = i.holdings_record_id`

// eventID reads an id of an event. What is no UUID is no id, so that it keeps no other event waiting.
func eventID(name string) string {
	return "(CASE WHEN o.payload->>'" + name + "' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN o.payload->>'" + name + "' END)::uuid"
}

// recordingTx waits briefly, because writers of the table wait behind it. The next try comes soon.
var recordingTx = database.Bounds{Idle: shortTx.Idle, Lock: impatientWait}

// Lease implements events.Store. It turns on the triggers that write the events of records, one table
// after another, so that it waits for no two tables at once.
func (s *OutboxStore) Lease(ctx context.Context, holder uuid.UUID, duration time.Duration) (events.Lease, bool, error) {
	l := events.Lease{Holder: holder}
	var silent []string
	err := s.db.writeRow(ctx, s.db.conns.Ordinary, "leasing the outbox", leaseOutboxSQL, []any{holder, duration}, &l.Fence, &silent, nil)
	if errors.Is(err, pgx.ErrNoRows) {
		return l, false, nil
	}
	for _, table := range silent {
		err = s.db.runTx(ctx, s.db.conns.Ordinary, recordingTx, "turning on the events of "+table, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "ALTER TABLE "+table+" ENABLE TRIGGER record_event")
			return err
		})
		if err != nil {
			return l, false, err
		}
	}
	return l, err == nil, err
}

// nextEventsBounds keep to the index. Of an outbox that was almost empty PostgreSQL would plan to read and
// sort all rows of the range.
var nextEventsBounds = database.Bounds{PlansOnce: true, OnlyIndexes: true}.Batched()

// Next implements events.Store.
func (s *OutboxStore) Next(ctx context.Context, after, last int64, limit int, named bool) (events.Batch, error) {
	pool := s.db.conns.Ordinary
	statement, err := nameSchema(ctx, pool, nextEventsSQL)
	if err != nil {
		return events.Batch{}, err
	}
	var b events.Batch
	err = s.db.read(ctx, "reading the outbox", func() (err error) {
		b = events.Batch{}
		b.Events, err = database.CollectRows(ctx, pool, nextEventsBounds, statement, []any{limit, named, after, last},
			func(row pgx.CollectableRow) (events.Event, error) { return scanEvent(row, &b) })
		return err
	})
	return b, err
}

// scanEvent reads a row of nextEventsSQL, and what the rows say of their batch.
func scanEvent(row pgx.CollectableRow, b *events.Batch) (events.Event, error) {
	var e events.Event
	var record, patron optionalID
	var age time.Duration
	err := row.Scan(&b.Newest, &e.ID, &e.Date, &e.Type, &e.Topic, &record, &patron, &e.Old, &e.New, &e.Payload, &age, &e.Names)
	e.RecordID, e.PatronID = uuid.UUID(record), uuid.UUID(patron)
	b.Age = max(b.Age, age)
	return e, err
}

// Delete implements events.Store.
func (s *OutboxStore) Delete(ctx context.Context, l events.Lease, ids []int64) (held bool, err error) {
	err = s.db.writeRow(ctx, s.db.conns.Ordinary, "deleting delivered events", deleteEventsSQL, []any{l.Holder, l.Fence, ids}, &held)
	return held, err
}

// SetAside implements events.Store.
func (s *OutboxStore) SetAside(ctx context.Context, l events.Lease, id int64, why string) (held bool, err error) {
	err = s.db.writeRow(ctx, s.db.conns.Ordinary, "setting an event aside", setAsideSQL, []any{l.Holder, l.Fence, id, why}, &held)
	return held, err
}

// GiveUp implements events.Store.
func (s *OutboxStore) GiveUp(ctx context.Context, holder uuid.UUID) error {
	_, err := s.db.exec(ctx, s.db.conns.Ordinary, "giving the outbox up", giveUpOutboxSQL, holder)
	return err
}

// Sweep deletes at most limit events that are older than retention, and returns how many.
func (s *OutboxStore) Sweep(ctx context.Context, retention time.Duration, limit int) (int, error) {
	return s.db.sweep(ctx, "sweeping the outbox", sweepEventsSQL, retention, limit)
}
