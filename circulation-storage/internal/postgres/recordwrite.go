package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/cql"
	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/database"
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
	if _, constraint := database.SQLState(err); constraint == w.t.Table+"_name_key" {
		return nil, fmt.Errorf("created meanwhile: %w", database.ErrRunAgain)
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
		if errors.Is(err, pgx.ErrNoRows) {
			return errNoRecord(t.Name, id)
		}
		if err != nil {
			return err
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
