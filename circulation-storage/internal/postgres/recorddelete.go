package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

const deleteRecordSQL = `DELETE FROM {table} WHERE id = $1::uuid RETURNING jsonb`

// Delete implements records.Store.
func (s *RecordStore) Delete(ctx context.Context, t records.Type, id string) error {
	return s.write(ctx, t, "deleting a "+t.Name, func(w *recordWrite) error {
		var doc json.RawMessage
		err := w.queryRow(ctx, deleteRecordSQL, t.Table, &doc, id)
		if err != nil {
			return w.stillReferenced(err, id)
		}
		return w.settingsDeleted(ctx, []json.RawMessage{doc})
	})
}

const deleteMatchingSQL = `DELETE FROM {table} WHERE {where}`

// DeleteMatching implements records.Store.
func (s *RecordStore) DeleteMatching(ctx context.Context, t records.Type, query string) error {
	if strings.TrimSpace(query) == "" {
		return fault.New(fault.Malformed,
			"CQL: the query is missing or empty; say which %s to delete, such as query=id==UUID; cql.allRecords=1 deletes all", t.Collection)
	}
	sel, err := parseCQL(t, query)
	if err != nil {
		return err
	}
	statement, err := tableQuery(ctx, strings.ReplaceAll(deleteMatchingSQL, "{where}", sel.where), t.Table)
	if err != nil {
		return err
	}
	if holdsSettings(t) {
		statement += " RETURNING jsonb" // the others may be too many to read
	}
	return s.write(ctx, t, "deleting "+t.Collection, func(w *recordWrite) error {
		rows, _ := w.tx.Query(ctx, statement, sel.args...) // a Query error surfaces in CollectRows
		deleted, err := pgx.CollectRows(rows, pgx.RowTo[json.RawMessage])
		if err != nil {
			return w.stillReferenced(err, referencedID(err))
		}
		return w.settingsDeleted(ctx, deleted)
	})
}

// settingsDeleted calls settingsChanged for each record that was deleted.
func (w *recordWrite) settingsDeleted(ctx context.Context, deleted []json.RawMessage) error {
	for _, doc := range deleted {
		r, err := records.Decode(doc)
		if err != nil {
			return err
		}
		if err := w.settingsChanged(ctx, r, nil); err != nil {
			return err
		}
	}
	return nil
}

// stillReferenced explains why a record cannot be deleted; other errors pass.
func (w *recordWrite) stillReferenced(err error, id string) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return notFound(w.t, id)
	}
	if code, constraint := sqlState(err); code == foreignKeyViolation {
		if f := w.t.StillReferenced(constraint, id); f != nil {
			return violation{fault: f, cause: err}
		}
	}
	return err
}

var idPattern = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// referencedID returns the id of the record that a foreign key keeps, "*" when
// PostgreSQL does not name it. It stands in the detail, whose words are translated.
func referencedID(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return cmp.Or(idPattern.FindString(pg.Detail), "*")
	}
	return "*"
}
