package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/cql"
	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/database"
	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/fault"
)

const (
	insertRecordSQL = `INSERT INTO {table} (id, jsonb) VALUES ($1::uuid, $2::jsonb) RETURNING jsonb`
	updateRecordSQL = `UPDATE {table} SET jsonb = $2::jsonb WHERE id = $1::uuid RETURNING jsonb`
)

// Create implements records.Store.
func (s *RecordStore) Create(ctx context.Context, t records.Type, r records.Record) (json.RawMessage, error) {
	var stored json.RawMessage
	err := s.writeRecords(ctx, t, "creating a "+t.Name, func(w *recordWrite) (err error) {
		if t.Named {
			stored, err = w.writeNamed(ctx, r)
			return err
		}
		stored, err = w.writeRecord(ctx, insertRecordSQL, r, nil)
		return err
	})
	return stored, err
}

// writeNamed creates a record, or writes it over the one of the same name.
func (w *recordWrite) writeNamed(ctx context.Context, r records.Record) (json.RawMessage, error) {
	stored, err := w.readLocked(ctx, lockNamedSQL, w.t.Table, w.t.Name, r.Text("name"))
	if err == nil {
		r = maps.Clone(r)
		r["id"] = stored.ID()
		return w.writeRecord(ctx, updateRecordSQL, r, stored)
	}
	if !fault.Is(err, fault.NotFound) {
		return nil, err
	}
	written, err := w.writeRecord(ctx, insertRecordSQL, r, nil)
	if code, _ := database.SQLState(err); code == database.UniqueViolation {
		return nil, fmt.Errorf("created meanwhile, unless its id is another record's: %w: %w", database.ErrRunAgain, err)
	}
	return written, err
}

// Update implements records.Store.
func (s *RecordStore) Update(ctx context.Context, t records.Type, r records.Record) error {
	return s.writeRecords(ctx, t, "updating a "+t.Name, func(w *recordWrite) error {
		if err := w.lockReadRecords(ctx, r); err != nil {
			return err
		}
		stored, err := w.readLocked(ctx, lockRecordSQL, t.Table, t.Name, r.ID())
		switch {
		case fault.Is(err, fault.NotFound) && t.Upsert:
			_, err = w.writeRecord(ctx, insertRecordSQL, r, nil)
			return retryCreated(err, t)
		case err != nil:
			return err
		}
		if _, err := w.writeRecord(ctx, updateRecordSQL, r, stored); err != nil {
			return err
		}
		return w.deriveItems(ctx, stored)
	})
}

// retryCreated makes the transaction run again after another one created a record with
// the same id; other errors pass.
func retryCreated(err error, t records.Type) error {
	if _, constraint := database.SQLState(err); constraint == t.Table+"_pkey" {
		return fmt.Errorf("created meanwhile: %w", database.ErrRunAgain)
	}
	return err
}

// writeRecord completes a record by its type's rules and writes it over stored, which
// is nil for a new one. It returns the record as stored.
func (w *recordWrite) writeRecord(ctx context.Context, statement string, r, stored records.Record) (json.RawMessage, error) {
	r = maps.Clone(r) // the transaction may run again
	if err := w.completeRecord(ctx, w.t, r, stored); err != nil {
		return nil, err
	}
	doc, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("writing JSON: %w", err)
	}
	var written json.RawMessage
	// As a string: a connection in exec mode takes []byte for a bytea.
	if err := scanRow(ctx, w.tx, nameTable(statement, w.t.Table), []any{r.ID(), string(doc)}, &written); err != nil {
		return nil, w.explainViolation(err, r)
	}
	w.opened = w.t.Table == records.Loan.Table && records.IsOpenLoan(r) && !records.IsOpenLoan(stored)
	return written, w.noteSettings(ctx, stored, r)
}

