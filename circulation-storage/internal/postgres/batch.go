package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/records"
)

// batch is several statements for one round trip. PostgreSQL runs them one after
// another, each with a snapshot of its own.
type batch struct {
	statements []batched
	err        error // of a statement that could not be made
}

type batched struct {
	sql  string
	args []any
	dest []any
	all  *[]string // of a statement with any number of rows, each one text
}

// one adds a statement whose row, if there is one, is read into dest.
func (b *batch) one(sql string, args []any, dest ...any) {
	b.statements = append(b.statements, batched{sql: sql, args: args, dest: dest})
}

// many adds a statement whose rows, one text each, are read into all.
func (b *batch) many(sql string, args []any, all *[]string) {
	b.statements = append(b.statements, batched{sql: sql, args: args, all: all})
}

// write adds a statement that stores a record, id in $1 and JSON in $2, and
// answers with its text as stored.
func (b *batch) write(sql string, r records.Record, stored **string) {
	text, err := json.Marshal(r)
	b.err = errors.Join(b.err, err)
	b.one(sql, []any{r.ID(), string(text)}, stored)
}

const addEventSQL = `INSERT INTO {schema}.outbox (event_type, payload) VALUES ($1::text, $2::jsonb)`

// clockSQL reads the database's clock. It stands in a statement of its own after
// those that wait for a row: in one that waits, it would be read before the wait.
const clockSQL = `SELECT clock_timestamp()`

// event adds a row of the outbox.
func (b *batch) event(e commit.Event) {
	payload, err := json.Marshal(e.Payload)
	b.err = errors.Join(b.err, err)
	b.one(addEventSQL, []any{e.Type, string(payload)})
}

// send runs the statements. The first that fails ends it, and its error is
// returned.
func (b *batch) send(ctx context.Context, tx pgx.Tx) error {
	if b.err != nil {
		return fmt.Errorf("writing a record as JSON: %w", b.err)
	}
	var queue pgx.Batch
	for _, s := range b.statements {
		sql, err := query(ctx, s.sql)
		if err != nil {
			return err
		}
		queued := queue.Queue(sql, s.args...)
		if s.all != nil {
			queued.Query(func(rows pgx.Rows) (err error) {
				*s.all, err = pgx.CollectRows(rows, pgx.RowTo[string])
				return err
			})
		}
		if len(s.dest) == 0 {
			continue
		}
		queued.QueryRow(func(row pgx.Row) error {
			if err := row.Scan(s.dest...); !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			return nil
		})
	}
	return tx.SendBatch(ctx, &queue).Close()
}

// decodeStored reads a record's text from the database; nil is no record.
func decodeStored(text *string) (records.Record, error) {
	if text == nil {
		return nil, nil
	}
	r, err := records.Decode([]byte(*text))
	if err != nil {
		// %v, because a fault in what is stored is not the caller's.
		return nil, fmt.Errorf("a stored record cannot be read: %v", err) //nolint:errorlint // see above
	}
	return r, nil
}

// raw is a record's text for an answer; nil is no record.
func raw(text *string) json.RawMessage {
	if text == nil {
		return nil
	}
	return json.RawMessage(*text)
}
