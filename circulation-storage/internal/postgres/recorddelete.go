package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/cql"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

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
