package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/records"
)

const (
	// Positions are compared once all are written: requests that change places
	// share one for a moment.
	deferPositionsSQL  = `SET CONSTRAINTS {schema}.request_item_id_position_key DEFERRED`
	comparePositionSQL = `SET CONSTRAINTS {schema}.request_item_id_position_key IMMEDIATE`
	lockRequestsSQL    = `SELECT jsonb FROM {schema}.request WHERE id = ANY ($1::uuid[]) ORDER BY id FOR NO KEY UPDATE`
)

// PutRequests writes all the requests or none: those that exist are replaced, the
// others created. Requests come from records.ParseRequestBatch. Faults: Invalid
// for two open requests of an item at one position, those of the type's rules.
func (s *RecordStore) PutRequests(ctx context.Context, requests []records.Record) error {
	return s.write(ctx, records.Request(), "writing requests", func(w *recordWrite) error {
		if err := w.exec(ctx, deferPositionsSQL); err != nil {
			return err
		}
		stored, err := w.lockRequests(ctx, requests)
		if err != nil {
			return err
		}
		if err := w.writeRequests(ctx, requests, stored); err != nil {
			return err
		}
		return w.violated(w.exec(ctx, comparePositionSQL), records.Record{}) // which two, it does not say
	})
}

// exec runs a statement without parameters.
func (w *recordWrite) exec(ctx context.Context, statement string) error {
	statement, err := query(ctx, statement)
	if err != nil {
		return err
	}
	_, err = w.tx.Exec(ctx, statement)
	return err
}

// lockRequests returns those that exist, by id, and keeps them from changing.
func (w *recordWrite) lockRequests(ctx context.Context, requests []records.Record) (map[string]records.Record, error) {
	statement, err := query(ctx, lockRequestsSQL)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(requests))
	for i, r := range requests {
		ids[i] = r.ID()
	}
	rows, _ := w.tx.Query(ctx, statement, ids) // a Query error surfaces in CollectRows
	docs, err := pgx.CollectRows(rows, pgx.RowTo[json.RawMessage])
	if err != nil {
		return nil, fmt.Errorf("locking the requests: %w", err)
	}
	stored := map[string]records.Record{}
	for _, doc := range docs {
		r, err := records.Decode(doc)
		if err != nil {
			return nil, err
		}
		stored[r.ID()] = r
	}
	return stored, nil
}

// writeRequests completes the requests and writes them in one round trip, in the
// order of their ids, as everybody does.
func (w *recordWrite) writeRequests(ctx context.Context, requests []records.Record, stored map[string]records.Record) error {
	insert, err := tableQuery(ctx, insertRecordSQL, w.t.Table)
	if err != nil {
		return err
	}
	update, err := tableQuery(ctx, updateRecordSQL, w.t.Table)
	if err != nil {
		return err
	}
	writes := &pgx.Batch{}
	for _, r := range slices.SortedFunc(slices.Values(requests), func(a, b records.Record) int { return strings.Compare(a.ID(), b.ID()) }) {
		r = maps.Clone(r) // the transaction may run again
		before := stored[r.ID()]
		if err := w.complete(ctx, w.t, r, before); err != nil {
			return fmt.Errorf("request %s: %w", r.ID(), err)
		}
		doc, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("writing JSON: %w", err)
		}
		statement := update
		if before == nil {
			statement = insert
		}
		writes.Queue(statement, r.ID(), string(doc))
	}
	err = w.tx.SendBatch(ctx, writes).Close()
	if _, constraint := sqlState(err); constraint == w.t.Table+"_pkey" {
		return fmt.Errorf("created meanwhile: %w", errRunAgain)
	}
	return err
}