// explainViolation explains a broken constraint; other errors pass.
func (w *recordWrite) explainViolation(err error, r records.Record) error {
	code, constraint := database.SQLState(err)
	switch code {
	case database.UniqueViolation:
		return explain(err, w.t.Violation(constraint, r))
	case database.ForeignKeyViolation:
		return explainDangling(err)
	}
	return err
}

// holdsSettings reports whether records of the type may be the lock settings.
func holdsSettings(t records.Type) bool { return t.Table == records.SettingsEntry.Table }

// noteSettings raises the version of the lock settings, and notes who did it, if the
// record was or is the entry that holds them; nil is no record.
func (w *recordWrite) noteSettings(ctx context.Context, before, after records.Record) error {
	if !holdsSettings(w.t) || !records.IsLockSettings(before) && !records.IsLockSettings(after) {
		return nil
	}
	var b batch
	var entry json.RawMessage
	if records.IsLockSettings(before) {
		entry = json.RawMessage(b.encode(before))
	}
	b.query(raiseVersionSQL, nil)
	if records.DecidesLock(after) {
		b.query(dropAnnouncementSQL, nil)
	}
	b.noteSettings(ctx, lock.Note{}, entry)
	return b.send(ctx, w.tx)
}

const deleteRecordSQL = `DELETE FROM {table} WHERE id = $1::uuid RETURNING jsonb`

// Delete implements records.Store.
func (s *RecordStore) Delete(ctx context.Context, t records.Type, id string) error {
	return s.explainNamed(ctx, s.writeRecords(ctx, t, "deleting a "+t.Name, func(w *recordWrite) error {
		var doc json.RawMessage
		err := scanRow(ctx, w.tx, nameTable(deleteRecordSQL, t.Table), []any{id}, &doc)
		if err != nil {
			return explainNoRow(err, errNoRecord(t.Name, id))
		}
		return w.noteDeleted(ctx, []json.RawMessage{doc})
	}))
}

const deleteMatchingSQL = `DELETE FROM {table} WHERE {where}`

// DeleteMatching implements records.Store. One transaction deletes all records or none, however many
// match, within the caller's deadline.
func (s *RecordStore) DeleteMatching(ctx context.Context, t records.Type, query string) error {
	if strings.TrimSpace(query) == "" {
		return fault.New(fault.Malformed,
			"CQL: the query is missing or empty; say which %s to delete, such as query=id==UUID; cql.allRecords=1 deletes all", t.Collection)
	}
	sel, err := cql.Parse(t.Indexes, query)
	if err != nil {
		return err
	}
	if err := s.long.take("Too many long lists and deletions by query are under way: try again"); err != nil {
		return err
	}
	defer s.long.free()
	statement := strings.ReplaceAll(nameTable(deleteMatchingSQL, t.Table), "{where}", sel.Where)
	if holdsSettings(t) {
		statement += " RETURNING jsonb" // the others may be too many to read
	}
	return s.explainNamed(ctx, s.writeRecords(ctx, t, "deleting "+t.Collection, func(w *recordWrite) error {
		deleted, err := collectRows(ctx, w.tx, statement, sel.Args, pgx.RowTo[json.RawMessage])
		if err != nil {
			return err
		}
		return w.noteDeleted(ctx, deleted)
	}))
}

// noteDeleted calls noteSettings for each record that was deleted.
func (w *recordWrite) noteDeleted(ctx context.Context, deleted []json.RawMessage) error {
	for _, doc := range deleted {
		r, err := decodeStored(doc)
		if err != nil {
			return err
		}
		if err := w.noteSettings(ctx, r, nil); err != nil {
			return err
		}
	}
	return nil
}

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
		_, _, err := fault.Found(w.Read(ctx, records.Holdings.Table, r.Text("holdingsRecordId"))) // the item's rules refuse a missing one
		return err
	}
	return nil
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
	locked, err := w.lockRecords(ctx, lockRequestsSQL, convert.All(requests, records.Record.ID))
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
