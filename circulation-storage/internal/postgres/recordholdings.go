package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

// An item shows values of its holdings record. An item's write therefore locks
// its holdings record first, and a change there is followed by its items within
// the same transaction: no reader sees one without the other.

// lockHoldings takes the lock on an item's holdings record before the item's.
func (w *recordWrite) lockHoldings(ctx context.Context, item records.Record) error {
	if w.t.Table != records.Item().Table {
		return nil
	}
	_, err := w.Read(ctx, records.Holdings().Table, item.Text("holdingsRecordId"))
	if fault.Is(err, fault.NotFound) {
		return nil // the item's rules will say so
	}
	return err
}

const lockItemsSQL = `SELECT jsonb FROM {table} WHERE holdings_record_id = $1::uuid ORDER BY id FOR NO KEY UPDATE`

// deriveItems writes those items of a holdings record, just updated, again that
// take other values from it than before. Each is written as by a PUT of what it
// is: _version counts up and metadata follows, as in FOLIO, so that whoever
// judged the item by its old location notices.
func (w *recordWrite) deriveItems(ctx context.Context, before records.Record) error {
	if w.t.Table != records.Holdings().Table {
		return nil
	}
	after, err := w.Read(ctx, w.t.Table, before.ID())
	if err != nil {
		return err
	}
	ofBefore, ofAfter := records.Record{}, records.Record{} // items without values of their own
	records.DeriveItem(ofBefore, before)
	records.DeriveItem(ofAfter, after)
	if reflect.DeepEqual(ofBefore, ofAfter) {
		return nil
	}
	items, err := w.lockItems(ctx, before.ID())
	if err != nil {
		return err
	}
	statement, err := tableQuery(ctx, updateRecordSQL, records.Item().Table)
	if err != nil {
		return err
	}
	updates := &pgx.Batch{}
	for _, stored := range items {
		derived := maps.Clone(stored)
		records.DeriveItem(derived, after)
		if reflect.DeepEqual(stored, derived) {
			continue
		}
		if err := w.complete(ctx, records.Item(), derived, stored); err != nil {
			return fmt.Errorf("item %s: %w", stored.ID(), err)
		}
		doc, err := json.Marshal(derived)
		if err != nil {
			return fmt.Errorf("writing JSON: %w", err)
		}
		updates.Queue(statement, stored.ID(), string(doc))
	}
	return w.tx.SendBatch(ctx, updates).Close()
}

func (w *recordWrite) lockItems(ctx context.Context, holdingsID string) ([]records.Record, error) {
	statement, err := tableQuery(ctx, lockItemsSQL, records.Item().Table)
	if err != nil {
		return nil, err
	}
	rows, _ := w.tx.Query(ctx, statement, holdingsID) // a Query error surfaces in CollectRows
	docs, err := pgx.CollectRows(rows, pgx.RowTo[json.RawMessage])
	if err != nil {
		return nil, fmt.Errorf("locking the items: %w", err)
	}
	items := make([]records.Record, len(docs))
	for i, doc := range docs {
		if items[i], err = records.Decode(doc); err != nil {
			return nil, err
		}
	}
	return items, nil
}
