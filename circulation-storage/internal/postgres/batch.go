package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	fast "github.com/segmentio/encoding/json"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/database"
)

// batch is several statements for one round trip. PostgreSQL runs them one after
// another, each with a snapshot of its own.
type batch struct {
	statements []batched
	err        error // of a record that could not be encoded
}

type batched struct {
	sql  string
	args []any
	dest []any
	all  *[]records.Record // of a statement with any number of rows
}

// query adds a statement and reads its row, if there is one, into dest.
func (b *batch) query(sql string, args []any, dest ...any) {
	b.statements = append(b.statements, batched{sql: sql, args: args, dest: dest})
}

// queryAll adds a statement and reads its rows, one record each, into all.
func (b *batch) queryAll(sql string, args []any, all *[]records.Record) {
	b.statements = append(b.statements, batched{sql: sql, args: args, all: all})
}

// storeRecord adds a statement that stores a record, id in $1 and JSON in $2, and
// reads its text as stored into dest.
func (b *batch) storeRecord(sql string, r records.Record, dest ...any) {
	b.query(sql, []any{r.ID(), b.encode(r)}, dest...)
}

// encode returns v as JSON. It is a string, because a connection in exec mode takes
// []byte for a bytea.
func (b *batch) encode(v any) string {
	text, err := fast.Marshal(v)
	b.err = errors.Join(b.err, err)
	return string(text)
}

// The statements that write return what is stored then.
const (
	updateLoanSQL    = `UPDATE {schema}.loan SET jsonb = $2::jsonb WHERE id = $1::uuid RETURNING jsonb::text`
	updateItemSQL    = `UPDATE {schema}.item SET jsonb = $2::jsonb WHERE id = $1::uuid RETURNING jsonb::text`
	insertSessionSQL = `INSERT INTO {schema}.patron_action_session (id, jsonb) VALUES ($1::uuid, $2::jsonb)`
	insertCheckInSQL = `INSERT INTO {schema}.check_in_operation (id, jsonb) VALUES ($1::uuid, $2::jsonb)`
)

// writeChange writes a change of stored records, and what commits add to it. It reads the loan and the
// item as stored into the two destinations; nil is for none.
func (b *batch) writeChange(c commit.Change, loan, item *json.RawMessage) {
	store := func(sql string, r records.Record, dest *json.RawMessage) {
		switch {
		case r == nil:
		case dest == nil:
			b.storeRecord(sql, r)
		default:
			b.storeRecord(sql, r, dest)
		}
	}
	store(updateLoanSQL, c.Loan, loan)
	for _, changed := range c.Items {
		store(updateItemSQL, changed, item)
	}
	store(insertSessionSQL, c.Session, nil)
	store(insertCheckInSQL, c.CheckIn, nil)
	b.updateRequests(c.Requests)
	for _, e := range c.Events {
		b.query(addEventSQL, []any{e.Type, b.encode(e.Payload)})
	}
}

// writeChange is for operations without an answer.
func writeChange(b *batch, change commit.Change, _ *struct{}) { b.writeChange(change, nil, nil) }

const addEventSQL = `INSERT INTO {schema}.outbox (event_type, payload) SELECT $1::text, $2::jsonb` + toReader

// toReader lets a statement write events once there is a reader: a process has had the lease on the
// outbox.
const toReader = ` FROM {schema}.outbox_lease WHERE fence > 0`

// clockSQL reads the database's clock. It is a statement of its own, after those that
// wait for a row, because a statement reads the clock before it waits.
const clockSQL = `SELECT clock_timestamp()`

// send runs the statements up to the first that fails, and returns its error.
func (b *batch) send(ctx context.Context, tx pgx.Tx) error {
	var queue pgx.Batch
	if err := b.fill(ctx)(tx, &queue); err != nil {
		return err
	}
	return tx.SendBatch(ctx, &queue).Close()
}

// fill returns what adds the statements to a batch of pgx, named for ctx's tenant.
func (b *batch) fill(ctx context.Context) database.Fill {
	return func(on database.Querier, queue *pgx.Batch) error {
		if b.err != nil {
			return fmt.Errorf("writing a record as JSON: %w", b.err)
		}
		for _, s := range b.statements {
			sql, err := nameSchema(ctx, on, s.sql)
			if err != nil {
				return err
			}
			s.addTo(queue, sql)
		}
		return nil
	}
}

// addTo adds the statement with its schema named.
func (s batched) addTo(queue *pgx.Batch, sql string) {
	queued := queue.Queue(sql, s.args...)
	if s.all != nil {
		queued.Query(func(rows pgx.Rows) (err error) {
			*s.all, err = pgx.CollectRows(rows, scanRecord)
			return err
		})
	}
	if len(s.dest) == 0 {
		return
	}
	queued.QueryRow(func(row pgx.Row) error {
		if err := row.Scan(s.dest...); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return nil
	})
}

// stored is a destination for a record; NULL is no record.
type stored records.Record

// ScanBytes implements pgtype.BytesScanner.
func (s *stored) ScanBytes(doc []byte) error {
	r, err := decodeStored(doc)
	*s = stored(r)
	return err
}

// scanRecord reads a row that is one record.
func scanRecord(row pgx.CollectableRow) (r records.Record, err error) {
	err = row.Scan((*stored)(&r))
	return r, err
}

// decodeStored reads a record as the database returned it; nil is no record.
func decodeStored(doc json.RawMessage) (records.Record, error) {
	if doc == nil {
		return nil, nil
	}
	r, err := records.Decode(doc)
	if err != nil {
		// %v, because a fault in what is stored is not the caller's.
		return nil, fmt.Errorf("a stored record cannot be read: %v", err) //nolint:errorlint // see above
	}
	return r, nil
}
