package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"checkoutlock/circulation-storage/internal/records"
)

const (
	// Positions are compared once all are written: requests that change places share
	// one for a moment.
	deferPositionsSQL   = `SET CONSTRAINTS {schema}.request_item_id_position_key DEFERRED`
	comparePositionsSQL = `SET CONSTRAINTS {schema}.request_item_id_position_key IMMEDIATE`
)

// PutRequests writes all the requests or none: those that exist are replaced, the
// others created. Requests come from records.ParseRequestBatch. Faults: Invalid
// for two open requests of an item at one position, those of the type's rules.
func (s *RecordStore) PutRequests(ctx context.Context, requests []records.Record) error {
	return s.writeRecords(ctx, records.Request, "writing requests", func(w *recordWrite) error {
		if _, err := runStatement(ctx, w.tx, deferPositionsSQL); err != nil {
			return err
		}
		stored, err := w.lockRequests(ctx, requests)
		if err != nil {
			return err
		}
		if err := w.writeRequests(ctx, requests, stored); err != nil {
			return err
		}
		_, err = runStatement(ctx, w.tx, comparePositionsSQL)
		return w.explainViolation(err, records.Record{}) // which two, PostgreSQL does not say
	})
}

// lockRequests returns those that exist, by id, and keeps them from changing.
func (w *recordWrite) lockRequests(ctx context.Context, requests []records.Record) (map[string]records.Record, error) {
	ids := make([]string, len(requests))
	for i, r := range requests {
		ids[i] = r.ID()
	}
	locked, err := w.lockRecords(ctx, lockRequestsSQL, ids)
	if err != nil {
		return nil, err
	}
	stored := make(map[string]records.Record, len(locked))
	for _, r := range locked {
		stored[r.ID()] = r
	}
	return stored, nil
}

// writeRequests completes the requests and writes them in one round trip, in the order
// of their ids, as all transactions do.
func (w *recordWrite) writeRequests(ctx context.Context, requests []records.Record, stored map[string]records.Record) error {
	var writes batch
	for _, r := range slices.SortedFunc(slices.Values(requests), func(a, b records.Record) int { return strings.Compare(a.ID(), b.ID()) }) {
		r = maps.Clone(r) // the transaction may run again
		before := stored[r.ID()]
		if err := w.completeRecord(ctx, w.t, r, before); err != nil {
			return fmt.Errorf("request %s: %w", r.ID(), err)
		}
		statement := updateRecordSQL
		if before == nil {
			statement = insertRecordSQL
		}
		writes.storeRecord(nameTable(statement, w.t.Table), r)
	}
	return retryCreated(explainDangling(writes.send(ctx, w.tx)), w.t)
}
