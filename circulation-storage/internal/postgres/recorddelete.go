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
	"checkoutlock/database"
	"checkoutlock/schemas/fault"
)

const deleteRecordSQL = `DELETE FROM {table} WHERE id = $1::uuid RETURNING jsonb`

// Delete implements records.Store.
func (s *RecordStore) Delete(ctx context.Context, t records.Type, id string) error {
	return s.writeRecords(ctx, t, "deleting a "+t.Name, func(w *recordWrite) error {
		var doc json.RawMessage
		err := scanRow(ctx, w.tx, nameTable(deleteRecordSQL, t.Table), []any{id}, &doc)
		if err != nil {
			return w.explainReference(err, id)
		}
		return w.noteDeleted(ctx, []json.RawMessage{doc})
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
	statement := strings.ReplaceAll(nameTable(deleteMatchingSQL, t.Table), "{where}", sel.where)
	if holdsSettings(t) {
		statement += " RETURNING jsonb" // the others may be too many to read
	}
	return s.writeRecords(ctx, t, "deleting "+t.Collection, func(w *recordWrite) error {
		deleted, err := collectRows(ctx, w.tx, statement, sel.args, pgx.RowTo[json.RawMessage])
		if err != nil {
			return w.explainReference(err, referencedID(err))
		}
		return w.noteDeleted(ctx, deleted)
	})
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

// explainReference explains why a record cannot be deleted; other errors pass.
func (w *recordWrite) explainReference(err error, id string) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return errNoRecord(w.t.Name, id)
	}
	if code, constraint := database.SQLState(err); code == database.ForeignKeyViolation {
		if f := w.t.StillReferenced(constraint, id); f != nil {
			return violation{fault: f, cause: err}
		}
	}
	return err
}

var idPattern = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// referencedID returns the id of the record that a foreign key keeps, "*" if PostgreSQL
// does not name it. The id stands in the detail, whose words PostgreSQL translates.
func referencedID(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return cmp.Or(idPattern.FindString(pg.Detail), "*")
	}
	return "*"
}
