package postgres

import (
	"context"
	"fmt"
	"maps"
	"reflect"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

// An item shows values of its holdings record. So a write of an item locks the holdings
// record first. A change of that record rewrites its items in the same transaction, so
// no reader sees one without the other.

// lockReadRecords locks what the rules of a record read before the record itself: the holdings record
// of an item, and the service points of a request policy. Their writes change it, in that order.
func (w *recordWrite) lockReadRecords(ctx context.Context, r records.Record) error {
	switch w.t.Table {
	case records.RequestPolicy.Table:
		return w.t.Prepare(ctx, w, records.Write{Record: r})
	case records.Item.Table:
	default:
		return nil
	}
	_, err := w.Read(ctx, records.Holdings.Table, r.Text("holdingsRecordId"))
	if fault.Is(err, fault.NotFound) {
		return nil // the item's rules refuse it
	}
	return err
}

// deriveItems rewrites those items of a holdings record, just updated, that take
// other values from it than before. It writes each as a PUT of the item does: _version
// counts up and metadata follows, as in FOLIO. So a check-out that judged the item by
// its old location is refused.
func (w *recordWrite) deriveItems(ctx context.Context, before records.Record) error {
	if w.t.Table != records.Holdings.Table {
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
	items, err := w.lockRecords(ctx, lockItemsOfHoldingsSQL, before.ID())
	if err != nil {
		return err
	}
	var updates batch
	for _, stored := range items {
		derived := maps.Clone(stored)
		records.DeriveItem(derived, after)
		if reflect.DeepEqual(stored, derived) {
			continue
		}
		if err := w.completeRecord(ctx, records.Item, derived, stored); err != nil {
			return fmt.Errorf("item %s: %w", stored.ID(), err)
		}
		updates.storeRecord(nameTable(updateRecordSQL, records.Item.Table), derived)
	}
	return updates.send(ctx, w.tx)
}
